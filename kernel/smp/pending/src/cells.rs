//! The cells of one thread, and which are free.

use crate::{Cell, Operation};
use abi_ring::Credit;
use abi_sync::atomic::{AtomicU64, Ordering};

/// Cells in one word of the map.
const WORD: u32 = u64::BITS;

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
            word.store(lowest_bits(left), Ordering::Relaxed);
            left = left.saturating_sub(WORD);
        }
        Self { one: Cell::default(), first, others, more }
    }

    /// Keeps an operation in a free cell; the credit comes back if there is none. By the owner alone.
    #[inline]
    pub fn keep(&self, credit: Credit, operation: &Operation) -> Result<(u32, &Cell), Credit> {
        let Some((index, cell)) = self.take() else { return Err(credit) };
        cell.set(credit, operation);
        Ok((index, cell))
    }

    /// As [`keep`](Self::keep), in fewer steps, for an operation whose message and results are inline.
    #[inline(always)]
    pub fn keep_inline(
        &self,
        credit: Credit,
        method: u16,
        slot: u16,
        length: u32,
    ) -> Result<(u32, &Cell), Credit> {
        let Some((index, cell)) = self.take() else { return Err(credit) };
        cell.set_inline(credit, method, slot, length);
        Ok((index, cell))
    }

    /// Takes a free cell, the one with the lowest number. By the owner alone.
    #[inline(always)]
    fn take(&self) -> Option<(u32, &Cell)> {
        // Acquire: pairs with the Release in `give_back`; the reads of the cell's last user came
        // before the writes that follow.
        if self.first.load(Ordering::Acquire) & 1 == 0 {
            return self.take_another();
        }
        // Only the owner clears bits, so this one is still set.
        self.first.fetch_and(!1, Ordering::Relaxed);
        Some((0, &self.one))
    }

    #[inline(never)]
    fn take_another(&self) -> Option<(u32, &Cell)> {
        for (word, base) in self.words().zip((0_u32..).step_by(WORD as usize)) {
            // As in `take`.
            let free = word.load(Ordering::Acquire);
            if free != 0 {
                let bit = free.trailing_zeros();
                word.fetch_and(!(1 << bit), Ordering::Relaxed);
                let index = base + bit;
                return Some((index, self.get(index)?));
            }
        }
        None
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

    /// Ends an operation: takes its credit out and gives its cell back, after the last look at it. Once,
    /// by the one who claimed the outcome, under the completion lock or as the owner before anyone else
    /// knows of it. `None` if the cell is free: its thread was taken apart meanwhile.
    #[inline(always)]
    pub fn finish(&self, index: u32) -> Option<Credit> {
        let cell = self.get(index)?;
        let credit = cell.credit();
        self.give_back(index).then_some(credit)
    }

    /// Gives back the cell of an operation that is never completed: its ring is about to go, and the credit
    /// with it. By the one who takes the thread apart, under the completion lock. `false` if it was free.
    #[must_use = "what a cell held is to be let go of, once"]
    pub fn drop_with_ring(&self, index: u32) -> bool {
        self.give_back(index)
    }

    /// Gives a cell back; `false` if it was free. Nobody else gives it back at the same time: the look and
    /// the change need not be one step.
    #[inline(always)]
    fn give_back(&self, index: u32) -> bool {
        if index != 0 {
            return self.give_back_another(index);
        }
        let is_busy = self.first.load(Ordering::Relaxed) & 1 == 0;
        if is_busy {
            // Release, here and below: pairs with the Acquire in `take`.
            self.first.fetch_or(1, Ordering::Release);
        }
        is_busy
    }

    #[inline(never)]
    fn give_back_another(&self, index: u32) -> bool {
        let bit = 1 << (index % WORD);
        self.word(index).is_some_and(|word| word.fetch_or(bit, Ordering::Release) & bit == 0)
    }

    /// The cells in use from number `from` on, as the owner or its heir sees them.
    pub fn busy(&self, from: u32) -> impl Iterator<Item = (u32, &Cell)> {
        let count = self.count();
        let used = move |(word, base): (&AtomicU64, u32)| {
            // A bit that is not set may have no cell: those of a short last word.
            let is_meant =
                lowest_bits(count.saturating_sub(base)) & !lowest_bits(from.saturating_sub(base));
            bits(!word.load(Ordering::Acquire) & is_meant).map(move |bit| base + bit)
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

/// So many of the lowest bits, all of them if it is more than a word has.
const fn lowest_bits(count: u32) -> u64 {
    if count < WORD { (1 << count) - 1 } else { u64::MAX }
}

/// The numbers of the bits that are set.
fn bits(mut word: u64) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let bit = word.trailing_zeros();
        word &= word.wrapping_sub(1);
        (bit < WORD).then_some(bit)
    })
}
