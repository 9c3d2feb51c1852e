//! Memory as it is mapped while the loader runs: one to one.

use loader_core::memory::Memory;

/// Physical memory up to a limit, by its own address.
///
/// There is one at a time: a front end makes it when it has the machine to itself.
#[derive(Debug)]
pub struct Identity {
    top: u64,
}

impl Identity {
    /// Memory from address 1 up to `top`.
    ///
    /// # Safety
    /// Everything that will be asked for below `top` must be mapped one to one and readable;
    /// what will be written must belong to the loader. No Rust object of the loader may lie
    /// in memory that is asked for through this.
    pub const unsafe fn new(top: u64) -> Self {
        Self { top }
    }

    fn check(&self, base: u64, length: u64) -> Option<(usize, usize)> {
        let end = base.checked_add(length)?;
        // Address 0 is no address in Rust; nothing the loader needs lies there.
        if base == 0 || end > self.top {
            return None;
        }
        Some((usize::try_from(base).ok()?, usize::try_from(length).ok()?))
    }
}

impl Memory for Identity {
    fn view(&self, base: u64, length: u64) -> Option<&[u8]> {
        let (base, length) = self.check(base, length)?;
        // SAFETY: by `new` the range is mapped and is nobody's Rust object; the borrow of
        // self keeps writes through `bytes` away for as long as the slice lives.
        Some(unsafe { core::slice::from_raw_parts(base as *const u8, length) })
    }

    fn bytes(&mut self, base: u64, length: u64) -> Option<&mut [u8]> {
        let (base, length) = self.check(base, length)?;
        // SAFETY: as in `view`; the exclusive borrow of self makes the slice the only one.
        Some(unsafe { core::slice::from_raw_parts_mut(base as *mut u8, length) })
    }

    fn copy(&mut self, from: u64, to: u64, length: u64) -> Option<()> {
        let (from, length) = self.check(from, length)?;
        let (to, _) = self.check(to, length as u64)?;
        // SAFETY: both ranges are mapped by `new`; `copy` allows them to overlap.
        unsafe { core::ptr::copy(from as *const u8, to as *mut u8, length) };
        Some(())
    }
}
