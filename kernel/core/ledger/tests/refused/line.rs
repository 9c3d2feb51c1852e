//! A charge of one line merged into another.
#![no_std]

use core_ledger::{Charge, Frames, Threads};

/// Does not compile: the lines are different types.
pub fn merge<'l>(frames: &mut Charge<'l, Frames>, threads: Charge<'l, Threads>) {
    let _ = frames.merge(threads);
}
