//! Stacks in the program's heap, each with a red zone below it.
//!
//! The kernel does not give a program memory without access yet, so there are no guard pages: an
//! overflow writes into the red zone, a page of a known pattern, and the worker finds that when the
//! fiber next leaves its stack. Then the process ends with a report; what the fiber did meanwhile has
//! been done. Of the red zone a release build looks at its highest line after each switch, which
//! anything but a frame with a large hole writes to, and at all of it when the fiber has ended; a
//! checked build looks at all of it each time.
//!
//! With guard pages `HAS_GUARDS` becomes true, `map` makes them, and nothing here looks any more.

use core::alloc::Layout;
use core::ptr;

use capos_rt::panic;

use crate::substrate::{StackGroup, SystemError};

/// Bytes of the red zone: a frame is probed at every page, so none jumps over it.
const GUARD: usize = 4096;
/// Words of its highest line.
const LINE: usize = 8;
const WORDS: usize = GUARD / 8;

/// What is in the red zone: no address, no small number, no text.
const PATTERN: u64 = 0xdead_57ac_c0de_9d5b;

/// How a process ends whose fiber overflowed its stack.
const OVERFLOW_EXIT: i64 = 104;

fn layout(stride: usize, count: usize) -> Result<Layout, SystemError> {
    let bytes = stride.checked_mul(count).ok_or(SystemError::Heap(usize::MAX))?;
    Layout::from_size_align(bytes, GUARD).map_err(|_| SystemError::Heap(bytes))
}

pub fn map(stack_bytes: usize, count: usize) -> Result<StackGroup, SystemError> {
    let stride = stack_bytes.checked_add(GUARD).ok_or(SystemError::Heap(usize::MAX))?;
    let layout = layout(stride, count)?;
    if layout.size() == 0 {
        return Err(SystemError::Heap(0));
    }
    // SAFETY: the layout is not empty.
    let start = unsafe { alloc::alloc::alloc_zeroed(layout) };
    if start.is_null() {
        return Err(SystemError::Heap(layout.size()));
    }
    for index in 0..count {
        // SAFETY: the first page of each stride of the block just allocated.
        unsafe {
            let zone = start.byte_add(index * stride).cast::<u64>();
            (0..WORDS).for_each(|word| zone.add(word).write(PATTERN));
        }
    }
    Ok(StackGroup { start: start.expose_provenance(), stride, guard: GUARD, count })
}

/// # Safety
/// Nobody uses a stack of the group any more.
pub unsafe fn unmap(group: &StackGroup) {
    if let Ok(layout) = layout(group.stride, group.count) {
        let start = ptr::with_exposed_provenance_mut(group.start);
        // SAFETY: allocated by `map` with this layout; by the caller nobody uses it.
        unsafe { alloc::alloc::dealloc(start, layout) };
    }
}

/// Ends the process if the red zone below `bottom` is not as it was made.
pub fn check(bottom: usize, top: usize, is_last: bool) {
    let words = if is_last || cfg!(checked) { WORDS } else { LINE };
    let zone = ptr::with_exposed_provenance::<u64>(bottom - words * 8);
    // SAFETY: the red zone is below the stack; nobody writes to it by right.
    let is_whole = (0..words).all(|word| unsafe { zone.add(word).read() } == PATTERN);
    if !is_whole {
        overflowed(top - bottom);
    }
}

#[cold]
fn overflowed(bytes: usize) -> ! {
    // A stack's top is not at its page's end: the size is that of whole pages.
    let bytes = bytes.next_multiple_of(4096);
    panic::end(
        OVERFLOW_EXIT,
        format_args!(
            "it overflowed its stack of {bytes} bytes; give fibers larger stacks with \
             Builder::stack_bytes"
        ),
    )
}

/// Memory of a new stack is zero, so what is not has been used.
pub fn used_bytes(top: usize, stack_bytes: usize) -> usize {
    let bottom = ptr::with_exposed_provenance::<u64>(top - stack_bytes);
    let words = stack_bytes / 8;
    // SAFETY: within the stack. Fibers that run write to it meanwhile, each word at once.
    let untouched = (0..words).take_while(|word| unsafe { bottom.add(*word).read_volatile() } == 0);
    stack_bytes - untouched.count() * 8
}
