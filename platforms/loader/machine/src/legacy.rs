//! The 8259 interrupt controllers and the I/O APICs: everything masked.

use x86_64::instructions::port::Port;

/// Masks every line of both 8259 controllers.
pub fn mask_pics() {
    const MASKS: [u16; 2] = [0x21, 0xa1];
    for port in MASKS {
        // SAFETY: the mask registers of the PC's interrupt controllers; where there are
        // none the write goes nowhere.
        unsafe { Port::<u8>::new(port).write(0xff) };
    }
}

/// Masks the I/O APIC inputs that would deliver an interrupt: fixed, lowest priority, NMI
/// and ExtINT. SMI and INIT entries are the firmware's. 82093AA, 3.2.4.
///
/// # Safety
/// `base` must be an I/O APIC's register window, mapped one to one.
pub unsafe fn mask_io_apic(base: u32) {
    const VERSION: u32 = 1;
    const FIRST_ENTRY: u32 = 0x10;
    const MASKED: u32 = 1 << 16;
    let select = base as usize as *mut u32;
    let window = (base as usize + 0x10) as *mut u32;
    // SAFETY: the caller gives a register window; selecting and reading a register has no
    // effect on the machine.
    let read = |register: u32| unsafe {
        select.write_volatile(register);
        window.read_volatile()
    };
    let inputs = (read(VERSION) >> 16 & 0xff) + 1;
    for input in 0..inputs {
        let register = FIRST_ENTRY + 2 * input;
        let low = read(register);
        let delivers = matches!(low >> 8 & 7, 0 | 1 | 4 | 7);
        if delivers && low & MASKED == 0 {
            // SAFETY: masking an input only keeps its interrupts away.
            unsafe {
                select.write_volatile(register);
                window.write_volatile(low | MASKED);
            }
        }
    }
}
