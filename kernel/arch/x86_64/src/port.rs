//! I/O ports the kernel drives by itself.

use core::arch::asm;

/// Writes a byte.
///
/// # Safety
/// The port's device must not be able to break memory safety when written this value.
pub(crate) unsafe fn write_u8(port: u16, value: u8) {
    // SAFETY: the instruction touches no memory; the device is the caller's promise.
    unsafe {
        asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags))
    }
}

/// Reads a byte.
///
/// # Safety
/// As for [`write_u8`]: reading may have effects on the device.
pub(crate) unsafe fn read_u8(port: u16) -> u8 {
    let value: u8;
    // SAFETY: as above.
    unsafe {
        asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack, preserves_flags))
    }
    value
}

/// Writes two bytes.
///
/// # Safety
/// As for [`write_u8`].
pub(crate) unsafe fn write_u16(port: u16, value: u16) {
    // SAFETY: as above.
    unsafe {
        asm!("out dx, ax", in("dx") port, in("ax") value, options(nomem, nostack, preserves_flags))
    }
}

/// Reads two bytes.
///
/// # Safety
/// As for [`read_u8`].
pub(crate) unsafe fn read_u16(port: u16) -> u16 {
    let value: u16;
    // SAFETY: as above.
    unsafe {
        asm!("in ax, dx", in("dx") port, out("ax") value, options(nomem, nostack, preserves_flags))
    }
    value
}
