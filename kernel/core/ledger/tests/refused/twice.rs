//! A charge released twice.
#![no_std]

use core_ledger::{Charge, Frames};

/// Does not compile: the first release consumes the charge.
pub fn release_twice(charge: Charge<'_, Frames>) {
    charge.release();
    charge.release();
}
