//! Kernel stacks: mapped pages with an unmapped guard below.
//!
//! A stack that overflows runs into its guard; the page fault cannot be pushed there, so it becomes
//! a double fault on a stack of its own, and is reported.

use crate::frames::{self, OwnedFrames, Run};
use crate::{OutOfMemory, tables};
use alloc::boxed::Box;
use core_address::{PAGE_SIZE, VirtAddr};
use core_frames::Order;
use core_paging::layout::STACKS;
use core_paging::{Access, Rights};
use kernel_arch::{cpu, paging};
use smp_lock::{LockClass, TicketLock};

/// Pages of a kernel stack (128 KiB): room for checked images, whose frames are large, and for a spawn, which takes
/// more than 32 KiB in any. An image that measures fails if it sees more than half of it used ([`most_used`]).
pub const STACK_PAGES: u64 = 32;
/// Pages of a stack for #DF, NMI, #MC and #DB: a report formats and demangles on it.
pub const INTERRUPT_STACK_PAGES: u64 = 8;

/// Addresses set aside for each stack: the largest stack and its guard, rounded up.
const SLOT_PAGES: u64 = 64;
/// How many stacks there can be: as many as threads, and those of CPUs.
const SLOTS: usize = 65 * 1024;

static TAKEN: TicketLock<Slots> = TicketLock::with_class(LockClass::StackSlots, [0; SLOTS / 64]);
/// Stacks of [`STACK_PAGES`] that are mapped and in no use. Every CPU may have cached where they lead,
/// so they stay mapped and are given to the next thread: freeing them would take a flush everywhere.
static SPARE: TicketLock<Slots> = TicketLock::with_class(LockClass::StackSlots, [0; SLOTS / 64]);

/// A bit for each slot.
type Slots = [u64; SLOTS / 64];

/// A mapped stack that its holder owns.
#[derive(Debug)]
pub struct KernelStack {
    slot: usize,
    pages: u64,
    /// Whether any CPU may have run on it, and so has its translations.
    is_shared: bool,
}

fn take_slot() -> Option<usize> {
    let mut taken = TAKEN.lock();
    let (index, word) = taken.iter_mut().enumerate().find(|(_, w)| **w != u64::MAX)?;
    let bit = word.trailing_ones() as usize;
    *word |= 1 << bit;
    Some(index * 64 + bit)
}

fn take_spare() -> Option<usize> {
    let mut spare = SPARE.lock();
    let (index, word) = spare.iter_mut().enumerate().find(|(_, w)| **w != 0)?;
    let bit = word.trailing_zeros() as usize;
    *word &= *word - 1;
    Some(index * 64 + bit)
}

fn release_slot(slot: usize) {
    if let Some(word) = TAKEN.lock().get_mut(slot / 64) {
        *word &= !(1 << (slot % 64));
    }
}

/// Frames for a stack; zeros in images that measure, so that what was used can be told.
fn allocate(order: Order) -> Result<OwnedFrames, OutOfMemory> {
    let mut block = frames::allocate(order)?;
    if cfg!(measure) {
        block.zero();
    }
    Ok(block)
}

/// How many bytes of a stack of [`STACK_PAGES`] were used at most, over all there have been; for the end of an image
/// that measures.
pub fn most_used() -> u64 {
    let taken = TAKEN.lock();
    let is_taken =
        |slot: &usize| taken.get(slot / 64).is_some_and(|word| word >> (slot % 64) & 1 == 1);
    (0..SLOTS).filter(is_taken).filter_map(used).max().unwrap_or(0)
}

/// How many bytes of the stack in that slot were used, if it is one of [`STACK_PAGES`]: an exception's is smaller.
fn used(slot: usize) -> Option<u64> {
    let top = top_of(slot);
    let frame_below =
        |pages: u64| Some(tables::translate(VirtAddr::new(top - pages * PAGE_SIZE)?)?.phys);
    if frame_below(STACK_PAGES).is_none() || frame_below(STACK_PAGES + 1).is_some() {
        return None;
    }
    let lowest_word = |pages: u64| {
        let words = paging::direct(frame_below(pages)?).cast::<u64>();
        // SAFETY: a page of a mapped stack, in the direct map; no CPU but this one runs at the end of the system, and
        // what it writes below its own frames does not matter.
        let at = (0..WORDS).find(|word| unsafe { words.add(*word).read_volatile() } != 0)?;
        Some(pages * PAGE_SIZE - at as u64 * 8)
    };
    (1..=STACK_PAGES).rev().find_map(lowest_word)
}

/// Words of a page.
const WORDS: usize = PAGE_SIZE as usize / 8;

/// The address after the last byte of the stack in a slot.
fn top_of(slot: usize) -> u64 {
    STACKS.start + (slot as u64 + 1) * SLOT_PAGES * PAGE_SIZE
}

