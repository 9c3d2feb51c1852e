//! Time before there is a clock: the CMOS date and the interval timer as a ruler.

use loader_core::date::Civil;
use x86_64::instructions::port::Port;

use crate::cpu::timestamp;

fn cmos(register: u8) -> u8 {
    const NO_NMI: u8 = 0x80;
    // SAFETY: index and data port of the CMOS clock; reading changes nothing but the index.
    unsafe {
        Port::<u8>::new(0x70).write(register | NO_NMI);
        Port::<u8>::new(0x71).read()
    }
}

/// The CMOS clock's date, taken as UTC; `None` if there is no sensible one.
///
/// The century is 20: its register's place differs between machines.
pub fn cmos_seconds() -> Option<i64> {
    const STATUS_A: u8 = 0x0a;
    const STATUS_B: u8 = 0x0b;
    const UPDATING: u8 = 0x80;
    const REGISTERS: [u8; 6] = [0, 2, 4, 7, 8, 9];
    let read = || {
        // An update lasts 2 ms; a machine without a clock reads all ones for ever.
        for _ in 0..100_000 {
            if cmos(STATUS_A) & UPDATING == 0 {
                break;
            }
        }
        REGISTERS.map(cmos)
    };
    // Two equal readings were not torn by an update.
    let mut fields = read();
    for _ in 0..4 {
        let again = read();
        if again == fields {
            break;
        }
        fields = again;
    }
    let status = cmos(STATUS_B);
    let is_binary = status & 4 != 0;
    let is_24_hours = status & 2 != 0;
    let number = |raw: u8| if is_binary { raw } else { (raw >> 4) * 10 + (raw & 15) };
    let [second, minute, raw_hour, day, month, year] = fields;
    let afternoon = !is_24_hours && raw_hour & 0x80 != 0;
    let mut hour = number(raw_hour & if is_24_hours { 0xff } else { 0x7f });
    if !is_24_hours {
        hour = hour % 12 + if afternoon { 12 } else { 0 };
    }
    Civil {
        year: 2000 + i64::from(number(year)),
        month: number(month),
        day: number(day),
        hour,
        minute: number(minute),
        second: number(second),
    }
    .unix_seconds()
}

/// Measures the time stamp counter against channel 2 of the interval timer for about two
/// milliseconds; `None` if the timer does not run.
pub fn measure_tsc_hz() -> Option<u64> {
    const PIT_HZ: u64 = 1_193_182;
    const TICKS: u16 = 2_386;
    let mut gate = Port::<u8>::new(0x61);
    let mut command = Port::<u8>::new(0x43);
    let mut counter = Port::<u8>::new(0x42);
    // SAFETY: channel 2 drives the speaker only, which stays disconnected (bit 1 clear).
    unsafe {
        let before = gate.read();
        gate.write((before & !2) | 1);
        // Channel 2, both bytes, mode 0 (interrupt on terminal count: output rises at zero).
        command.write(0b1011_0000);
        counter.write((TICKS & 0xff) as u8);
        counter.write((TICKS >> 8) as u8);
        let start = timestamp();
        let mut risen = false;
        for _ in 0..10_000_000u32 {
            if gate.read() & 0x20 != 0 {
                risen = true;
                break;
            }
        }
        let elapsed = timestamp() - start;
        gate.write(before);
        (risen && elapsed > 0).then(|| elapsed * PIT_HZ / u64::from(TICKS))
    }
}

/// Waits about `microseconds`: a read of port 0x80 takes about one.
pub fn delay_us(microseconds: u32) {
    for _ in 0..microseconds {
        // SAFETY: the diagnostic port; reading has no effect.
        unsafe { Port::<u8>::new(0x80).read() };
        // An emulator that runs processors in turn gives the turn away here.
        core::hint::spin_loop();
    }
}
