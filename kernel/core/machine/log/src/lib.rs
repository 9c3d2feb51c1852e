//! The log ring: the last bytes of text that were logged, in memory the caller lends.
//!
//! Text goes in at the end and the oldest falls out. A reader remembers a position, which is
//! the count of bytes ever written before it; what it missed is reported, never made up.
#![no_std]

use core::fmt;

/// The ring.
pub struct LogRing<'a> {
    bytes: &'a mut [u8],
    /// Bytes ever written.
    written: u64,
}

/// What there is to read from a position on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tail<'a> {
    /// Bytes after the asked position that have fallen out.
    pub lost: u64,
    /// The text, in two pieces because the ring wraps.
    pub pieces: [&'a [u8]; 2],
}

impl<'a> LogRing<'a> {
    /// An empty ring.
    pub const fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, written: 0 }
    }

    /// The position after the last byte.
    pub const fn end(&self) -> u64 {
        self.written
    }

    /// How many bytes it keeps.
    pub const fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Adds text.
    pub fn push(&mut self, text: &[u8]) {
        let capacity = self.bytes.len();
        if capacity == 0 {
            self.written += text.len() as u64;
            return;
        }
        // Of a text longer than the ring only its end would stay.
        let skipped = text.len().saturating_sub(capacity);
        self.written += skipped as u64;
        let mut rest = text.get(skipped..).unwrap_or(&[]);
        while !rest.is_empty() {
            let at = (self.written % capacity as u64) as usize;
            let count = rest.len().min(capacity - at);
            let (now, later) = rest.split_at_checked(count).unwrap_or((rest, &[]));
            if let Some(target) = self.bytes.get_mut(at..at + count) {
                target.copy_from_slice(now);
            }
            self.written += count as u64;
            rest = later;
        }
    }

    /// What was written from `position` on and is still there.
    pub fn read_from(&self, position: u64) -> Tail<'_> {
        let capacity = self.bytes.len() as u64;
        let oldest = self.written.saturating_sub(capacity);
        let start = position.clamp(oldest, self.written);
        let lost = start.saturating_sub(position);
        if start == self.written {
            return Tail { lost, pieces: [&[], &[]] };
        }
        let from = (start % capacity) as usize;
        let count = (self.written - start) as usize;
        let first = count.min(self.bytes.len() - from);
        let pieces = [
            self.bytes.get(from..from + first).unwrap_or(&[]),
            self.bytes.get(..count - first).unwrap_or(&[]),
        ];
        Tail { lost, pieces }
    }
}

impl fmt::Write for LogRing<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::vec::Vec;

    #[test]
    fn keeps_the_last_bytes_of_everything_written() {
        for capacity in [0usize, 1, 7, 16, 64] {
            let mut storage = std::vec![0u8; capacity];
            let mut ring = LogRing::new(&mut storage);
            let mut model: Vec<u8> = Vec::new();
            let mut state = 1u32;
            for step in 0..300 {
                state = state.wrapping_mul(1664525).wrapping_add(1013904223);
                let text: Vec<u8> = (0..state >> 27).map(|i| (step + i) as u8).collect();
                ring.push(&text);
                model.extend(&text);
                assert_eq!(ring.end(), model.len() as u64);
                for position in [0, model.len() / 2, model.len().saturating_sub(5), model.len() + 3]
                {
                    let tail = ring.read_from(position as u64);
                    let got: Vec<u8> = tail.pieces.concat();
                    let kept = model.len().saturating_sub(capacity);
                    let expected = model.get(position.max(kept)..).unwrap_or(&[]);
                    assert_eq!(got, expected);
                    assert_eq!(tail.lost, kept.saturating_sub(position) as u64);
                }
            }
        }
    }
}
