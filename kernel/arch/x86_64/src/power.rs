//! The machine's end: switched off or reset, as its firmware says.
//!
//! Taken from the tables once, at boot; used when nothing runs any more. No lock is taken and nothing
//! allocated.
//!
//! Decided in ADR 262.

use crate::{console, exit, port};
use core_firmware::power::{NoPowerOff, PowerOff, Reset, SCI_ENABLE};
use spin::Once;

/// What the tables say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Power {
    /// How the machine is switched off, or why it cannot be.
    pub off: Result<PowerOff, NoPowerOff>,
    /// The reset register, if there is one.
    pub reset: Option<Reset>,
}

impl Power {
    /// That of a machine without tables.
    pub const UNKNOWN: Power = Power { off: Err(NoPowerOff::NoTable), reset: None };
}

static POWER: Once<Power> = Once::new();

/// How often the firmware is asked whether it has handed the registers over. Each look takes about a
/// microsecond on a real bus; firmware needs milliseconds.
const ENABLE_LOOKS: u32 = 3_000_000;
/// Pauses that a CPU makes after what should have ended it: longer than any bus cycle.
const END_PAUSES: u32 = 100_000;

/// The reset control register of PC chip sets, and a value that resets everything.
const RESET_CONTROL: Reset = Reset { port: 0xcf9, value: 0x06 };
/// The keyboard controller's command port, and its command that pulses the reset line.
const KEYBOARD_RESET: Reset = Reset { port: 0x64, value: 0xfe };

/// Keeps what the tables say, once.
pub fn init(power: Power) {
    POWER.call_once(|| power);
}

fn known() -> Power {
    POWER.get().copied().unwrap_or(Power::UNKNOWN)
}

/// Why a machine that should be off is still on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StillOn {
    /// It is not known how.
    Unknown(NoPowerOff),
    /// It does not do what its tables say.
    Ignored,
}

impl core::fmt::Display for StillOn {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            StillOn::Unknown(why) => why.fmt(f),
            StillOn::Ignored => f.write_str("the machine does not obey its PM1 control registers"),
        }
    }
}

/// Switches the machine off, after what waits to be printed; comes back only if that is not possible.
pub fn off() -> StillOn {
    console::flush();
    let PowerOff { pm1a, pm1b, types, enable } = match known().off {
        Ok(off) => off,
        Err(why) => return StillOn::Unknown(why),
    };
    // SAFETY: ports that the machine's own tables name for this; nothing else uses them. Memory is not
    // touched, and a machine that is off runs nothing.
    unsafe {
        if let Some((command, value)) = enable.filter(|_| port::read_u16(pm1a) & SCI_ENABLE == 0) {
            port::write_u8(command, value);
            // It may never: then the write below is tried all the same.
            for _ in 0..ENABLE_LOOKS {
                if port::read_u16(pm1a) & SCI_ENABLE != 0 {
                    break;
                }
            }
        }
        port::write_u16(pm1a, PowerOff::control(port::read_u16(pm1a), types.first));
        if let Some(pm1b) = pm1b {
            port::write_u16(pm1b, PowerOff::control(port::read_u16(pm1b), types.second));
        }
    }
    linger();
    StillOn::Ignored
}

/// Resets the machine, after what waits to be printed: by the register of its tables, by that of PC chip
/// sets, by the keyboard controller. Halts if none does.
pub fn reset() -> ! {
    console::flush();
    for Reset { port, value } in known().reset.into_iter().chain([RESET_CONTROL, KEYBOARD_RESET]) {
        // SAFETY: a register whose only use is to reset the machine; where there is none, the write
        // goes nowhere.
        unsafe { port::write_u8(port, value) };
        linger();
    }
    exit::stop()
}

/// What was written takes effect after some bus cycles.
fn linger() {
    for _ in 0..END_PAUSES {
        core::hint::spin_loop();
    }
}
