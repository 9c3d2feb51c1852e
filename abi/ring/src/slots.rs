//! Which inline slots of the submission side are free.
//!
//! For clients with several calls under way: a slot is in use until its operation completes,
//! in whatever order they do. A client with one call at a time needs none of this; it keeps to
//! one slot, which then stays in the cache.

use abi_types::limits::MAX_SQ_ENTRIES;

const WORD_BITS: usize = u64::BITS as usize;
const WORDS: usize = MAX_SQ_ENTRIES as usize / WORD_BITS;

/// The free inline slots of one ring.
#[derive(Debug, Clone)]
pub struct InlineSlots {
    /// A bit per slot, set if free.
    free: [u64; WORDS],
}

impl InlineSlots {
    /// All slots of a ring with so many submission entries, free.
    pub const fn new(sq_entries: u32) -> Self {
        let mut free = [0; WORDS];
        let mut rest = &mut free as &mut [u64];
        let mut left = sq_entries as usize;
        while let Some((word, others)) = rest.split_first_mut() {
            *word = if left >= WORD_BITS { !0 } else { (1 << left) - 1 };
            left = left.saturating_sub(WORD_BITS);
            rest = others;
        }
        Self { free }
    }

    /// A free slot, the lowest; `None` if all are in use.
    #[inline]
    pub fn take(&mut self) -> Option<u16> {
        for (position, word) in self.free.iter_mut().enumerate() {
            if *word != 0 {
                let bit = word.trailing_zeros();
                *word &= *word - 1;
                return Some((position * WORD_BITS) as u16 + bit as u16);
            }
        }
        None
    }

    /// Gives a slot back, once its operation has completed.
    #[inline]
    pub fn give(&mut self, slot: u16) {
        let position = usize::from(slot) / WORD_BITS;
        if let Some(word) = self.free.get_mut(position) {
            let bit = 1 << (usize::from(slot) % WORD_BITS);
            debug_assert!(*word & bit == 0, "a slot is given back once");
            *word |= bit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_once_lowest_first() {
        for entries in [1, 2, 63, 64, 65, 1024] {
            let mut slots = InlineSlots::new(entries);
            for expected in 0..entries {
                assert_eq!(slots.take(), Some(expected as u16));
            }
            assert_eq!(slots.take(), None);
            let middle = (entries / 2) as u16;
            slots.give(middle);
            assert_eq!((slots.take(), slots.take()), (Some(middle), None));
        }
    }

    #[test]
    #[should_panic(expected = "given back once")]
    fn a_slot_given_twice_is_found() {
        let mut slots = InlineSlots::new(64);
        slots.give(3);
    }
}
