//! Ways a run ends: through the debug exit port, or halted for good. [`power`](crate::power) has the others.

use crate::{console, port};
use abi_report::{EXIT_PORT, Exit};
use core::arch::asm;

/// Ends the machine with a verdict, if it has a debug exit device; comes back otherwise. What waits to be
/// printed is printed first.
pub fn debug_exit(verdict: Exit) {
    console::flush();
    // SAFETY: the port belongs to QEMU's isa-debug-exit device, which ends the emulator; on a
    // machine without one the write goes nowhere.
    unsafe { port::write_u8(EXIT_PORT, verdict as u8) };
}

/// Ends the run with this CPU, after what waits to be printed.
pub fn halt() -> ! {
    console::flush();
    stop()
}

/// Stops this CPU for good. Only NMI, SMI and INIT still reach it.
pub(crate) fn stop() -> ! {
    loop {
        // SAFETY: with interrupts off and no way on, nothing of this CPU runs any more.
        unsafe { asm!("cli", "hlt", options(nomem, nostack)) };
    }
}
