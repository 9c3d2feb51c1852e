//! The high precision event timer, as a reference counter. IA-PC HPET specification 1.0a, 2.3.

use crate::mmio::Mmio;
use core_address::PhysAddr;

const CAPABILITIES: usize = 0x00;
const CONFIGURATION: usize = 0x10;
const COUNTER: usize = 0xf0;
const ENABLE: u64 = 1;
const LEGACY_ROUTE: u64 = 2;
/// A tick's length is at most 100 ns (2.3.4), given in femtoseconds.
const MAX_PERIOD_FS: u64 = 100_000_000;
const FS_PER_S: u64 = 1_000_000_000_000_000;

/// A running counter.
#[derive(Clone, Copy, Debug)]
pub struct Hpet {
    registers: Mmio,
    hz: u64,
    is_wide: bool,
}

impl Hpet {
    /// Bytes its registers take.
    pub const REGISTER_BYTES: usize = 1024;

    /// Starts the counter; `None` if what it says of itself makes no sense.
    pub fn start(registers: Mmio) -> Option<Hpet> {
        let capabilities = registers.read_u64(CAPABILITIES);
        let period_fs = capabilities >> 32;
        if period_fs == 0 || period_fs > MAX_PERIOD_FS {
            return None;
        }
        // Running, and without the interval timer's interrupt.
        let configuration = registers.read_u64(CONFIGURATION) & !LEGACY_ROUTE | ENABLE;
        registers.write_u64(CONFIGURATION, configuration);
        Some(Hpet { registers, hz: FS_PER_S / period_fs, is_wide: capabilities >> 13 & 1 == 1 })
    }

    /// Its counter now, of [`Self::bits`] bits. Read in halves, because a bus may split a wide read:
    /// the upper half did not change around the lower one.
    pub fn counter(&self) -> u64 {
        let half = |offset| u64::from(self.registers.read_u32(COUNTER + offset));
        if !self.is_wide {
            return half(0);
        }
        let mut upper = half(4);
        loop {
            let lower = half(0);
            let again = half(4);
            if again == upper {
                return upper << 32 | lower;
            }
            upper = again;
        }
    }

    /// Whether it can be the clock of kernel and user mode: a counter that does not wrap, at the start of
    /// a page, which is mapped for user mode.
    pub fn is_clock(&self, registers: PhysAddr) -> bool {
        self.is_wide && registers.page_offset() == 0
    }

    /// How wide its counter is: a narrow one wraps after minutes.
    pub const fn bits(&self) -> u32 {
        if self.is_wide { 64 } else { 32 }
    }

    /// Ticks per second.
    pub const fn hz(&self) -> u64 {
        self.hz
    }
}