impl KernelStack {
    /// A stack for a thread, one that another has left if there is one.
    pub fn for_thread() -> Result<KernelStack, OutOfMemory> {
        match take_spare() {
            Some(slot) => Ok(KernelStack { slot, pages: STACK_PAGES, is_shared: true }),
            None => KernelStack::new(STACK_PAGES),
        }
    }

    /// How many stacks are mapped and wait for a thread.
    pub fn spare_count() -> u64 {
        SPARE.lock().iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// The stack of a thread that may run on any CPU.
    pub(crate) fn into_shared(mut self) -> KernelStack {
        self.is_shared = true;
        self
    }

    /// A stack of that many pages, at most one less than a slot has.
    pub fn new(pages: u64) -> Result<KernelStack, OutOfMemory> {
        if pages == 0 || pages >= SLOT_PAGES {
            return Err(OutOfMemory);
        }
        let slot = take_slot().ok_or(OutOfMemory)?;
        let mut stack = KernelStack { slot, pages: 0, is_shared: false };
        if stack.add_block(pages) {
            return Ok(stack);
        }
        // If one page fails, dropping `stack` gives back those before it, highest first.
        for _ in 0..pages {
            stack.add_page()?;
        }
        Ok(stack)
    }

    /// Maps all pages at once, if there is a block of so many frames: a tenth of the work.
    fn add_block(&mut self, pages: u64) -> bool {
        let Some(order) = Order::for_frames(pages) else { return false };
        let Ok(block) = allocate(order) else { return false };
        let Some(virt) = VirtAddr::new(self.top() - pages * PAGE_SIZE) else { return false };
        if block.count() != pages {
            return false;
        }
        // SAFETY: the addresses lie in this stack's slot; the frames are ours.
        let mapped = unsafe {
            tables::map_kernel(virt, block.frame(), pages, Rights::kernel(Access::Write))
        };
        if mapped.is_err() {
            return false;
        }
        // They come back one by one, when the stack is unmapped.
        block.leak();
        self.pages = pages;
        true
    }

    /// Maps one more page below those there are.
    fn add_page(&mut self) -> Result<(), OutOfMemory> {
        let block = allocate(Order::FRAME)?;
        let virt = VirtAddr::new(self.top() - (self.pages + 1) * PAGE_SIZE).ok_or(OutOfMemory)?;
        // SAFETY: the address lies in this stack's slot; the frame is ours.
        unsafe { tables::map_kernel(virt, block.frame(), 1, Rights::kernel(Access::Write)) }
            .map_err(|_| OutOfMemory)?;
        block.leak();
        self.pages += 1;
        Ok(())
    }

    /// The address after its last byte; where a stack pointer starts.
    pub fn top(&self) -> u64 {
        top_of(self.slot)
    }

    /// The lowest mapped byte.
    pub fn bottom(&self) -> u64 {
        self.top() - self.pages * PAGE_SIZE
    }

    /// Gives up ownership; the stack stays for good.
    pub fn leak(self) -> u64 {
        let top = self.top();
        core::mem::forget(self);
        top
    }

    /// Goes on with `function` on this stack, for good. What the current stack holds is left there.
    pub fn enter<T>(self, value: Box<T>, function: fn(Box<T>) -> !) -> ! {
        let call = Call { value: Box::into_raw(value), function };
        // SAFETY: the stack is mapped, page-aligned, leaked here and so ours for good. `call` lies on
        // the old stack, which stays mapped while `start` copies it.
        unsafe { cpu::run_on_stack(self.leak(), &raw const call as u64, start::<T>) }
    }
}

struct Call<T> {
    value: *mut T,
    function: fn(Box<T>) -> !,
}

extern "C" fn start<T>(call: u64) -> ! {
    // SAFETY: `enter` passes the address of a live Call with a pointer from Box::into_raw.
    let (value, function) = unsafe {
        let call = call as *const Call<T>;
        (Box::from_raw((*call).value), (*call).function)
    };
    function(value)
}

impl Drop for KernelStack {
    fn drop(&mut self) {
        if self.is_shared {
            if let Some(word) = SPARE.lock().get_mut(self.slot / 64) {
                *word |= 1 << (self.slot % 64);
            }
            return;
        }
        if self.pages > 0
            && let Some(bottom) = VirtAddr::new(self.bottom())
        {
            let mut run = Run::default();
            // SAFETY: mapped by `add_block` or `add_page`, which leaked the frames; a stack in use by a CPU is
            // never dropped, because running on it takes it (`enter`, `leak`) or shares it, so no other CPU has
            // it cached.
            unsafe {
                tables::unmap_kernel(bottom, self.pages, |frame| {
                    run.add(frame);
                });
                run.free();
            }
        }
        release_slot(self.slot);
    }
}

/// Whether an address lies in the stack window but in no mapped page: a guard.
pub fn is_guard(address: u64) -> bool {
    STACKS.contains(address)
        && VirtAddr::new(address).is_some_and(|virt| tables::translate(virt).is_none())
}
