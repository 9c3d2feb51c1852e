//! The host's half: bytes to records, with everything that is wrong on the way.
//!
//! Input may be anything: a guest that lost its mind writes to this port too. The decoder
//! never panics, never allocates, and after any damage is in step again at the next zero.

use crate::frame::{FRAME_MAX, parse};
use crate::record::Record;

/// What one step of decoding found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// An intact frame.
    Record {
        /// Its sequence number.
        sequence: u32,
        /// What it says.
        record: Record<'a>,
    },
    /// Bytes that are no record, or records that are missing.
    Damage(Damage),
}

/// How the stream differs from what an encoder writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Bytes between two zeros that are no frame: noise, a cut or altered frame.
    Garbage {
        /// How many bytes.
        len: usize,
    },
    /// The stream ends inside a frame.
    Truncated {
        /// How many bytes of the last frame are there.
        len: usize,
    },
    /// Frames are missing, repeated or out of order.
    OutOfSequence {
        /// The number the next frame must have.
        expected: u32,
        /// The number it has.
        found: u32,
    },
}

/// Reads a stream byte by byte.
pub struct Decoder {
    frame: [u8; FRAME_MAX],
    /// Bytes since the last zero; only the first [`FRAME_MAX`] are kept.
    len: usize,
    next_sequence: u32,
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder::new()
    }
}

impl Decoder {
    /// A decoder at the beginning of a stream.
    pub const fn new() -> Decoder {
        Decoder { frame: [0; FRAME_MAX], len: 0, next_sequence: 0 }
    }

    /// Takes one byte and calls `each` with what it completes: nothing, an item, or damage
    /// followed by the record that revealed it.
    pub fn push(&mut self, byte: u8, mut each: impl FnMut(Item<'_>)) {
        if byte != 0 {
            if let Some(place) = self.frame.get_mut(self.len) {
                *place = byte;
            }
            self.len = self.len.saturating_add(1);
            return;
        }
        let len = core::mem::take(&mut self.len);
        if len == 0 {
            return;
        }
        let body = self.frame.get_mut(..len).and_then(unstuff);
        match body.and_then(parse) {
            None => each(Item::Damage(Damage::Garbage { len })),
            Some((sequence, record)) => {
                let expected = self.next_sequence;
                self.next_sequence = sequence.wrapping_add(1);
                if sequence != expected {
                    let found = sequence;
                    each(Item::Damage(Damage::OutOfSequence { expected, found }));
                }
                each(Item::Record { sequence, record });
            }
        }
    }

    /// The stream is over: what is left of it.
    pub fn finish(&self) -> Option<Damage> {
        (self.len > 0).then_some(Damage::Truncated { len: self.len })
    }
}

/// Undoes byte stuffing in place; `None` if a group reaches beyond the end.
fn unstuff(frame: &mut [u8]) -> Option<&[u8]> {
    let mut read = 0;
    let mut written = 0;
    while read < frame.len() {
        let group = usize::from(*frame.get(read)?);
        let end = read.checked_add(group)?;
        if group == 0 || end > frame.len() {
            return None;
        }
        // The group's bytes move left by at least one place, over bytes already read.
        frame.copy_within(read + 1..end, written);
        written += group - 1;
        read = end;
        if group < 255 && read < frame.len() {
            *frame.get_mut(written)? = 0;
            written += 1;
        }
    }
    frame.get(..written)
}
