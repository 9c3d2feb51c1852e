//! A reservation nobody looks at.
#![no_std]

use core_ledger::{ChargeError, Frames, Ledger};

/// Does not compile: the reservation is undone at once.
pub fn forget(ledger: &Ledger) -> Result<(), ChargeError> {
    ledger.reserve(Frames, 1)?;
    Ok(())
}
