//! Device registers in memory.

use core_address::VirtAddr;

/// A mapped block of registers; accesses outside it do not happen.
#[derive(Clone, Copy, Debug)]
pub struct Mmio {
    base: VirtAddr,
    bytes: usize,
}

impl Mmio {
    /// A block of registers.
    ///
    /// # Safety
    /// `bytes` from `base` on stay mapped uncached for as long as the kernel runs, and are registers of a
    /// device that cannot break memory safety.
    pub const unsafe fn new(base: VirtAddr, bytes: usize) -> Self {
        Self { base, bytes }
    }

    fn at<T>(self, offset: usize) -> Option<*mut T> {
        let inside = offset.checked_add(size_of::<T>())? <= self.bytes;
        let aligned = (self.base.as_u64() as usize + offset).is_multiple_of(align_of::<T>());
        (inside && aligned).then_some((self.base.as_u64() as usize + offset) as *mut T)
    }

    /// Reads a 32-bit register; all ones outside the block, as a bus without a device answers.
    pub fn read_u32(self, offset: usize) -> u32 {
        // SAFETY: `at` gives only aligned addresses inside a block that is mapped (contract of `new`).
        self.at::<u32>(offset).map_or(u32::MAX, |p| unsafe { p.read_volatile() })
    }

    /// Writes a 32-bit register; nothing outside the block.
    pub fn write_u32(self, offset: usize, value: u32) {
        if let Some(register) = self.at::<u32>(offset) {
            // SAFETY: as for `read_u32`.
            unsafe { register.write_volatile(value) }
        }
    }

    /// Reads a 64-bit register; all ones outside the block.
    pub fn read_u64(self, offset: usize) -> u64 {
        // SAFETY: as for `read_u32`.
        self.at::<u64>(offset).map_or(u64::MAX, |p| unsafe { p.read_volatile() })
    }

    /// Writes a 64-bit register; nothing outside the block.
    pub fn write_u64(self, offset: usize, value: u64) {
        if let Some(register) = self.at::<u64>(offset) {
            // SAFETY: as for `read_u32`.
            unsafe { register.write_volatile(value) }
        }
    }
}
