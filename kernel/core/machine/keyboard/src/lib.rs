//! A keyboard's scan codes as the bytes a terminal would send.
//!
//! Scan codes of set 1, which the keyboard controller translates to, become keys and characters by the
//! `pc-keyboard` crate, with a US layout. Characters are sent as UTF-8, control characters as the key
//! with Ctrl gives them, keys without a character as the escape sequences of a VT220, so that whoever
//! reads the console need not know where a byte comes from.
#![no_std]

use pc_keyboard::{DecodedKey, HandleControl, KeyCode, PS2Keyboard, ScancodeSet1, layouts};

/// The longest a key is.
const MAX_BYTES: usize = 4;

/// What a key sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bytes {
    bytes: [u8; MAX_BYTES],
    length: usize,
}

impl Bytes {
    fn of(text: &[u8]) -> Bytes {
        let mut all = Bytes::default();
        for (to, from) in all.bytes.iter_mut().zip(text) {
            *to = *from;
            all.length += 1;
        }
        all
    }

    /// The bytes; none for a key that only changes others, or goes up.
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&[])
    }
}

/// The keys that are down.
pub struct Decoder {
    keyboard: PS2Keyboard<layouts::Us104Key, ScancodeSet1>,
}

impl Decoder {
    /// No key down.
    pub const fn new() -> Decoder {
        let control = HandleControl::MapLettersToUnicode;
        Decoder { keyboard: PS2Keyboard::new(ScancodeSet1::new(), layouts::Us104Key, control) }
    }

    /// Takes a scan code into account. One that makes no sense is forgotten, with what led to it.
    pub fn feed(&mut self, code: u8) -> Bytes {
        let Ok(event) = self.keyboard.add_byte(code) else {
            self.keyboard.clear();
            return Bytes::default();
        };
        match event.and_then(|event| self.keyboard.process_keyevent(event)) {
            // A terminal's return and backspace.
            Some(DecodedKey::Unicode('\n')) => Bytes::of(b"\r"),
            Some(DecodedKey::Unicode('\u{8}')) => Bytes::of(b"\x7f"),
            // The key, not the character of that number.
            Some(DecodedKey::Unicode('\u{7f}')) => Bytes::of(b"\x1b[3~"),
            Some(DecodedKey::Unicode(character)) => {
                Bytes::of(character.encode_utf8(&mut [0; MAX_BYTES]).as_bytes())
            }
            Some(DecodedKey::RawKey(key)) => Bytes::of(sequence(key)),
            None => Bytes::default(),
        }
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

fn sequence(key: KeyCode) -> &'static [u8] {
    match key {
        KeyCode::ArrowUp => b"\x1b[A",
        KeyCode::ArrowDown => b"\x1b[B",
        KeyCode::ArrowRight => b"\x1b[C",
        KeyCode::ArrowLeft => b"\x1b[D",
        KeyCode::Home => b"\x1b[H",
        KeyCode::End => b"\x1b[F",
        KeyCode::Insert => b"\x1b[2~",
        KeyCode::Delete => b"\x1b[3~",
        KeyCode::PageUp => b"\x1b[5~",
        KeyCode::PageDown => b"\x1b[6~",
        _ => b"",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::vec::Vec;

    fn typed(codes: &[u8]) -> Vec<u8> {
        let mut decoder = Decoder::new();
        codes.iter().flat_map(|code| decoder.feed(*code).as_slice().to_vec()).collect()
    }

    const SHIFT: u8 = 0x2a;
    const CTRL: u8 = 0x1d;
    const UP: u8 = 0x80;

    #[test]
    fn keys_are_characters_once_each() {
        // h e l l o, each down and up.
        let codes = [0x23, 0x12, 0x26, 0x26, 0x18].map(|code| [code, code | UP]);
        assert_eq!(typed(codes.as_flattened()), b"hello");
        assert_eq!(typed(&[0x39, 0x0b, 0x02]), b" 01");
    }

    #[test]
    fn shift_and_caps_lock_change_others() {
        assert_eq!(typed(&[SHIFT, 0x1e, 0x02, SHIFT | UP, 0x1e]), b"A!a");
        assert_eq!(typed(&[0x3a, 0x3a | UP, 0x1e, 0x02]), b"A1");
    }

    #[test]
    fn what_a_shell_edits_with() {
        assert_eq!(typed(&[0x1c]), b"\r", "return");
        assert_eq!(typed(&[0x0e]), b"\x7f", "backspace");
        assert_eq!(typed(&[0x0f, 0x01]), b"\t\x1b", "tab and escape");
        assert_eq!(typed(&[CTRL, 0x2e, CTRL | UP, 0x2e]), b"\x03c", "Ctrl-C");
        let arrows = [0x48, 0x50, 0x4d, 0x4b].map(|code| [0xe0, code, 0xe0, code | UP]);
        assert_eq!(typed(arrows.as_flattened()), b"\x1b[A\x1b[B\x1b[C\x1b[D");
        assert_eq!(typed(&[0xe0, 0x47, 0xe0, 0x4f, 0xe0, 0x53]), b"\x1b[H\x1b[F\x1b[3~");
    }

    #[test]
    fn nonsense_is_forgotten() {
        assert_eq!(typed(&[0xff, 0x00, 0x54, 0x1e]), b"a");
        // Whatever comes, a key goes on to work.
        let mut state = 1u32;
        let mut decoder = Decoder::new();
        for _ in 0..100_000 {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            let bytes = decoder.feed((state >> 24) as u8);
            assert!(bytes.as_slice().len() <= MAX_BYTES);
            assert!(core::str::from_utf8(bytes.as_slice()).is_ok());
        }
    }
}
