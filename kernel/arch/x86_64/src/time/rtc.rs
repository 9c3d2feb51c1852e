//! The real-time clock, read once at boot. `core_rtc` says what its registers mean.
//!
//! Decided in ADR 264.

use crate::port;
use core_rtc::Registers;

/// Selects a register; bit 7 would hold NMIs back, and stays clear.
const INDEX: u16 = 0x70;
const DATA: u16 = 0x71;

const STATUS_A: u8 = 0x0a;
const STATUS_B: u8 = 0x0b;
/// Status register A: the registers are about to change.
const IS_CHANGING: u8 = 1 << 7;
/// How often the chip is looked at: it changes its registers for 2 ms of a second at most, and a look takes
/// about a microsecond.
const LOOKS: u32 = 20_000;

fn read(register: u8) -> u8 {
    // SAFETY: the ports are the clock chip's; reading registers changes nothing. Nothing else uses them once
    // the kernel runs, and it runs on one CPU here.
    unsafe {
        port::write_u8(INDEX, register & 0x7f);
        port::read_u8(DATA)
    }
}

fn read_all(century: Option<u8>) -> Registers {
    Registers {
        seconds: read(0x00),
        minutes: read(0x02),
        hours: read(0x04),
        day: read(0x07),
        month: read(0x08),
        year: read(0x09),
        century: century.map(read),
        status_b: read(STATUS_B),
    }
}

/// The registers, the same at two readings while the chip did not change them; `None` if there is no such
/// chip. `century` is the register that the firmware names for it. On the boot CPU, before others use ports.
pub fn read_clock(century: Option<u8>) -> Option<Registers> {
    let mut last = None;
    for _ in 0..LOOKS {
        if read(STATUS_A) & IS_CHANGING != 0 {
            last = None;
            continue;
        }
        let now = read_all(century);
        if last == Some(now) {
            // A bus without the chip reads as ones.
            return Some(now).filter(|now| now.seconds != 0xff || now.status_b != 0xff);
        }
        last = Some(now);
    }
    None
}
