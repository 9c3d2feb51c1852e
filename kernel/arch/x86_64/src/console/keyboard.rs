//! The keyboard behind an 8042 controller. IBM PS/2 technical reference, keyboard controller.

use crate::port;
use core_keyboard::{Bytes, Decoder};

const DATA: u16 = 0x60;
const COMMAND: u16 = 0x64;

const STATUS_FULL: u8 = 1 << 0;
const STATUS_BUSY: u8 = 1 << 1;
/// What is to be read comes from a mouse.
const STATUS_MOUSE: u8 = 1 << 5;

const READ_CONFIGURATION: u8 = 0x20;
const WRITE_CONFIGURATION: u8 = 0x60;
const DISABLE_MOUSE: u8 = 0xa7;
const DISABLE_KEYBOARD: u8 = 0xad;
const ENABLE_KEYBOARD: u8 = 0xae;
/// The next byte comes back as if the keyboard had sent it.
const ECHO: u8 = 0xd2;

const INTERRUPT: u8 = 1 << 0;
const MOUSE_INTERRUPT: u8 = 1 << 1;
const KEYBOARD_OFF: u8 = 1 << 4;
/// Scan codes come in set 1.
const TRANSLATE: u8 = 1 << 6;

/// Looks at the controller before it counts as absent: some milliseconds, it answers in microseconds.
const POLLS: u32 = 10_000;
/// Bytes taken out at once: the controller holds one, an emulator's sixteen.
const MOST: usize = 16;

/// A keyboard that interrupts.
pub(super) struct Keyboard {
    decoder: Decoder,
}

fn status() -> u8 {
    // SAFETY: reading the status has no effect.
    unsafe { port::read_u8(COMMAND) }
}

fn wait_for(is_it: impl Fn(u8) -> bool) -> Option<()> {
    (0..POLLS).any(|_| is_it(status())).then_some(())
}

fn write(port: u16, value: u8) -> Option<()> {
    wait_for(|status| status & STATUS_BUSY == 0)?;
    // SAFETY: the controller's ports; none of the commands used here resets the machine.
    unsafe { port::write_u8(port, value) };
    Some(())
}

fn read() -> u8 {
    // SAFETY: as for `write`.
    unsafe { port::read_u8(DATA) }
}

impl Keyboard {
    /// The keyboard, set to interrupt; `None` if there is no controller.
    pub(super) fn open() -> Option<Keyboard> {
        // A bus without a device answers with ones.
        if status() == 0xff {
            return None;
        }
        write(COMMAND, DISABLE_KEYBOARD)?;
        write(COMMAND, DISABLE_MOUSE)?;
        // What was typed to the firmware is not for the kernel.
        for _ in 0..MOST {
            if status() & STATUS_FULL != 0 {
                let _old = read();
            }
        }
        write(COMMAND, READ_CONFIGURATION)?;
        wait_for(|status| status & STATUS_FULL != 0)?;
        let configuration = read() & !(MOUSE_INTERRUPT | KEYBOARD_OFF) | INTERRUPT | TRANSLATE;
        write(COMMAND, WRITE_CONFIGURATION)?;
        write(DATA, configuration)?;
        write(COMMAND, ENABLE_KEYBOARD)?;
        Some(Keyboard { decoder: Decoder::new() })
    }

    /// Takes what the controller holds, as the bytes a terminal would send.
    pub(super) fn read(&mut self, mut give: impl FnMut(Bytes)) {
        for _ in 0..MOST {
            let status = status();
            if status & STATUS_FULL == 0 {
                return;
            }
            let code = read();
            if status & STATUS_MOUSE == 0 {
                give(self.decoder.feed(code));
            }
        }
    }

    /// Has the controller hand out a scan code as if a key had sent it.
    pub(super) fn echo(&mut self, code: u8) {
        // A controller that does not take it hands out nothing.
        let _echoed = write(COMMAND, ECHO).and_then(|()| write(DATA, code));
    }
}
