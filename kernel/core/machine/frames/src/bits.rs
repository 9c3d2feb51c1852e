//! A set of small integers that finds its smallest member in a handful of steps.
//!
//! A bitmap with summary levels on top: a bit of level n+1 says whether the word below it in
//! level n is nonzero. Set, clear and first take one step per level, six at most.

const WORD_BITS: usize = u64::BITS as usize;
/// 64^6 = 2^36 members: more frames than 52 physical address bits of 2^40 frames will see in
/// practice, and the limit [`BitTree::new`] refuses beyond.
const MAX_LEVELS: usize = 6;

/// The set, over words the caller lends.
pub(crate) struct BitTree<'a> {
    words: &'a mut [u64],
    /// Where each level starts in `words`.
    starts: [usize; MAX_LEVELS],
    levels: usize,
    bits: usize,
}

impl<'a> BitTree<'a> {
    /// Words of storage for members `0..bits`.
    pub(crate) fn words_needed(bits: usize) -> usize {
        let mut total = 0;
        let mut level = bits.div_ceil(WORD_BITS).max(1);
        loop {
            total += level;
            if level == 1 {
                return total;
            }
            level = level.div_ceil(WORD_BITS);
        }
    }

    /// An empty set; `None` if the storage is not exactly [`Self::words_needed`] or too many bits.
    pub(crate) fn new(bits: usize, words: &'a mut [u64]) -> Option<Self> {
        if words.len() != Self::words_needed(bits) {
            return None;
        }
        words.fill(0);
        let mut starts = [0; MAX_LEVELS];
        let mut levels = 0;
        let mut start = 0;
        let mut level = bits.div_ceil(WORD_BITS).max(1);
        loop {
            *starts.get_mut(levels)? = start;
            levels += 1;
            start += level;
            if level == 1 {
                return Some(Self { words, starts, levels, bits });
            }
            level = level.div_ceil(WORD_BITS);
        }
    }

    fn word(&self, level: usize, index: usize) -> u64 {
        let start = self.starts.get(level).copied().unwrap_or(0);
        self.words.get(start + index).copied().unwrap_or(0)
    }

    fn word_mut(&mut self, level: usize, index: usize) -> Option<&mut u64> {
        let start = self.starts.get(level).copied()?;
        self.words.get_mut(start + index)
    }

    /// Whether `bit` is a member.
    pub(crate) fn contains(&self, bit: usize) -> bool {
        bit < self.bits && self.word(0, bit / WORD_BITS) >> (bit % WORD_BITS) & 1 == 1
    }

    /// Adds a member; bits beyond the set's size are not added.
    pub(crate) fn insert(&mut self, bit: usize) {
        if bit >= self.bits {
            return;
        }
        let mut index = bit;
        for level in 0..self.levels {
            let Some(word) = self.word_mut(level, index / WORD_BITS) else { return };
            let was_empty = *word == 0;
            *word |= 1 << (index % WORD_BITS);
            if !was_empty {
                return;
            }
            index /= WORD_BITS;
        }
    }

    /// Takes a member out.
    pub(crate) fn remove(&mut self, bit: usize) {
        if bit >= self.bits {
            return;
        }
        let mut index = bit;
        for level in 0..self.levels {
            let Some(word) = self.word_mut(level, index / WORD_BITS) else { return };
            *word &= !(1 << (index % WORD_BITS));
            if *word != 0 {
                return;
            }
            index /= WORD_BITS;
        }
    }

    /// The smallest member.
    pub(crate) fn first(&self) -> Option<usize> {
        let mut index = 0;
        for level in (0..self.levels).rev() {
            let word = self.word(level, index);
            if word == 0 {
                return None;
            }
            index = index * WORD_BITS + word.trailing_zeros() as usize;
        }
        Some(index)
    }

    /// The members, in ascending order.
    pub(crate) fn members(&self) -> impl Iterator<Item = usize> {
        (0..self.bits.div_ceil(WORD_BITS)).flat_map(|index| {
            let mut rest = self.word(0, index);
            core::iter::from_fn(move || {
                let bit = rest.trailing_zeros() as usize;
                rest &= rest.checked_sub(1)?;
                Some(index * WORD_BITS + bit)
            })
        })
    }

    /// How many members there are, counted one by one.
    pub(crate) fn count(&self) -> usize {
        (0..self.bits.div_ceil(WORD_BITS)).map(|i| self.word(0, i).count_ones() as usize).sum()
    }

    /// Whether every summary bit says what is below it.
    pub(crate) fn summaries_hold(&self) -> bool {
        (1..self.levels).all(|level| {
            let below =
                self.starts.get(level).zip(self.starts.get(level - 1)).map_or(0, |(a, b)| a - b);
            (0..below).all(|i| {
                let summary = self.word(level, i / WORD_BITS) >> (i % WORD_BITS) & 1 == 1;
                summary == (self.word(level - 1, i) != 0)
            })
        })
    }
}

/// The word that bits `start..start + count` lie in and their mask, if it is one and they are not the whole of it.
#[inline]
pub(crate) fn in_a_word(start: usize, count: usize) -> Option<(usize, u64)> {
    let low = start % WORD_BITS;
    let is_one = count < WORD_BITS && low + count <= WORD_BITS;
    is_one.then(|| (start / WORD_BITS, ((1 << count) - 1) << low))
}

/// The words that bits `start..start + count` touch, each with the mask of those bits.
pub(crate) fn masks(start: usize, count: usize) -> impl Iterator<Item = (usize, u64)> {
    let end = start + count;
    (start / WORD_BITS..end.div_ceil(WORD_BITS)).map(move |index| {
        let low = start.saturating_sub(index * WORD_BITS);
        let high = (end - index * WORD_BITS).min(WORD_BITS);
        let upto = if high == WORD_BITS { u64::MAX } else { (1 << high) - 1 };
        (index, upto & (u64::MAX << low))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::collections::BTreeSet;
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn agrees_with_an_ordered_set() {
        for bits in [1usize, 63, 64, 65, 4096, 4097, 300_000] {
            let mut storage = vec![u64::MAX; BitTree::words_needed(bits)];
            let mut tree = BitTree::new(bits, &mut storage).unwrap();
            let mut model = BTreeSet::new();
            let mut state = 0x1234_5678u64;
            for _ in 0..4000 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let bit = (state >> 33) as usize % bits;
                if state & 1 << 20 == 0 {
                    tree.insert(bit);
                    model.insert(bit);
                } else {
                    tree.remove(bit);
                    model.remove(&bit);
                }
                assert_eq!(tree.first(), model.first().copied());
                assert_eq!(tree.contains(bit), model.contains(&bit));
            }
            assert_eq!(tree.count(), model.len());
            assert!(tree.members().eq(model.iter().copied()));
            assert!(tree.summaries_hold());
        }
    }

    #[test]
    fn masks_cover_each_bit_once() {
        for start in 0..130 {
            for count in 0..200 {
                let seen: Vec<usize> = masks(start, count)
                    .flat_map(|(i, m)| {
                        (0..64).filter(move |b| m >> b & 1 == 1).map(move |b| i * 64 + b)
                    })
                    .collect();
                assert_eq!(seen, (start..start + count).collect::<Vec<_>>());
                if let Some(part) = in_a_word(start, count) {
                    assert!(count == 0 || masks(start, count).eq([part]));
                } else {
                    assert!(count >= 64 || masks(start, count).count() == 2);
                }
            }
        }
    }
}
