//! I/O APICs: redirection entries. Intel 82093AA data sheet, 3.

use crate::mmio::Mmio;

const SELECT: usize = 0x00;
const WINDOW: usize = 0x10;
const VERSION: u32 = 1;
const ENTRIES: u32 = 0x10;
const ENTRY_MASKED: u32 = 1 << 16;

/// An I/O APIC.
#[derive(Clone, Copy, Debug)]
pub struct IoApic {
    registers: Mmio,
    first: u32,
    lines: u32,
}

impl IoApic {
    /// Bytes its registers take.
    pub const REGISTER_BYTES: usize = 0x20;

    /// Takes one over, whose first line has that number: every line is masked. `None` if there is nothing.
    pub fn take_over(registers: Mmio, first: u32) -> Option<IoApic> {
        let mut this = IoApic { registers, first, lines: 0 };
        let version = this.read(VERSION);
        if version == u32::MAX || version == 0 {
            return None;
        }
        this.lines = (version >> 16 & 0xff) + 1;
        (0..this.lines).for_each(|pin| this.write(ENTRIES + 2 * pin, ENTRY_MASKED));
        Some(this)
    }

    /// Its lines, as the router knows them.
    pub(super) fn unit(&self) -> core_irq::Unit {
        core_irq::Unit { first: self.first, lines: self.lines }
    }

    /// Sets a pin's entry. The half with the mask comes last when it opens the line and first when it
    /// closes it, so that no half-written entry is open.
    pub(super) fn set_entry(&self, pin: u32, entry: u64) {
        let (low, high) = (entry as u32, (entry >> 32) as u32);
        let register = ENTRIES + 2 * pin;
        if pin < self.lines {
            self.write(register, low | ENTRY_MASKED);
            self.write(register + 1, high);
            self.write(register, low);
        }
    }

    fn read(&self, register: u32) -> u32 {
        self.registers.write_u32(SELECT, register);
        self.registers.read_u32(WINDOW)
    }

    fn write(&self, register: u32, value: u32) {
        self.registers.write_u32(SELECT, register);
        self.registers.write_u32(WINDOW, value);
    }
}
