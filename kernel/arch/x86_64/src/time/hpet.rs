//! The high precision event timer, as a reference counter. IA-PC HPET specification 1.0a, 2.3.

use crate::mmio::Mmio;
use core_address::PhysAddr;

const CAPABILITIES: usize = 0x00;
const CONFIGURATION: usize = 0x10;
const COUNTER: usize = 0xf0;
const ENABLE: u64 = 1;
const LEGACY_ROUTE: u64 = 2;
/// A comparator's configuration and value (2.3.8, 2.3.9).
const COMPARATORS: usize = 0x100;
const COMPARATOR_BYTES: usize = 0x20;
const VALUE: usize = 8;
const BY_LEVEL: u32 = 1 << 1;
const INTERRUPTS: u32 = 1 << 2;
const PERIODIC: u32 = 1 << 3;
const CAN_BE_PERIODIC: u32 = 1 << 4;
const SETS_VALUE: u32 = 1 << 6;
const NARROW: u32 = 1 << 8;
const ROUTE: u32 = 9;
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

    /// Lets a comparator interrupt on a line every so many ticks, from now on: for a kernel that has its tests' devices
    /// interrupt. `false` if it cannot. Nobody clears its status, so a line by level stays active.
    pub fn interrupt_every(&self, comparator: usize, line: u8, is_level: bool, ticks: u32) -> bool {
        let count = (self.registers.read_u32(CAPABILITIES) >> 8 & 0x1f) as usize + 1;
        let at = COMPARATORS + COMPARATOR_BYTES * comparator;
        let can_be_periodic = self.registers.read_u32(at) & CAN_BE_PERIODIC != 0;
        let has_line = self.registers.read_u32(at + 4) >> line & 1 == 1;
        if comparator >= count || !can_be_periodic || !has_line {
            return false;
        }
        let level = if is_level { BY_LEVEL } else { 0 };
        let how = INTERRUPTS | PERIODIC | SETS_VALUE | NARROW | level | u32::from(line) << ROUTE;
        self.registers.write_u32(at, how);
        // The first value, then the period.
        let now = self.registers.read_u32(COUNTER);
        self.registers.write_u32(at + VALUE, now.wrapping_add(ticks));
        self.registers.write_u32(at + VALUE, ticks);
        true
    }

    /// Ticks per second.
    pub const fn hz(&self) -> u64 {
        self.hz
    }
}
