//! Stacks of coroutines: mapped memory with a guard page below it, kept for the next one.

use core::num::NonZeroUsize;
use corosensei::stack::StackPointer;
use std::cell::RefCell;

/// Bytes of a stack, the guard not counted. The kernel's own stacks are a few pages; reporting a failure in
/// words takes more, and pages that nothing touches cost nothing.
const STACK_BYTES: usize = 256 << 10;
/// Bytes below it that nothing may touch: a page.
const GUARD_BYTES: usize = 4 << 10;

/// Mapped memory, given back when it is dropped.
struct Mapping {
    bottom: NonZeroUsize,
}

impl Mapping {
    /// New memory; `None` if the host has none.
    fn new() -> Option<Self> {
        let bytes = GUARD_BYTES + STACK_BYTES;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the host's choice concerns nobody else.
        let bottom = unsafe { libc::mmap(core::ptr::null_mut(), bytes, access, kind, -1, 0) };
        if bottom == libc::MAP_FAILED {
            return None;
        }
        let mapping = Self { bottom: NonZeroUsize::new(bottom.addr())? };
        // SAFETY: the first page of the mapping just made, which nothing uses yet.
        let guarded = unsafe { libc::mprotect(bottom, GUARD_BYTES, libc::PROT_NONE) };
        (guarded == 0).then_some(mapping)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let bottom = core::ptr::with_exposed_provenance_mut(self.bottom.get());
        // SAFETY: the mapping is this value's alone, and nothing runs on a stack that is dropped. A host that
        // refuses keeps the memory.
        unsafe { libc::munmap(bottom, GUARD_BYTES + STACK_BYTES) };
    }
}

thread_local! {
    /// Stacks that were used and are free.
    static FREE: RefCell<Vec<Mapping>> = const { RefCell::new(Vec::new()) };
}

/// A stack. Dropped, it is kept for the next one of this thread of the host.
pub struct CoroutineStack(Option<Mapping>);

impl CoroutineStack {
    /// A stack that nothing runs on; `None` if the host has no memory.
    pub fn new() -> Option<Self> {
        let kept = FREE.with(|free| free.borrow_mut().pop());
        kept.or_else(Mapping::new).map(|mapping| Self(Some(mapping)))
    }

    /// How many this thread of the host keeps.
    pub fn kept() -> usize {
        FREE.with(|free| free.borrow().len())
    }

    fn bottom(&self) -> NonZeroUsize {
        self.0.as_ref().unwrap().bottom
    }
}

impl Drop for CoroutineStack {
    fn drop(&mut self) {
        let mapping = self.0.take();
        // A thread that ends has no list any more, and the memory goes back to the host.
        let _ended = FREE.try_with(|free| free.borrow_mut().extend(mapping));
    }
}

// SAFETY: the memory is mapped while the value lives, is the value's alone, and ends in a guard page.
unsafe impl corosensei::stack::Stack for CoroutineStack {
    fn base(&self) -> StackPointer {
        self.bottom().checked_add(GUARD_BYTES + STACK_BYTES).unwrap()
    }

    fn limit(&self) -> StackPointer {
        self.bottom()
    }
}
