//! The cells of one thread, and which are free.

use crate::Cell;
use abi_sync::atomic::{AtomicU64, Ordering};

/// Cells in one word of the map.
const WORD: u32 = u64::BITS;

/// All cells are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// The cells of one thread, over storage from outside: `C` cells and `M` one bit for each.
#[derive(Debug)]
pub struct Cells<C, M> {
    cells: C,
    /// A set bit is a free cell.
    free: M,
}

impl<C: AsRef<[Cell]>, M: AsRef<[AtomicU64]>> Cells<C, M> {
    /// All free, those that have a bit.
    pub fn new(cells: C, free: M) -> Self {
        let mut left = u32::try_from(cells.as_ref().len()).unwrap_or(u32::MAX);
        for word in free.as_ref() {
            let here = left.min(WORD);
            let bits = if here == WORD { u64::MAX } else { (1 << here) - 1 };
            word.store(bits, Ordering::Relaxed);
            left -= here;
        }
        Self { cells, free }
    }

    /// Takes a free cell. By the owner alone.
    #[inline(always)]
    pub fn take(&self) -> Result<(u32, &Cell), Full> {
        for (word, base) in self.free.as_ref().iter().zip((0_u32..).step_by(WORD as usize)) {
            // Acquire: pairs with the Release in `give_back`; the reads of the cell's last user
            // came before the writes that follow.
            let free = word.load(Ordering::Acquire);
            if free != 0 {
                let bit = free.trailing_zeros();
                // Only the owner clears bits, so this one is still set.
                word.fetch_and(!(1 << bit), Ordering::Relaxed);
                let index = base + bit;
                let cell = self.cells.as_ref().get(index as usize).ok_or(Full)?;
                return Ok((index, cell));
            }
        }
        Err(Full)
    }

    /// The cell of that number.
    #[inline]
    pub fn get(&self, index: u32) -> Option<&Cell> {
        self.cells.as_ref().get(index as usize)
    }

    /// Gives a cell back. By whoever claimed its operation, after the last look at it.
    #[inline]
    pub fn give_back(&self, index: u32) {
        if let Some(word) = self.free.as_ref().get((index / WORD) as usize) {
            // Release: pairs with the Acquire in `take`.
            word.fetch_or(1 << (index % WORD), Ordering::Release);
        }
    }

    /// The cells in use from number `from` on, as the owner or its heir sees them.
    pub fn busy(&self, from: u32) -> impl Iterator<Item = (u32, &Cell)> {
        let map = self.free.as_ref();
        (0_u32..).zip(self.cells.as_ref()).skip(from as usize).filter(move |(index, _)| {
            map.get((index / WORD) as usize)
                .is_some_and(|word| word.load(Ordering::Acquire) >> (index % WORD) & 1 == 0)
        })
    }

    /// How many cells there are.
    pub fn count(&self) -> u32 {
        u32::try_from(self.cells.as_ref().len()).unwrap_or(u32::MAX)
    }
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
        let cells = cells::<70, 2>();
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
        let cells = cells::<64, 1>();
        assert_eq!((0..64).filter(|_| cells.take().is_ok()).count(), 64);
        assert!(cells.take().is_err() && cells.count() == 64);
    }
}
