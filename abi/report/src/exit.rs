//! The exit port: how a guest ends the emulator and says why.

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
    /// The kernel does not run on this machine, and said why before it ran anything.
    Refused = 0x14,
}

impl Exit {
    /// Every code a guest may end with.
    pub const ALL: [Exit; 5] =
        [Exit::Pass, Exit::Fail, Exit::Panic, Exit::GuestTimeout, Exit::Refused];

    /// The status QEMU ends with when the guest writes this code.
    pub const fn qemu_status(self) -> i32 {
        ((self as i32) << 1) | 1
    }

    /// The code behind a status QEMU ended with, if a guest's code is what ended it.
    pub fn from_qemu_status(status: i32) -> Option<Exit> {
        Exit::ALL.into_iter().find(|exit| exit.qemu_status() == status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_distinct_from_each_other_and_from_qemus_own() {
        let statuses = Exit::ALL.map(Exit::qemu_status);
        assert_eq!(statuses, [0x21, 0x23, 0x25, 0x27, 0x29]);
        for status in -1..256 {
            let exit = Exit::from_qemu_status(status);
            assert_eq!(exit.is_some(), statuses.contains(&status), "status {status}");
        }
        // 0: quit or guest reset; 1: QEMU refuses its command line.
        assert_eq!(Exit::from_qemu_status(0), None);
        assert_eq!(Exit::from_qemu_status(1), None);
    }
}
