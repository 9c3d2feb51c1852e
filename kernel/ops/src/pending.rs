//! The pending operations of a thread: their cells, and beside each the timer that may bound it.

use crate::paid::{NoMemory, PaidVec, pay_for_bytes};
use abi_sync::atomic::AtomicU64;
use core::ops::Deref;
use core_ledger::{Charge, KernelBytes, Ledger};
use smp_pending::{Cell, Cells};
use smp_timer::{Pinned, Timers};

/// The cells of a thread's pending operations, as many as its ring has completions, each with a timer; and the timer
/// for the time limit of the thread's `cap_enter`. Made with the ring, and gone with it.
#[derive(Debug)]
pub struct Pending {
    cells: Cells<PaidVec<Cell>, PaidVec<AtomicU64>>,
    /// That of `cap_enter`, then one for each cell.
    timers: Timers,
    /// Pays for the timers.
    _paid: Charge<'static, KernelBytes>,
}

/// Cells or timers made between two pauses: as many as fit a section of kernel code (`section`).
const PER_PAUSE: u32 = 128;

impl Pending {
    /// The number of the timer for `cap_enter`.
    pub(crate) const ENTER: u32 = 0;

    /// Room for so many operations, which `ledger` pays for. `pause` is called between two pieces of the
    /// work.
    pub fn new(ledger: &'static Ledger, count: u32, pause: impl Fn()) -> Result<Self, NoMemory> {
        let others = count.saturating_sub(1) as usize;
        let more = count.div_ceil(u64::BITS).saturating_sub(1) as usize;
        let pause_at = |number: u32| {
            if number % PER_PAUSE == PER_PAUSE - 1 {
                pause();
            }
        };
        let cells = PaidVec::of(ledger, others, |number| {
            pause_at(number as u32);
            Cell::default()
        })?;
        let cells = Cells::new(cells, PaidVec::of(ledger, more, |_| AtomicU64::new(0))?);
        pause();
        let timers = count.saturating_add(1);
        let paid = pay_for_bytes(ledger, Timers::bytes(timers))?;
        Ok(Self { cells, timers: Timers::new_with(timers, pause_at)?, _paid: paid })
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
    type Target = Cells<PaidVec<Cell>, PaidVec<AtomicU64>>;

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        &self.cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::boxed::Box;
    use core_ledger::{Line, Profile};

    #[test]
    fn every_cell_has_a_timer_and_cap_enter_another() {
        let ledger: &'static Ledger =
            Box::leak(Box::new(Ledger::new(&Profile { kernel_bytes: 1 << 20, ..Profile::NONE })));
        let pending = Pending::new(ledger, 130, || {}).unwrap();
        assert_eq!(pending.count(), 130);
        assert!(pending.of_enter().is_some());
        for cell in 0..130 {
            assert!(pending.with_timer(cell).is_some());
            assert_eq!(Pending::index_of(Pending::number_of(cell)), Some(cell));
        }
        assert!(pending.with_timer(130).is_none());
        assert_eq!(Pending::index_of(Pending::ENTER), None);
        assert!(ledger.reading(Line::KernelBytes).used as usize > Timers::bytes(131));
        drop(pending);
        assert_eq!(ledger.reading(Line::KernelBytes).used, 0);
    }
}
