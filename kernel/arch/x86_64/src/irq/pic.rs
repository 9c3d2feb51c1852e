//! The two 8259 interrupt controllers. Intel 8259A data sheet.

use crate::port;
use core_irq::PIC_VECTOR;

const FIRST: u16 = 0x20;
const SECOND: u16 = 0xa0;
/// The data port lies behind the command port.
const DATA: u16 = 1;
/// Edge triggered, cascaded, four words.
const BEGIN: u8 = 0x11;
const MODE_8086: u8 = 0x01;
/// The line of the first that the second is on: as a mask for the first, as a number for the second.
const CASCADE: (u8, u8) = (1 << 2, 2);
const READ_IN_SERVICE: u8 = 0x0b;
const END: u8 = 0x20;

fn write(port: u16, value: u8) {
    // SAFETY: the controllers' ports; interrupts they raise lead to vectors that have entry code.
    unsafe { port::write_u8(port, value) }
}

/// Moves the lines to vectors of their own, away from the exceptions', and masks them all.
pub(super) fn init() {
    for (chip, vector, cascade) in
        [(FIRST, PIC_VECTOR, CASCADE.0), (SECOND, PIC_VECTOR + 8, CASCADE.1)]
    {
        write(chip, BEGIN);
        for word in [vector, cascade, MODE_8086] {
            write(chip + DATA, word);
        }
    }
    set_mask(u16::MAX);
}

/// Masks the lines whose bits are set.
pub(super) fn set_mask(mask: u16) {
    let [first, second] = mask.to_le_bytes();
    write(FIRST + DATA, first);
    write(SECOND + DATA, second);
}

/// Whether a line's interrupt is being served, as far as the controllers know.
pub(super) fn is_in_service(line: u8) -> bool {
    let chip = if line < 8 { FIRST } else { SECOND };
    write(chip, READ_IN_SERVICE);
    // SAFETY: as for `write`; the read has no effect.
    let lines = unsafe { port::read_u8(chip) };
    lines >> (line % 8) & 1 == 1
}

/// Ends the interrupt being served at the first, and at the second as well if it came from there.
pub(super) fn end(is_both: bool) {
    if is_both {
        write(SECOND, END);
    }
    write(FIRST, END);
}
