//! One event.

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// 64-bit words of a record.
pub const RECORD_WORDS: usize = 4;
/// Bytes of a record.
pub const RECORD_BYTES: usize = size_of::<Record>();
const _: () = assert!(RECORD_BYTES == RECORD_WORDS * 8);
const _: () = assert!(cfg!(target_endian = "little"), "a record is read as it lies");

/// In the place of a thread: none.
pub const NO_THREAD: u32 = u32::MAX;

/// An event: what happened, when, and to which thread or object; 32 bytes, little-endian, in the
/// order of its fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, Immutable, IntoBytes)]
#[repr(C)]
pub struct Record {
    /// The monotonic clock.
    pub time_ns: u64,
    /// Which event.
    pub kind: u16,
    /// Its category's number.
    pub category: u16,
    /// The thread that ran, as the kernel numbers them.
    pub thread: u32,
    /// What the event is about; depends on its kind.
    pub a: u64,
    /// The second argument, if the event has one.
    pub b: u64,
}

impl Record {
    /// The record as the words of a buffer.
    #[inline]
    pub const fn words(&self) -> [u64; RECORD_WORDS] {
        let kind = self.kind as u64 | (self.category as u64) << 16 | (self.thread as u64) << 32;
        [self.time_ns, kind, self.a, self.b]
    }

    /// The record that [`words`](Self::words) gave.
    pub const fn of(words: [u64; RECORD_WORDS]) -> Self {
        let [time_ns, kind, a, b] = words;
        // Truncation takes the fields apart.
        Self {
            time_ns,
            kind: kind as u16,
            category: (kind >> 16) as u16,
            thread: (kind >> 32) as u32,
            a,
            b,
        }
    }
}
