//! The few machine operations a guest without a kernel needs: its ports, and ways not to end.

use abi_report::{CONSOLE_PORT, EXIT_PORT, Exit, RECORDS_PORT, Sink};
use core::arch::asm;
use test_kit::Port;

fn out(port: u16, byte: u8) {
    // SAFETY: the callers below name the serial ports and the exit port only; writing there
    // has no effect on this program's memory.
    unsafe { asm!("out dx, al", in("dx") port, in("al") byte, options(nomem, nostack)) }
}

/// Both ends of the machine a guest talks to: record port and exit port.
pub struct Machine;

impl Sink for Machine {
    /// QEMU's serial port takes a byte whenever it is written; nothing to wait for.
    fn write(&mut self, byte: u8) {
        out(RECORDS_PORT, byte);
    }
}

impl Port for Machine {
    fn exit(&mut self, exit: Exit) -> ! {
        exit_with(exit as u8)
    }
}

/// Ends QEMU with any code, also one that is no verdict.
pub fn exit_with(code: u8) -> ! {
    out(EXIT_PORT, code);
    hang()
}

/// Prints on the console.
pub struct Console;

impl core::fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        text.bytes().for_each(|byte| out(CONSOLE_PORT, byte));
        Ok(())
    }
}

/// Runs forever without doing anything, in a function that what is kept of the run can name.
#[inline(never)]
pub fn hang() -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// Resets the machine by a fault without handlers: breakpoint, general protection fault,
/// double fault, shutdown (Intel SDM volume 3, 6.15, interrupt 8).
pub fn triple_fault() -> ! {
    #[repr(C, packed)]
    struct Table {
        limit: u16,
        base: u64,
    }
    let none = Table { limit: 0, base: 0 };
    // SAFETY: no interrupt is ever enabled here, and the fault that follows is the purpose.
    unsafe { asm!("lidt [{}]", "int3", in(reg) &none, options(noreturn)) }
}
