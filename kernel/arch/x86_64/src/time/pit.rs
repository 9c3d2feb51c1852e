//! The programmable interval timer: channel 2 as a reference counter where there is no HPET, channel 0 as the
//! one-shot timer where there is no local APIC's.
//!
//! Intel 8254 data sheet. Channel 2 is the one whose gate software controls and that raises no
//! interrupt; channel 0 is wired to the first legacy interrupt.

use crate::port;
use core_clock::Extended;

/// Ticks per second.
pub(super) const HZ: u64 = 1_193_182;

/// The longest channel 0 counts.
pub(super) const MAX_COUNT: u64 = 0xffff;

const CHANNEL_0: u16 = 0x40;
const CHANNEL_2: u16 = 0x42;
const COMMAND: u16 = 0x43;
const GATE: u16 = 0x61;
/// Channel 2, low byte then high byte, mode 0: counts down once.
const COUNT_DOWN: u8 = 0b1011_0000;
/// The same for channel 0. Its output rises, which is the interrupt, when the count is over.
const COUNT_DOWN_0: u8 = 0b0011_0000;
const LATCH_2: u8 = 0b1000_0000;
const GATE_ON: u8 = 1;
const SPEAKER_ON: u8 = 2;

/// Interrupts once, after so many counts.
pub(super) fn interrupt_after(counts: u16) {
    let [low, high] = counts.to_le_bytes();
    // SAFETY: the timer's ports do nothing to memory.
    unsafe {
        port::write_u8(COMMAND, COUNT_DOWN_0);
        port::write_u8(CHANNEL_0, low);
        port::write_u8(CHANNEL_0, high);
    }
}

/// Runs `body` with a function that reads a counter going up from 0; `None` if it does not move.
pub(super) fn with_counter<T>(
    body: impl FnOnce(&mut dyn FnMut() -> u64) -> Option<T>,
) -> Option<T> {
    // SAFETY: the timer's ports and the gate port do nothing to memory; the speaker stays off.
    let before = unsafe {
        let before = port::read_u8(GATE);
        port::write_u8(GATE, before & !SPEAKER_ON | GATE_ON);
        port::write_u8(COMMAND, COUNT_DOWN);
        port::write_u8(CHANNEL_2, 0xff);
        port::write_u8(CHANNEL_2, 0xff);
        before
    };
    // It counts down and starts over at the top after 55 ms.
    let up = || u64::from(!latched());
    let mut counter = Extended::new(u16::BITS, up());
    let mut read = || counter.read(up());
    let moves = (0..10_000).any(|_| read() != 0);
    let result = if moves { body(&mut read) } else { None };
    // SAFETY: as above; puts the gate back as it was.
    unsafe { port::write_u8(GATE, before) };
    result
}

fn latched() -> u16 {
    // SAFETY: as in `with_counter`.
    unsafe {
        port::write_u8(COMMAND, LATCH_2);
        let low = port::read_u8(CHANNEL_2);
        u16::from_le_bytes([low, port::read_u8(CHANNEL_2)])
    }
}
