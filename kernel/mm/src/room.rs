//! Places for tables that grow: a part of the kernel's addresses each, with frames behind what is used.

use crate::{frames, tables};
use abi_sync::{ROOM_GRAIN, Room};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use core_address::{PAGE_SIZE, VirtAddr};
use core_frames::Order;
use core_paging::layout::RECORDS;
use core_paging::{Access, Rights};

const _: () = assert!(ROOM_GRAIN as u64 == PAGE_SIZE);

/// Bytes of the window that are given out.
static GIVEN: AtomicU64 = AtomicU64::new(0);

/// Pages of the window with a frame behind them.
static BACKED: AtomicU64 = AtomicU64::new(0);

/// How many frames are behind tables that have grown; they stay for good.
pub fn frames() -> u64 {
    BACKED.load(Ordering::Relaxed)
}

/// Places for `most` items that nobody else has; `None` if the window has no more. They stay for good, and have
/// frames once a table has grown into them.
pub fn reserve<T>(most: u32) -> Option<Room<T>> {
    let bytes = (u64::from(most) * size_of::<T>() as u64).next_multiple_of(PAGE_SIZE);
    let given = GIVEN.fetch_add(bytes, Ordering::Relaxed);
    if given + bytes > RECORDS.bytes {
        return None;
    }
    let first = NonNull::new((RECORDS.start + given) as *mut T)?;
    // SAFETY: the part of the window is given out once, and starts at a page. `back` maps the page it is asked
    // for, to a frame that is never given back.
    Some(unsafe { Room::new(first, most as usize, back) })
}

/// Maps a page of the window.
fn back(place: *mut u8) -> bool {
    let Ok(block) = frames::allocate(Order::FRAME) else { return false };
    let Some(virt) = VirtAddr::new(place as u64) else { return false };
    // SAFETY: a page of a room, which asks for each of its own once; the frame is ours.
    let mapped =
        unsafe { tables::map_kernel(virt, block.frame(), 1, Rights::kernel(Access::Write)) };
    if mapped.is_ok() {
        block.leak();
        BACKED.fetch_add(1, Ordering::Relaxed);
    }
    mapped.is_ok()
}
