//! The kernel heap: slots of equal size in single frames, and whole blocks of frames.
//!
//! `alloc` is built without infallible allocation, so running out reaches the caller as an error and
//! nothing else. A page whose last slot is given back returns to the frame allocator: the heap
//! holds no memory that is not in use, but for one empty page per class that would otherwise come and go.
//!
//! Decided in ADR 20.

use crate::frames::{self, OwnedFrames};
use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{self, NonNull};
use core_address::{PAGE_SIZE, PhysAddr};
use core_frames::Order;
use core_slab::{CLASSES, Class, HEADER_BYTES, Occupancy, PAGE_BYTES};
use kernel_arch::paging;
use smp_lock::{LockClass, TicketLock};

/// The header at the start of a page of slots.
struct Page {
    next: Option<NonNull<Page>>,
    previous: Option<NonNull<Page>>,
    occupancy: Occupancy,
}

const _: () = assert!(size_of::<Page>() <= HEADER_BYTES);

/// Pages of one class that have a free slot, linked both ways.
struct List {
    first: Option<NonNull<Page>>,
}

// SAFETY: the pages belong to the heap and are reached only with its lock held.
unsafe impl Send for List {}

/// The heap's lists, one for each class.
struct Heap {
    lists: [List; CLASSES],
    /// Pages and blocks in use, in frames.
    frames: u64,
    /// Bytes asked for and not given back.
    bytes: u64,
    /// Allocations served since boot.
    allocations: u64,
}

static HEAP: TicketLock<Heap> = TicketLock::with_class(
    LockClass::Heap,
    Heap { lists: [const { List { first: None } }; CLASSES], frames: 0, bytes: 0, allocations: 0 },
);

/// How much the heap holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    /// Frames taken from the frame allocator.
    pub frames: u64,
    /// Bytes asked for and not given back.
    pub bytes: u64,
}

/// How much the heap holds now.
pub fn usage() -> Usage {
    let heap = HEAP.lock();
    Usage { frames: heap.frames, bytes: heap.bytes }
}

/// Allocations served since boot.
pub fn allocations() -> u64 {
    HEAP.lock().allocations
}

fn order_for(layout: Layout) -> Option<Order> {
    // A block of 2^n frames is aligned to its size, so a large alignment only needs a large block.
    let bytes = layout.size().max(layout.align()) as u64;
    Order::for_frames(bytes.div_ceil(PAGE_SIZE))
}

fn direct_pointer(frame: core_address::Frame) -> *mut u8 {
    paging::direct(frame.start())
}

/// The physical frame of a heap address, which lies in the direct map.
fn frame_of(pointer: *mut u8) -> Option<core_address::Frame> {
    let phys = (pointer as u64).checked_sub(paging::direct_map_offset())?;
    PhysAddr::new(phys).map(PhysAddr::frame)
}

impl Heap {
    fn list(&mut self, class: Class) -> Option<&mut List> {
        self.lists.get_mut(class.index())
    }

    fn allocate_slot(&mut self, class: Class) -> Option<*mut u8> {
        if self.list(class)?.first.is_none() {
            let frame = frames::allocate(Order::FRAME).ok()?.leak();
            self.frames += 1;
            let page = NonNull::new(direct_pointer(frame).cast::<Page>())?;
            // SAFETY: the frame is ours, mapped in the direct map and page-aligned.
            unsafe {
                page.write(Page { next: None, previous: None, occupancy: Occupancy::new(class) });
                self.list(class)?.push(page);
            }
        }
        let list = self.list(class)?;
        let page = list.first?;
        // SAFETY: pages in a list are live and reached only under the lock.
        unsafe {
            let slot = (*page.as_ptr()).occupancy.take()?;
            if (*page.as_ptr()).occupancy.is_full() {
                list.remove(page);
            }
            Some(page.as_ptr().cast::<u8>().add(class.offset(slot)))
        }
    }

