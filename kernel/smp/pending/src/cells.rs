//! The cells of one thread, and which are free.

use crate::Cell;
use abi_sync::atomic::{AtomicU64, Ordering};

/// Cells in one word of the map.
const WORD: u32 = u64::BITS;

/// All cells are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// The cells of one thread: one by itself, the others over storage from outside.
///
/// A thread that makes one call at a time uses the first cell, which is why that one is found without
/// looking for it. `C` are the others, and `M` has a word for each 64 cells after the first 64.
#[derive(Debug)]
pub struct Cells<C, M> {
    one: Cell,
    /// A set bit is a free cell: numbers 0 to 63, the first of them `one`.
    first: AtomicU64,
    others: C,
    /// The same for the numbers that follow.
    more: M,
}

impl<C: AsRef<[Cell]>, M: AsRef<[AtomicU64]>> Cells<C, M> {
    /// All free, those that have a bit.
    pub fn new(others: C, more: M) -> Self {
        let first = AtomicU64::new(0);
        let mut left = u32::try_from(others.as_ref().len()).unwrap_or(u32::MAX).saturating_add(1);
        for word in core::iter::once(&first).chain(more.as_ref()) {
            let here = left.min(WORD);
            let bits = if here == WORD { u64::MAX } else { (1 << here) - 1 };
            word.store(bits, Ordering::Relaxed);
            left -= here;
        }
        Self { one: Cell::default(), first, others, more }
    }

    /// Takes a free cell, the one with the lowest number. By the owner alone.
    #[inline(always)]
    pub fn take(&self) -> Result<(u32, &Cell), Full> {
        // Acquire: pairs with the Release in `give_back`; the reads of the cell's last user came
        // before the writes that follow.
        if self.first.load(Ordering::Acquire) & 1 == 0 {
            return self.take_another();
        }
        // Only the owner clears bits, so this one is still set.
        self.first.fetch_and(!1, Ordering::Relaxed);
        Ok((0, &self.one))
    }

    #[inline(never)]
    fn take_another(&self) -> Result<(u32, &Cell), Full> {
        for (word, base) in self.words().zip((0_u32..).step_by(WORD as usize)) {
            // As in `take`.
            let free = word.load(Ordering::Acquire);
            if free != 0 {
                let bit = free.trailing_zeros();
                word.fetch_and(!(1 << bit), Ordering::Relaxed);
                let index = base + bit;
                return Ok((index, self.get(index).ok_or(Full)?));
            }
        }
        Err(Full)
    }

    /// The words of the map, in order.
    fn words(&self) -> impl Iterator<Item = &AtomicU64> {
        core::iter::once(&self.first).chain(self.more.as_ref())
    }

    /// The word that has the bit of that number.
    fn word(&self, index: u32) -> Option<&AtomicU64> {
        match (index / WORD).checked_sub(1) {
            None => Some(&self.first),
            Some(word) => self.more.as_ref().get(word as usize),
        }
    }

    /// The cell of that number.
    #[inline(always)]
    pub fn get(&self, index: u32) -> Option<&Cell> {
        match index.checked_sub(1) {
            None => Some(&self.one),
            Some(other) => self.others.as_ref().get(other as usize),
        }
    }

    /// Gives a cell back. By whoever claimed its operation, after the last look at it.
    #[inline(always)]
    pub fn give_back(&self, index: u32) {
        // Release, here and below: pairs with the Acquire in `take`.
        if index == 0 {
            self.first.fetch_or(1, Ordering::Release);
        } else {
            self.give_back_another(index);
        }
    }

    #[inline(never)]
    fn give_back_another(&self, index: u32) {
        if let Some(word) = self.word(index) {
            word.fetch_or(1 << (index % WORD), Ordering::Release);
        }
    }

    /// The cells in use from number `from` on, as the owner or its heir sees them.
    pub fn busy(&self, from: u32) -> impl Iterator<Item = (u32, &Cell)> {
        let count = self.count();
        let used = move |(word, base): (&AtomicU64, u32)| {
            let used = !word.load(Ordering::Acquire);
            let is_meant = move |index: &u32| (from..count).contains(index);
            bits(used).map(move |bit| base + bit).filter(is_meant)
        };
        self.words()
            .zip((0_u32..).step_by(WORD as usize))
            .flat_map(used)
            .filter_map(|index| Some((index, self.get(index)?)))
    }

    /// How many cells there are.
    pub fn count(&self) -> u32 {
        u32::try_from(self.others.as_ref().len()).unwrap_or(u32::MAX).saturating_add(1)
    }
}

/// The numbers of the bits that are set.
fn bits(mut word: u64) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let bit = word.trailing_zeros();
        word &= word.wrapping_sub(1);
        (bit < WORD).then_some(bit)
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn cells<const N: usize, const M: usize>() -> Cells<[Cell; N], [AtomicU64; M]> {
        Cells::new(
            core::array::from_fn(|_| Cell::default()),
            core::array::from_fn(|_| AtomicU64::new(0)),
        )
    }

    #[test]
    fn every_cell_is_taken_once_and_comes_back() {
        let cells = cells::<69, 1>();
        let mut seen = [false; 70];
        for _ in 0..70 {
            let (index, _) = cells.take().unwrap();
            assert!(!seen[index as usize], "{index} was given out twice");
            seen[index as usize] = true;
        }
        assert_eq!(cells.take().map(|(index, _)| index), Err(Full));
        assert_eq!(cells.busy(0).count(), 70);
        for index in [3, 69, 64] {
            cells.give_back(index);
        }
        assert_eq!(cells.busy(0).count(), 67);
        assert_eq!(cells.take().unwrap().0, 3);
        assert_eq!(cells.take().unwrap().0, 64);
        assert_eq!(cells.busy(64).map(|(index, _)| index).collect::<Vec<_>>().len(), 5);
        assert_eq!(cells.take().unwrap().0, 69);
        assert_eq!(cells.take().map(|(index, _)| index), Err(Full));
    }

    #[test]
    fn a_whole_word_of_cells() {
        let cells = cells::<63, 0>();
        assert_eq!((0..64).filter(|_| cells.take().is_ok()).count(), 64);
        assert!(cells.take().is_err() && cells.count() == 64);
    }
}
