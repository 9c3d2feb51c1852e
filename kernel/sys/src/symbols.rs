//! The kernel's own symbols, for reports.

use core::fmt;
use core_paging::layout::IMAGE;
use core_symbols::{Demangled, Symbols};
use kernel_arch::boot::Handover;
use kernel_arch::console;
use kernel_arch::trap::TrapFrame;
use kernel_mm::space::AddressSpace;
use spin::Once;

static SYMBOLS: Once<Symbols<'static>> = Once::new();

/// Reads the symbol table of the kernel's file, which stays in memory; how many symbols.
pub(crate) fn init(handover: &Handover) -> usize {
    // The image is linked at the start of its window; a loader may have moved it up.
    let slide = handover.kernel_address().1.wrapping_sub(IMAGE.start);
    match handover.kernel_file().and_then(|file| Symbols::parse(file, slide)) {
        Some(symbols) => SYMBOLS.call_once(|| symbols).count(),
        None => 0,
    }
}

/// An address, with the function it lies in if that is known.
pub(crate) struct Named {
    pub(crate) address: u64,
    /// A return address belongs to the call before it, which may be the last instruction of its
    /// function.
    pub(crate) is_return: bool,
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.address)?;
        let at = self.address.saturating_sub(u64::from(self.is_return));
        match SYMBOLS.get().and_then(|symbols| symbols.lookup(at)) {
            Some(found) => write!(f, " {}+{:#x}", Demangled(found.name), found.offset),
            None => Ok(()),
        }
    }
}

/// Return addresses of a user backtrace, at most.
const USER_FRAMES: usize = 16;

/// Prints where a user thread is and what called it, as far as its frame pointers lead.
pub(crate) fn print_user_backtrace(space: &AddressSpace, frame: &TrapFrame) {
    console::print(format_args!("   0 {:016x}\n", frame.rip()));
    let mut at = frame.registers.rbp;
    for depth in 1..USER_FRAMES {
        // The frame of the caller, then where to return to; a chain that goes down is none.
        let mut words = [[0; 8]; 2];
        let is_read = space.copy_in(words.as_flattened_mut(), at).is_ok();
        let [next, returns_to] = words.map(u64::from_le_bytes);
        if !is_read || returns_to == 0 {
            return;
        }
        console::print(format_args!("  {depth:>2} {returns_to:016x}\n"));
        if next <= at {
            return;
        }
        at = next;
    }
}
