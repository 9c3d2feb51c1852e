//! What a guest under test tells its harness: the exit port and its codes.
//!
//! Compiles unchanged in the kernel, in user programs and in the host's runner.
#![no_std]

/// I/O port of QEMU's `isa-debug-exit` device as every harness configuration places it.
pub const EXIT_PORT: u16 = 0xf4;

/// The verdict a guest writes to [`EXIT_PORT`]; QEMU then ends with status `code << 1 | 1`.
///
/// Status 0 is never a verdict: a triple fault under `-no-reboot` gives it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Every planned test ran and passed.
    Pass = 0x10,
    /// A test failed.
    Fail = 0x11,
    /// The kernel panicked.
    Panic = 0x12,
    /// The guest's own watchdog ended a run that made no progress.
    GuestTimeout = 0x13,
}

impl Exit {
    /// The status QEMU ends with when the guest writes this code.
    pub const fn qemu_status(self) -> i32 {
        ((self as i32) << 1) | 1
    }
}
