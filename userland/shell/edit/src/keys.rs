//! Keys out of bytes: UTF-8, control characters and the escape sequences that terminals send for cursor keys.
//!
//! A decoder is in one of a few states and never waits for a byte that may not come: what interrupts a sequence is
//! taken for itself, and a sequence that does not end is given up.

/// One thing a person did at the keyboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character that can be shown.
    Char(char),
    /// Ctrl with this letter, an upper case one.
    Ctrl(char),
    /// Return; `\r\n` is one.
    Enter,
    /// Tab.
    Tab,
    /// The key that takes away to the left.
    Backspace,
    /// The key that takes away under the cursor.
    Delete,
    /// Cursor left.
    Left,
    /// Cursor right.
    Right,
    /// Cursor up.
    Up,
    /// Cursor down.
    Down,
    /// To the beginning.
    Home,
    /// To the end.
    End,
}

/// Bytes of an escape sequence after which it is taken for noise: those of keys have five.
const MOST_SEQUENCE_BYTES: u8 = 16;

const ESCAPE: u8 = 0x1b;

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Ground,
    /// Within a character: its bits so far, the bytes still to come, and the least it may be.
    Utf8 { bits: u32, left: u8, least: u32 },
    /// After ESC.
    Escape,
    /// After `ESC [` or `ESC O`: the number, and the bytes so far.
    Sequence { number: u16, bytes: u8 },
}

/// A decoder of what is typed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Keys {
    state: State,
    after_return: bool,
}

impl Keys {
    /// A decoder at the beginning of a key.
    pub const fn new() -> Self {
        Self { state: State::Ground, after_return: false }
    }

    /// One more byte; the key that it ends, if any.
    pub fn push(&mut self, byte: u8) -> Option<Key> {
        let after_return = core::mem::take(&mut self.after_return);
        match core::mem::take(&mut self.state) {
            State::Ground => self.ground(byte, after_return),
            State::Utf8 { bits, left, least } => match byte {
                0x80..=0xbf => self.continued(bits << 6 | u32::from(byte & 0x3f), left, least),
                _ => self.ground(byte, false),
            },
            State::Escape => match byte {
                b'[' | b'O' => {
                    self.state = State::Sequence { number: 0, bytes: 0 };
                    None
                }
                // Alt with a key, which means nothing here; another escape begins again.
                0x20..=0x7e => None,
                _ => self.ground(byte, false),
            },
            State::Sequence { number, bytes } => self.sequence(byte, number, bytes),
        }
    }

    fn ground(&mut self, byte: u8, after_return: bool) -> Option<Key> {
        match byte {
            b'\r' => {
                self.after_return = true;
                Some(Key::Enter)
            }
            b'\n' if after_return => None,
            b'\n' => Some(Key::Enter),
            b'\t' => Some(Key::Tab),
            0x08 | 0x7f => Some(Key::Backspace),
            ESCAPE => {
                self.state = State::Escape;
                None
            }
            0x01..=0x1a => Some(Key::Ctrl(char::from(b'A' - 1 + byte))),
            0x20..=0x7e => Some(Key::Char(char::from(byte))),
            0xc2..=0xdf => self.begin(byte & 0x1f, 1, 0x80),
            0xe0..=0xef => self.begin(byte & 0x0f, 2, 0x800),
            0xf0..=0xf4 => self.begin(byte & 0x07, 3, 0x1_0000),
            // Bytes of no character, and control characters without a letter.
            _ => None,
        }
    }

    fn begin(&mut self, bits: u8, left: u8, least: u32) -> Option<Key> {
        self.state = State::Utf8 { bits: bits.into(), left, least };
        None
    }

    fn continued(&mut self, bits: u32, left: u8, least: u32) -> Option<Key> {
        if left > 1 {
            self.state = State::Utf8 { bits, left: left - 1, least };
            return None;
        }
        char::from_u32(bits)
            .filter(|character| bits >= least && !character.is_control())
            .map(Key::Char)
    }

