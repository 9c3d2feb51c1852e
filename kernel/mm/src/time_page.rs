//! The time page: one frame, mapped for reading in every address space; and the counter page, where the
//! clock is a device's counter and not the CPU's.

use crate::OutOfMemory;
use crate::frames;
use abi_types::TimePage;
use core_address::{Frame, PAGE_SIZE};
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

/// The frame of the counter page, if the clock is read from it.
pub(crate) fn counter_frame() -> Option<Frame> {
    Frame::new(time::user_clock()?.hpet?.as_u64() / PAGE_SIZE)
}

/// The kernel's clock in the page's terms.
fn content() -> Option<TimePage> {
    // The kernel's own numbers, so that both clocks give the same time for the same tick.
    let clock = time::user_clock()?;
    Some(TimePage {
        base_ticks: clock.base_ticks,
        base_ns: clock.base_ns,
        ns_per_tick_q32: clock.ns_per_tick_q32,
        source: if clock.hpet.is_some() { TimePage::COUNTER_PAGE } else { TimePage::TSC },
    })
}