    /// # Safety
    /// `pointer` came from `allocate_slot` with this class and is not used any more.
    unsafe fn release_slot(&mut self, pointer: *mut u8, class: Class) {
        let offset = pointer as usize % PAGE_BYTES;
        let Some(page) = NonNull::new(pointer.wrapping_sub(offset).cast::<Page>()) else { return };
        let Some(slot) = class.slot_at(offset) else { return };
        // SAFETY: a slot's page is live while the slot is taken, by the contract.
        unsafe {
            let was_full = (*page.as_ptr()).occupancy.is_full();
            let taken = (*page.as_ptr()).occupancy.give_back(slot);
            debug_assert!(taken, "a heap slot was freed twice");
            let Some(list) = self.list(class) else { return };
            if was_full {
                list.push(page);
            }
            // One empty page stays, so that a single allocation to and fro costs no frame.
            let others = (*page.as_ptr()).next.is_some() || (*page.as_ptr()).previous.is_some();
            if (*page.as_ptr()).occupancy.is_empty() && others {
                list.remove(page);
                self.release_page(page);
            }
        }
    }

    /// # Safety
    /// The page is in no list and no slot of it is taken.
    unsafe fn release_page(&mut self, page: NonNull<Page>) {
        if let Some(frame) = frame_of(page.as_ptr().cast()) {
            self.frames -= 1;
            // SAFETY: leaked in `allocate_slot`; unused by the contract.
            drop(unsafe { OwnedFrames::from_leaked(frame, Order::FRAME) });
        }
    }

    fn trim(&mut self) {
        for index in 0..CLASSES {
            let Some(list) = self.lists.get_mut(index) else { return };
            // SAFETY: pages in a list are live; an empty one has no slot in use.
            unsafe {
                let empty = list.first.filter(|p| (*p.as_ptr()).occupancy.is_empty());
                if let Some(page) = empty {
                    list.remove(page);
                    self.release_page(page);
                }
            }
        }
    }
}

impl List {
    /// # Safety
    /// The page is live and in no list.
    unsafe fn push(&mut self, page: NonNull<Page>) {
        // SAFETY: both pages are live and only reached under the heap's lock.
        unsafe {
            (*page.as_ptr()).previous = None;
            (*page.as_ptr()).next = self.first;
            if let Some(first) = self.first {
                (*first.as_ptr()).previous = Some(page);
            }
        }
        self.first = Some(page);
    }

    /// # Safety
    /// The page is in this list.
    unsafe fn remove(&mut self, page: NonNull<Page>) {
        // SAFETY: neighbours in a list are live.
        unsafe {
            let Page { next, previous, .. } = *page.as_ptr();
            match previous {
                Some(previous) => (*previous.as_ptr()).next = next,
                None => self.first = next,
            }
            if let Some(next) = next {
                (*next.as_ptr()).previous = previous;
            }
            (*page.as_ptr()).next = None;
            (*page.as_ptr()).previous = None;
        }
    }
}

/// Gives back the empty pages the heap keeps for speed. For tests that count frames.
pub fn trim() {
    HEAP.lock().trim();
}

struct KernelHeap;

// SAFETY: a slot or block handed out belongs to one caller until it is given back, is at least as
// large and as aligned as asked (checked in core_slab's tests), and nothing here unwinds.
unsafe impl GlobalAlloc for KernelHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let mut heap = HEAP.lock();
        let pointer = match Class::for_layout(layout.size(), layout.align()) {
            Some(class) => heap.allocate_slot(class),
            None => order_for(layout).and_then(|order| {
                let block = frames::allocate(order).ok()?;
                heap.frames += block.count();
                Some(direct_pointer(block.leak()))
            }),
        };
        match pointer {
            Some(pointer) => {
                heap.bytes += layout.size() as u64;
                heap.allocations += 1;
                pointer
            }
            None => ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let mut heap = HEAP.lock();
        heap.bytes -= layout.size() as u64;
        match Class::for_layout(layout.size(), layout.align()) {
            // SAFETY: the same layout chose the same class when it was allocated.
            Some(class) => unsafe { heap.release_slot(pointer, class) },
            None => {
                if let (Some(order), Some(frame)) = (order_for(layout), frame_of(pointer)) {
                    heap.frames -= order.frames();
                    // SAFETY: leaked in `alloc` with the same order; the caller is done with it.
                    drop(unsafe { OwnedFrames::from_leaked(frame, order) });
                }
            }
        }
    }
}

#[global_allocator]
static KERNEL_HEAP: KernelHeap = KernelHeap;
