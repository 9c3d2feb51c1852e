//! Stacks on Linux: mapped in groups, with light guard regions where the kernel has them.
//!
//! A guard that is a mapping of its own splits the group's mapping in two, and a process may have
//! only so many (vm.max_map_count, 65,530 by default). Guard regions (Linux 6.13) live in the page
//! tables and split nothing; where they are missing, guards are made with mprotect and the limit is
//! reported by its name.
//!
//! Decided in ADR 102.

use core::ffi::{CStr, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use alloc::boxed::Box;

use super::{StackGroup, SystemError};

/// `MADV_GUARD_INSTALL` of linux/mman.h.
const MADV_GUARD_INSTALL: i32 = 102;

/// A group whose guards the overflow handler knows.
struct Known {
    /// 0 if there is none.
    start: AtomicUsize,
    stride: AtomicUsize,
    count: AtomicUsize,
}

/// Groups, and more of them behind. The handler may not take a lock, so what it goes through only
/// grows: blocks are never freed.
struct Block {
    groups: [Known; BLOCK],
    next: AtomicPtr<Block>,
}

const BLOCK: usize = 512;

impl Block {
    const fn new() -> Self {
        let none = [const {
            Known {
                start: AtomicUsize::new(0),
                stride: AtomicUsize::new(0),
                count: AtomicUsize::new(0),
            }
        }; BLOCK];
        Self { groups: none, next: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The block behind, if there is one.
    fn next(&self) -> Option<&'static Self> {
        // SAFETY: null or leaked. Acquire: pairs with the release in `more`; the block is complete.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }

    /// Puts a block behind this one, unless another thread has.
    fn more(&self) {
        let new = Box::into_raw(Box::new(Self::new()));
        // Release: pairs with the acquire in `next`.
        let put =
            self.next.compare_exchange(ptr::null_mut(), new, Ordering::Release, Ordering::Relaxed);
        if put.is_err() {
            // SAFETY: nobody has seen it.
            drop(unsafe { Box::from_raw(new) });
        }
    }
}

static FIRST: Block = Block::new();

/// Every place there is.
fn places() -> impl Iterator<Item = &'static Known> {
    core::iter::successors(Some(&FIRST), |block| block.next()).flat_map(|block| &block.groups)
}

static IS_HANDLER_SET: AtomicBool = AtomicBool::new(false);
static PREVIOUS: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);

fn errno() -> i32 {
    // SAFETY: the thread's own errno.
    unsafe { *libc::__errno_location() }
}

/// The size of a stack unless the program says otherwise: only the pages that are used take memory.
const STACK_BYTES: usize = 128 << 10;
/// The smallest stack: a page for the fiber, one for its result and for what the switch needs.
const LEAST_STACK_PAGES: usize = 2;

/// The size of a stack for who asks for so many bytes: whole pages.
pub fn stack_bytes(asked: Option<usize>) -> usize {
    let page = page_bytes();
    let bytes = asked.unwrap_or(STACK_BYTES).max(LEAST_STACK_PAGES * page);
    // More than there are addresses is refused when a stack is made.
    bytes.checked_next_multiple_of(page).unwrap_or(usize::MAX - page + 1)
}

fn page_bytes() -> usize {
    // SAFETY: a constant of the system.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

pub fn map(stack_bytes: usize, count: usize) -> Result<StackGroup, SystemError> {
    let guard = page_bytes();
    let length = |stride: usize| stride.checked_mul(count);
    let sizes = stack_bytes.checked_add(guard).and_then(|stride| Some((stride, length(stride)?)));
    let (stride, length) = sizes.ok_or(SystemError::Memory(libc::ENOMEM))?;
    // SAFETY: a new mapping at an address of the system's choice. NORESERVE: most of a stack is
    // never touched.
    let start = unsafe {
        libc::mmap(
            ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(refusal(errno()));
    }
    // SAFETY: the mapping just made. A huge page would make every stack of it resident.
    unsafe { libc::madvise(start, length, libc::MADV_NOHUGEPAGE) };
    let group = StackGroup { start: start.addr(), stride, guard, count };
    for index in 0..count {
        // SAFETY: within the mapping just made, which nobody uses yet.
        let refused = unsafe {
            let at = start.byte_add(index * stride);
            libc::madvise(at, guard, MADV_GUARD_INSTALL) != 0
                && libc::mprotect(at, guard, libc::PROT_NONE) != 0
        };
        if refused {
            let error = refusal(errno());
            // SAFETY: nobody has a stack of the group.
            unsafe { unmap(&group) };
            return Err(error);
        }
    }
    remember(&group);
    Ok(group)
}

/// Tells the overflow handler of a group.
fn remember(group: &StackGroup) {
    let mut block = &FIRST;
    loop {
        for known in &block.groups {
            // AcqRel: a place is taken once; its sizes follow and are read after its start.
            let (new, order) = (group.start, Ordering::AcqRel);
            if known.start.compare_exchange(0, new, order, Ordering::Relaxed).is_ok() {
                known.stride.store(group.stride, Ordering::Release);
                known.count.store(group.count, Ordering::Release);
                return;
            }
        }
        match block.next() {
            Some(next) => block = next,
            None => block.more(),
        }
    }
}

/// What the system's refusal of a mapping means. It says the same if the process has too many of them
/// and if it has no memory, or no room, left.
#[cold]
fn refusal(errno: i32) -> SystemError {
    if errno == libc::ENOMEM && is_at_the_limit_of_mappings() {
        SystemError::Mappings
    } else {
        SystemError::Memory(errno)
    }
}

/// Whether the process has about as many mappings as it may. Allocates nothing: there may be no way to.
fn is_at_the_limit_of_mappings() -> bool {
    let (mut limit, mut mappings) = (0_usize, 0_usize);
    each_byte(c"/proc/sys/vm/max_map_count", |byte| {
        if byte.is_ascii_digit() {
            limit = limit.saturating_mul(10).saturating_add(usize::from(byte - b'0'));
        }
    });
    each_byte(c"/proc/self/maps", |byte| mappings += usize::from(byte == b'\n'));
    limit > 0 && mappings.saturating_add(NEAR) >= limit
}

/// So near to the limit counts as at it: a mapping may come and go while they are counted.
const NEAR: usize = 8;

fn each_byte(path: &CStr, mut f: impl FnMut(u8)) {
    // SAFETY: a path with its end.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return;
    }
    // Small: this may be a small fiber's stack.
    let mut bytes = [0u8; 512];
    loop {
        // SAFETY: reads into a valid buffer.
        let count = unsafe { libc::read(file, bytes.as_mut_ptr().cast(), bytes.len()) };
        let Ok(count @ 1..) = usize::try_from(count) else { break };
        bytes.iter().take(count).for_each(|byte| f(*byte));
    }
    // SAFETY: opened above.
    unsafe { libc::close(file) };
}

/// # Safety
/// Nobody uses a stack of the group any more.
pub unsafe fn unmap(group: &StackGroup) {
    if let Some(known) = places().find(|known| known.start.load(Ordering::Acquire) == group.start) {
        // Release: the sizes are gone before the place can be taken again.
        known.count.store(0, Ordering::Release);
        known.stride.store(0, Ordering::Release);
        known.start.store(0, Ordering::Release);
    }
    let start = ptr::with_exposed_provenance_mut::<c_void>(group.start);
    // SAFETY: the whole mapping, by the caller no longer used.
    unsafe { libc::munmap(start, group.stride * group.count) };
}

pub fn used_bytes(top: usize, stack_bytes: usize) -> usize {
    let page = page_bytes();
    let mut resident = [0u8; 256];
    let mut deepest = 0;
    let mut below = 0;
    while below < stack_bytes {
        let chunk = (stack_bytes - below).min(resident.len() * page);
        let at = ptr::with_exposed_provenance_mut::<c_void>(top - below - chunk);
        // SAFETY: only asks about pages; the vector has room for each of the chunk.
        if unsafe { libc::mincore(at, chunk, resident.as_mut_ptr()) } != 0 {
            break;
        }
        // Pages are listed from the lowest address, so the first resident one is the deepest.
        let pages = resident.iter().take(chunk / page);
        if let Some(first) = pages.enumerate().find(|(_, p)| **p & 1 != 0).map(|(index, _)| index) {
            deepest = below + chunk - first * page;
        }
        below += chunk;
    }
    deepest
}

fn in_guard(address: usize) -> Option<usize> {
    let page = page_bytes();
    for known in places() {
        let (start, stride, count) = (
            known.start.load(Ordering::Acquire),
            known.stride.load(Ordering::Acquire),
            known.count.load(Ordering::Acquire),
        );
        if start != 0 && stride != 0 && address >= start && address < start + stride * count {
            return ((address - start) % stride < page).then_some(stride - page);
        }
    }
    None
}

/// Runs on the alternate signal stack. Only calls that are safe in a signal handler.
extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system passes a valid record for this signal.
    let address = unsafe { (*info).si_addr() }.addr();
    if let Some(stack_bytes) = in_guard(address) {
        say("fiber: a fiber overflowed its stack of ");
        let mut digits = [0u8; 20];
        let mut left = stack_bytes;
        let mut at = digits.len();
        loop {
            at -= 1;
            if let Some(digit) = digits.get_mut(at) {
                *digit = b'0' + (left % 10) as u8;
            }
            left /= 10;
            if left == 0 || at == 0 {
                break;
            }
        }
        say(core::str::from_utf8(digits.get(at..).unwrap_or(&[])).unwrap_or("?"));
        say(" bytes; give fibers larger stacks with Builder::stack_bytes\n");
        // SAFETY: ends the process.
        unsafe { libc::abort() };
    }
    let previous = PREVIOUS.load(Ordering::Acquire);
    if previous == libc::SIG_DFL || previous == libc::SIG_IGN {
        // SAFETY: back to the default; the fault repeats on return and ends the process.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        return;
    }
    // SAFETY: the handler that was set before with SA_SIGINFO, as std's is.
    let previous = unsafe {
        core::mem::transmute::<usize, extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void)>(
            previous,
        )
    };
    previous(signal, info, context);
}

