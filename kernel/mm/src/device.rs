//! Device registers, mapped uncached in their window. A mapping stays.

use crate::{OutOfMemory, tables};
use core_address::{FrameRange, PAGE_SIZE, PhysAddr, VirtAddr};
use core_paging::Rights;
use core_paging::layout::DEVICES;
use kernel_arch::boot::{Handover, MemoryKind};
use kernel_arch::mmio::Mmio;
use smp_lock::{LockClass, TicketLock};

/// Where the next mapping goes. Each is followed by an unmapped page.
static NEXT: TicketLock<u64> = TicketLock::with_class(LockClass::Devices, DEVICES.start);

/// Why registers could not be mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceError {
    /// No memory for tables, or the window is full.
    OutOfMemory,
    /// The memory map says there is memory, not a device.
    IsMemory,
}

impl From<OutOfMemory> for DeviceError {
    fn from(_: OutOfMemory) -> Self {
        DeviceError::OutOfMemory
    }
}

/// Maps `bytes` of registers at a physical address.
pub fn map(handover: &Handover, phys: PhysAddr, bytes: usize) -> Result<Mmio, DeviceError> {
    let frames = FrameRange::around(phys.as_u64(), bytes as u64).ok_or(DeviceError::OutOfMemory)?;
    // Uncached and cached mappings of one frame must not exist side by side, and memory that is
    // someone's must not be written as if it were registers.
    let is_memory = handover.memory().any(|region| {
        !matches!(region.kind, MemoryKind::Reserved | MemoryKind::Bad)
            && region.frames_around().is_some_and(|r| !r.intersection(frames).is_empty())
    });
    if is_memory {
        return Err(DeviceError::IsMemory);
    }
    let mut next = NEXT.lock();
    let end = *next + (frames.count() + 1) * PAGE_SIZE;
    let virt =
        VirtAddr::new(*next).filter(|_| DEVICES.contains(end)).ok_or(DeviceError::OutOfMemory)?;
    // SAFETY: the addresses were just taken from the device window; the frames are no memory.
    unsafe { tables::map_kernel(virt, frames.start(), frames.count(), Rights::device()) }
        .map_err(|_| DeviceError::OutOfMemory)?;
    *next = end;
    let base = virt.checked_add(phys.page_offset()).ok_or(DeviceError::OutOfMemory)?;
    // SAFETY: mapped above and never unmapped; registers of the device the caller asks for.
    Ok(unsafe { Mmio::new(base, bytes) })
}
