//! Stacks the program declares with [`stacks!`](crate::stacks), for fibers and for threads.
//!
//! They are part of the program's image, each with a guard below it that the kernel does not map: an
//! overflow is a fault, which ends the process with a report before anything is written. All runtimes of
//! a process take their fibers' stacks from the same declaration, one at a time, and keep each until
//! they are dropped.

use core::ptr;

use capos_rt::thread::{Stack, StackRef, Stacks};

use super::super::numbers::Numbers;
use crate::lock::SpinLock;
use crate::substrate::{StackGroup, SystemError};

/// Bytes of a guard.
const GUARD: usize = abi_types::GUARD_BYTES as usize;
/// The smallest stack of a fiber: a page for the fiber, one for its result and for what the switch needs.
const LEAST_BYTES: usize = 8192;

/// What a program declares.
#[derive(Debug)]
pub struct Declared {
    fibers: Stacks,
    threads: Stacks,
}

impl Declared {
    /// For [`stacks!`](crate::stacks): nothing else names the stacks.
    pub const fn new<
        const FIBER_BYTES: usize,
        const FIBERS: usize,
        const THREAD_BYTES: usize,
        const THREADS: usize,
    >(
        fibers: &'static [Stack<FIBER_BYTES>; FIBERS],
        threads: &'static [Stack<THREAD_BYTES>; THREADS],
    ) -> Self {
        const { assert!(FIBER_BYTES >= LEAST_BYTES, "a fiber's stack has at least 8192 bytes") }
        const { assert!(THREAD_BYTES >= LEAST_BYTES, "a thread's stack has at least 8192 bytes") }
        Self { fibers: Stacks::of(fibers), threads: Stacks::of(threads) }
    }
}

unsafe extern "Rust" {
    /// Defined by [`stacks!`](crate::stacks); null if the program has not used it.
    #[linkage = "extern_weak"]
    static CAPOS_FIBER_STACKS: *const Declared;
}

/// What this program declares.
fn declared() -> Result<&'static Declared, SystemError> {
    // SAFETY: null, or the static of that type the macro defines.
    unsafe { CAPOS_FIBER_STACKS.as_ref() }.ok_or(SystemError::NoStacks)
}

static FIBERS: SpinLock<Numbers> = SpinLock::new(Numbers::new());
static THREADS: SpinLock<Numbers> = SpinLock::new(Numbers::new());

/// The size of a fiber's stack for who wants at least `asked`.
pub fn fiber_bytes(asked: Option<usize>) -> Result<usize, SystemError> {
    let declared = declared()?.fibers.bytes();
    match asked {
        Some(asked) if asked > declared => Err(SystemError::StackBytes { asked, declared }),
        _ => Ok(declared),
    }
}

/// A fiber's stack, as a group of one.
pub fn map() -> Result<StackGroup, SystemError> {
    let fibers = declared()?.fibers;
    let refused = SystemError::FiberStacks(fibers.count());
    let number = FIBERS.with(|numbers| numbers.take(fibers.count())).ok_or(refused)?;
    let memory = fibers.get(number).ok_or(refused)?.memory();
    Ok(StackGroup {
        start: memory.start - GUARD,
        stride: memory.len() + GUARD,
        guard: GUARD,
        count: 1,
    })
}

/// # Safety
/// `map` made the group, and nobody uses its stack any more.
pub unsafe fn unmap(group: &StackGroup) {
    let top = group.start + group.stride;
    // For the next runtime it is as if nobody had used it.
    let used = used_bytes(top, group.stride - group.guard);
    // SAFETY: the upper part of the stack, which by the caller nobody uses.
    unsafe { ptr::with_exposed_provenance_mut::<u8>(top - used).write_bytes(0, used) };
    if let Some(number) = declared().ok().and_then(|all| all.fibers.number_of(group.start)) {
        FIBERS.with(|numbers| numbers.give(number));
    }
}

/// Memory of a new stack is zero, so what is not has been used.
pub fn used_bytes(top: usize, stack_bytes: usize) -> usize {
    let bottom = ptr::with_exposed_provenance::<u64>(top - stack_bytes);
    let words = stack_bytes / 8;
    // SAFETY: within the stack. Fibers that run write to it meanwhile, each word at once.
    let untouched = (0..words).take_while(|word| unsafe { bottom.add(*word).read_volatile() } == 0);
    stack_bytes - untouched.count() * 8
}

/// A thread's stack with its number.
pub fn take_for_thread() -> Result<(usize, StackRef), SystemError> {
    let threads = declared()?.threads;
    let refused = SystemError::ThreadStacks(threads.count());
    let number = THREADS.with(|numbers| numbers.take(threads.count())).ok_or(refused)?;
    Ok((number, threads.get(number).ok_or(refused)?))
}

/// Whether `address` is in the thread's stack of that number.
pub fn is_of_thread(number: usize, address: usize) -> bool {
    let stack = declared().ok().and_then(|all| all.threads.get(number));
    stack.is_some_and(|stack| stack.memory().contains(&address))
}

/// Takes a thread's stack back. By whoever took it, once the thread is gone.
pub fn give_from_thread(number: usize) {
    THREADS.with(|numbers| numbers.give(number));
}
