//! Who pays for the slots of a table.

use core_ledger::{CapSlots, Charge};

/// Pays for slots, one at a time, and has the payment back when the slot is empty again.
pub trait Payer {
    /// Pays for one more slot; `false`, and nothing changes, if it cannot.
    fn pay(&mut self) -> bool;
    /// A slot it paid for is empty.
    fn refund(&mut self);
}

/// Nobody.
impl Payer for () {
    fn pay(&mut self) -> bool {
        true
    }

    fn refund(&mut self) {}
}

/// The account of a process: the charge is as large as the table has slots in use.
impl Payer for Charge<'_, CapSlots> {
    #[inline]
    fn pay(&mut self) -> bool {
        self.reserve_more(1).is_ok_and(|slot| self.merge(slot.commit()).is_ok())
    }

    #[inline]
    fn refund(&mut self) {
        let slot = self.split(1);
        debug_assert!(slot.is_some(), "a slot that nobody paid for was in use");
    }
}
