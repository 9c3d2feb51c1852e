//! Stacks on Linux: mapped in groups, with light guard regions where the kernel has them.
//!
//! A guard that is a mapping of its own splits the group's mapping in two, and a process may have
//! only so many (vm.max_map_count, 65,530 by default). Guard regions (Linux 6.13) live in the page
//! tables and split nothing; where they are missing, guards are made with mprotect and the limit is
//! reported by its name.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::{StackGroup, SystemError};

/// `MADV_GUARD_INSTALL` of linux/mman.h.
const MADV_GUARD_INSTALL: i32 = 102;

/// Groups whose guards the overflow handler knows: it may not take a lock, so the table is fixed.
/// An overflow in a group beyond it is still stopped by the guard, with the system's own report.
const KNOWN_GROUPS: usize = 4096;

static STARTS: [AtomicUsize; KNOWN_GROUPS] = [const { AtomicUsize::new(0) }; KNOWN_GROUPS];
static STRIDES: [AtomicUsize; KNOWN_GROUPS] = [const { AtomicUsize::new(0) }; KNOWN_GROUPS];
static COUNTS: [AtomicUsize; KNOWN_GROUPS] = [const { AtomicUsize::new(0) }; KNOWN_GROUPS];
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
    asked.unwrap_or(STACK_BYTES).max(LEAST_STACK_PAGES * page).next_multiple_of(page)
}

fn page_bytes() -> usize {
    // SAFETY: a constant of the system.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

pub fn map(stack_bytes: usize, count: usize) -> Result<StackGroup, SystemError> {
    let guard = page_bytes();
    let stride = stack_bytes + guard;
    let length = stride * count;
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
        return Err(if errno() == libc::ENOMEM && count > 1 {
            SystemError::Mappings
        } else {
            SystemError::Memory(errno())
        });
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
            // SAFETY: nobody has a stack of the group.
            unsafe { unmap(&group) };
            return Err(SystemError::Mappings);
        }
    }
    for (index, known) in STARTS.iter().enumerate() {
        // AcqRel: a slot is taken once; its sizes follow and are read after its start.
        if known.compare_exchange(0, group.start, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            if let (Some(s), Some(c)) = (STRIDES.get(index), COUNTS.get(index)) {
                s.store(stride, Ordering::Release);
                c.store(count, Ordering::Release);
            }
            break;
        }
    }
    Ok(group)
}

/// # Safety
/// Nobody uses a stack of the group any more.
pub unsafe fn unmap(group: &StackGroup) {
    for ((known, stride), count) in STARTS.iter().zip(&STRIDES).zip(&COUNTS) {
        if known.load(Ordering::Acquire) == group.start {
            count.store(0, Ordering::Release);
            stride.store(0, Ordering::Release);
            known.store(0, Ordering::Release);
        }
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
    for ((start, stride), count) in STARTS.iter().zip(&STRIDES).zip(&COUNTS) {
        let (start, stride, count) = (
            start.load(Ordering::Acquire),
            stride.load(Ordering::Acquire),
            count.load(Ordering::Acquire),
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
