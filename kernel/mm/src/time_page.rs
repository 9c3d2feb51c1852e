//! The time page: one frame, mapped for reading in every address space.

use crate::OutOfMemory;
use crate::frames;
use abi_types::TimePage;
use core_address::Frame;
use core_frames::Order;
use kernel_arch::{paging, time};
use smp_lock::{LockClass, TicketLock};

static FRAME: TicketLock<Option<Frame>> = TicketLock::with_class(LockClass::TimePage, None);

/// The frame, made and filled at the first call; fails without memory or without a clock.
pub(crate) fn frame() -> Result<Frame, OutOfMemory> {
    let mut slot = FRAME.lock();
    if let Some(frame) = *slot {
        return Ok(frame);
    }
    let page = content().ok_or(OutOfMemory)?;
    let mut block = frames::allocate(Order::FRAME)?;
    block.zero();
    let target = paging::direct(block.frame().start()).cast::<TimePage>();
    // SAFETY: the frame is ours, aligned to a page and larger than the content.
    unsafe { target.write(page) };
    let frame = block.leak();
    *slot = Some(frame);
    Ok(frame)
}

/// Whether a frame is the time page's.
pub(crate) fn is(frame: Frame) -> bool {
    *FRAME.lock() == Some(frame)
}

/// The kernel's clock in the page's terms.
fn content() -> Option<TimePage> {
    // The kernel's own numbers, so that both clocks give the same time for the same tick.
    let (base_ticks, ns_per_tick_q32) = time::origin()?;
    Some(TimePage { base_ticks, base_ns: 0, ns_per_tick_q32, reserved: 0 })
}
