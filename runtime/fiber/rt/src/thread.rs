//! Ordinary threads of the system below, which may use channels and locks as fibers do.

use alloc::boxed::Box;

use crate::substrate::{Substrate, Sys, SystemError};

/// A thread that is no worker.
pub struct Thread(<Sys as Substrate>::Thread);

impl Thread {
    /// Starts one. On capOS its stack is one of those the program declares with
    /// [`stacks!`](crate::stacks).
    pub fn spawn(name: &str, f: impl FnOnce() + Send + 'static) -> Result<Self, SystemError> {
        Sys::spawn(name, Box::new(f)).map(Self)
    }

    /// Gives the caller's CPU away for a moment: its thread's, not only its fiber's.
    pub fn pause() {
        Sys::relax();
    }

    /// Waits for its end. Blocks the caller's thread; on capOS a fiber waits alone if its worker's
    /// ring has room.
    pub fn join(self) {
        Sys::join(self.0);
    }
}

impl core::fmt::Debug for Thread {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str("Thread")
    }
}