    fn sequence(&mut self, byte: u8, number: u16, bytes: u8) -> Option<Key> {
        match byte {
            _ if bytes == MOST_SEQUENCE_BYTES => self.ground(byte, false),
            b'0'..=b'9' => {
                let number = number.saturating_mul(10).saturating_add(u16::from(byte - b'0'));
                self.state = State::Sequence { number, bytes: bytes + 1 };
                None
            }
            // Other parameters: which modifiers were held, for instance. The key counts.
            0x20..=0x3f => {
                self.state = State::Sequence { number, bytes: bytes + 1 };
                None
            }
            b'A' => Some(Key::Up),
            b'B' => Some(Key::Down),
            b'C' => Some(Key::Right),
            b'D' => Some(Key::Left),
            b'H' => Some(Key::Home),
            b'F' => Some(Key::End),
            b'~' => match number {
                1 | 7 => Some(Key::Home),
                4 | 8 => Some(Key::End),
                3 => Some(Key::Delete),
                _ => None,
            },
            0x40..=0x7e => None,
            _ => self.ground(byte, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        let mut keys = Keys::new();
        bytes.iter().filter_map(|byte| keys.push(*byte)).collect()
    }

    #[test]
    fn what_terminals_send_is_understood() {
        for (bytes, key) in [
            (&b"\x1b[A"[..], Key::Up),
            (b"\x1bOA", Key::Up),
            (b"\x1b[B", Key::Down),
            (b"\x1b[1;5D", Key::Left),
            (b"\x1b[C", Key::Right),
            (b"\x1b[H", Key::Home),
            (b"\x1b[1~", Key::Home),
            (b"\x1b[4~", Key::End),
            (b"\x1b[F", Key::End),
            (b"\x1b[3~", Key::Delete),
            (b"\x7f", Key::Backspace),
            (b"\x08", Key::Backspace),
            (b"\x01", Key::Ctrl('A')),
            (b"\x1a", Key::Ctrl('Z')),
            ("ä".as_bytes(), Key::Char('ä')),
            ("€".as_bytes(), Key::Char('€')),
            ("🦀".as_bytes(), Key::Char('🦀')),
        ] {
            assert_eq!(keys(bytes), [key], "{bytes:?}");
        }
    }

    #[test]
    fn a_return_and_a_line_feed_are_one_key_and_each_alone_is_one() {
        assert_eq!(keys(b"\r\n"), [Key::Enter]);
        assert_eq!(keys(b"\r\r\n\n"), [Key::Enter, Key::Enter, Key::Enter]);
        assert_eq!(keys(b"\ra\n"), [Key::Enter, Key::Char('a'), Key::Enter]);
    }

    #[test]
    fn what_interrupts_a_sequence_is_taken_for_itself() {
        assert_eq!(keys(b"\x1b[12\x03"), [Key::Ctrl('C')]);
        assert_eq!(keys(b"\xe2\x82x"), [Key::Char('x')]);
        assert_eq!(keys(b"\x1b\x1b[A"), [Key::Up]);
        assert_eq!(keys(b"\x1b[\x1b[B"), [Key::Down]);
        // Alt with a letter, and a key that has no meaning.
        assert_eq!(keys(b"\x1bx\x1b[15~y"), [Key::Char('y')]);
    }

    #[test]
    fn what_is_no_text_is_nothing() {
        for bytes in [&b"\xff\xfe\x80\xc0\x00\x1c"[..], b"\xc0\x80", b"\xed\xa0\x80", b"\xc2\x85"] {
            assert_eq!(keys(bytes), [], "{bytes:?}");
        }
        assert_eq!(keys(b"\xe0\x80\x80\xf4\xbf\xbf\xbf"), []);
    }

    #[test]
    fn a_sequence_that_never_ends_is_given_up() {
        let mut bytes = b"\x1b[".to_vec();
        bytes.extend([b'9'; 100]);
        assert_eq!(keys(&bytes).len(), 100 - usize::from(MOST_SEQUENCE_BYTES));
    }
}
