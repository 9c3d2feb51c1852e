//! The pending operations of a thread: their cells, and beside each the timer that may bound it.

use abi_sync::atomic::AtomicU64;
use alloc::vec::Vec;
use core::ops::Deref;
use core_fallible::{OutOfMemory, try_collect};
use smp_pending::{Cell, Cells};
use smp_timer::{Pinned, Timers};

/// The cells of a thread's pending operations, as many as its ring has completions, each with a timer; and the timer
/// for the time limit of the thread's `cap_enter`. Made with the ring, and gone with it.
#[derive(Debug)]
pub struct Pending {
    cells: Cells<Vec<Cell>, Vec<AtomicU64>>,
    /// That of `cap_enter`, then one for each cell.
    timers: Timers,
}

impl Pending {
    /// The number of the timer for `cap_enter`.
    pub(crate) const ENTER: u32 = 0;

    /// Room for so many operations. `pause` is called between two pieces of the work.
    pub fn new(count: u32, pause: impl FnOnce()) -> Result<Self, OutOfMemory> {
        let cells = try_collect((1..count).map(|_| Cell::default()))?;
        let words = count.div_ceil(u64::BITS);
        let cells = Cells::new(cells, try_collect((1..words).map(|_| AtomicU64::new(0)))?);
        pause();
        Ok(Self { cells, timers: Timers::new(count.saturating_add(1))? })
    }

    /// The number of a cell's timer.
    #[inline]
    pub(crate) const fn number_of(cell: u32) -> u32 {
        cell + 1
    }

    /// The cell of a timer's number; `None` for that of `cap_enter`.
    #[inline]
    pub(crate) const fn index_of(number: u32) -> Option<u32> {
        number.checked_sub(1)
    }

    /// A cell with its timer.
    #[inline]
    pub(crate) fn with_timer(&self, cell: u32) -> Option<(&Cell, Pinned<'_>)> {
        Some((self.cells.get(cell)?, self.timers.get(Self::number_of(cell))?))
    }

    /// The timer for `cap_enter`.
    #[inline]
    pub(crate) fn of_enter(&self) -> Option<Pinned<'_>> {
        self.timers.get(Self::ENTER)
    }
}

impl Deref for Pending {
    type Target = Cells<Vec<Cell>, Vec<AtomicU64>>;

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        &self.cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_a_timer_and_cap_enter_another() {
        let pending = Pending::new(130, || {}).unwrap();
        assert_eq!(pending.count(), 130);
        assert!(pending.of_enter().is_some());
        for cell in 0..130 {
            assert!(pending.with_timer(cell).is_some());
            assert_eq!(Pending::index_of(Pending::number_of(cell)), Some(cell));
        }
        assert!(pending.with_timer(130).is_none());
        assert_eq!(Pending::index_of(Pending::ENTER), None);
    }
}
