//! The kernel's own name of a thread, and how the public name follows from it.
//!
//! Thread records live in one type-stable array. A key is a position in it and which use of the
//! position is meant, so that looking a thread up is an index and a compare. The public
//! [`ThreadRef`] carries the same two numbers as its thread number and thread generation, and
//! adds the process; the two convert without a table. A record knows its process, so a
//! reference that names the wrong one is found out by [`ThreadKey::names`].
//!
//! Decided in ADR 55.

use abi_types::{Pid, ThreadRef, Tid};

/// A position in the array of thread records, and which thread in that position is meant.
///
/// Generation 0 is never given to a thread, so [`ThreadKey::NONE`] names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadKey {
    /// The position of the thread's record.
    pub slot: u32,
    /// Which use of that position.
    pub generation: u32,
}

impl ThreadKey {
    /// Names no thread.
    pub const NONE: Self = Self { slot: 0, generation: 0 };

    /// The key a public name implies. It says nothing about the process: the owner of the
    /// record compares with [`names`](Self::names) before it believes the name.
    #[inline]
    pub const fn from_reference(reference: ThreadRef) -> Self {
        Self { slot: reference.tid.0, generation: reference.thread_generation }
    }

    /// The public name of this thread in its process.
    #[inline]
    pub const fn reference(self, pid: Pid, process_generation: u32) -> ThreadRef {
        ThreadRef {
            pid,
            process_generation,
            tid: Tid(self.slot),
            thread_generation: self.generation,
        }
    }

    /// Whether `reference` is the public name of this thread, which lives in the given process.
    #[inline]
    pub fn names(self, reference: ThreadRef, pid: Pid, process_generation: u32) -> bool {
        self.reference(pid, process_generation) == reference
    }

    /// The key as one number, for a slot or a record that keeps it in a word.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        self.slot as u64 | (self.generation as u64) << 32
    }

    /// The key that [`to_bits`](Self::to_bits) gave.
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        Self { slot: bits as u32, generation: (bits >> 32) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_and_reference_imply_each_other() {
        let key = ThreadKey { slot: 7, generation: 3 };
        let reference = key.reference(Pid(2), 9);
        assert_eq!(ThreadKey::from_reference(reference), key);
        assert_eq!(ThreadKey::from_bits(key.to_bits()), key);
        assert!(key.names(reference, Pid(2), 9));
    }

    #[test]
    fn a_name_with_any_part_changed_is_another_thread() {
        let key = ThreadKey { slot: 7, generation: 3 };
        let reference = key.reference(Pid(2), 9);
        assert!(!key.names(reference, Pid(1), 9));
        assert!(!key.names(reference, Pid(2), 8));
        assert!(!ThreadKey { slot: 6, ..key }.names(reference, Pid(2), 9));
        assert!(!ThreadKey { generation: 2, ..key }.names(reference, Pid(2), 9));
    }
}
