//! The kernel's own symbols, for reports.

use core::fmt;
use core_paging::layout::IMAGE;
use core_symbols::{Demangled, Symbols};
use kernel_arch::boot::Handover;
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