fn say(text: &str) {
    // SAFETY: writes from a valid buffer.
    unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
}

/// Sets the handler once, and gives this thread a signal stack if it has none.
pub fn watch_overflow() {
    if !IS_HANDLER_SET.swap(true, Ordering::AcqRel) {
        for signal in [libc::SIGSEGV, libc::SIGBUS] {
            // SAFETY: zeroed is a valid sigaction; the handler keeps to what a handler may do.
            unsafe {
                let mut action: libc::sigaction = core::mem::zeroed();
                action.sa_sigaction = on_fault as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
                let mut before: libc::sigaction = core::mem::zeroed();
                libc::sigaction(signal, &raw const action, &raw mut before);
                if before.sa_flags & libc::SA_SIGINFO != 0 {
                    PREVIOUS.store(before.sa_sigaction, Ordering::Release);
                }
            }
        }
    }
    // SAFETY: asks for, and if there is none sets, this thread's signal stack. It is never freed:
    // the thread may take a signal until its very end.
    unsafe {
        let mut now: libc::stack_t = core::mem::zeroed();
        libc::sigaltstack(ptr::null(), &raw mut now);
        if now.ss_flags & libc::SS_DISABLE != 0 {
            let bytes = libc::SIGSTKSZ.max(4 * page_bytes());
            let memory = libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            if memory != libc::MAP_FAILED {
                now.ss_sp = memory;
                now.ss_flags = 0;
                now.ss_size = bytes;
                libc::sigaltstack(&raw const now, ptr::null_mut());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    #[test]
    fn the_guards_of_very_many_groups_are_known() {
        let page = page_bytes();
        let groups: Vec<_> = (0..2 * BLOCK + 7).filter_map(|_| map(2 * page, 1).ok()).collect();
        assert_eq!(groups.len(), 2 * BLOCK + 7);
        for group in &groups {
            assert_eq!(in_guard(group.start), Some(2 * page));
            assert_eq!(in_guard(group.start + group.guard), None, "the stack is no guard");
        }
        // SAFETY: nobody uses a stack of them.
        groups.iter().for_each(|group| unsafe { unmap(group) });
        assert!(groups.iter().all(|group| in_guard(group.start).is_none()));
    }

    #[test]
    fn sizes_that_no_memory_has_are_refused() {
        for bytes in [1 << 58, usize::MAX - 4095, usize::MAX / 2] {
            assert_eq!(map(bytes, 64).err(), Some(SystemError::Memory(libc::ENOMEM)));
        }
    }
}
