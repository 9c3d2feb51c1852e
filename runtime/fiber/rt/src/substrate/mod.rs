//! What the runtime needs of the system below it, and nothing else.
//!
//! One implementation is compiled in, as [`Sys`]. The rest of the crate neither names an operating
//! system nor uses `std`.

use core::sync::atomic::AtomicU32;

use alloc::boxed::Box;

#[cfg(target_os = "none")]
pub mod capos;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod linux_stacks;
#[cfg(any(target_os = "none", test))]
mod numbers;
#[cfg(any(target_os = "none", test))]
mod operation;
#[cfg(any(target_os = "none", test))]
mod submissions;

#[cfg(target_os = "none")]
pub use capos::Capos as Sys;
#[cfg(target_os = "linux")]
pub use linux::Linux as Sys;

/// What a panic carried.
pub type PanicPayload = Box<dyn core::any::Any + Send>;

/// Why the system did not give what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemError {
    /// No thread could be started; the system's error number.
    Thread(i32),
    /// No memory for stacks; the system's error number.
    Memory(i32),
    /// The limit on mappings of the process is met, because every guard page is one.
    Mappings,
    /// The process may have no more threads.
    Threads,
    /// The program declares no stacks.
    NoStacks,
    /// Fibers were to have larger stacks than the program declares.
    StackBytes {
        /// What was asked for.
        asked: usize,
        /// What is declared.
        declared: usize,
    },
    /// All stacks for fibers are taken: so many are declared.
    FiberStacks(usize),
    /// All stacks for threads are taken: so many are declared.
    ThreadStacks(usize),
    /// The program lacks a capability of this interface.
    Capability(&'static str),
    /// The rings of the program's threads are too small for workers.
    RingEntries {
        /// What each has.
        entries: u32,
        /// The fewest that do.
        least: u32,
    },
}

impl core::fmt::Display for SystemError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Thread(errno) => write!(out, "no worker thread could be started (error {errno})"),
            Self::Memory(errno) => write!(out, "no memory for fiber stacks (error {errno})"),
            Self::Mappings => out.write_str(
                "the limit on memory mappings is met: each guard page below a fiber stack needs \
                 one here; raise vm.max_map_count, or use a kernel with light guard regions \
                 (Linux 6.13)",
            ),
            Self::Threads => out.write_str(
                "the process may have no more threads: raise threads, kernelStackPages or capSlots \
                 of its profile in the manifest, or ask for fewer workers",
            ),
            Self::NoStacks => out.write_str(
                "the program declares no stacks; say in its root how large and how many: \
                 fiber::stacks!(fibers: [32 << 10; 64], threads: [64 << 10; 5])",
            ),
            Self::StackBytes { asked, declared } => write!(
                out,
                "fibers were to have stacks of {asked} bytes, and the program declares them with \
                 {declared}; make them larger in fiber::stacks!, or leave Builder::stack_bytes out"
            ),
            Self::FiberStacks(count) => write!(
                out,
                "all {count} fiber stacks that the program declares are taken; declare more of them \
                 with fiber::stacks!"
            ),
            Self::ThreadStacks(count) => write!(
                out,
                "all {count} thread stacks that the program declares are taken; declare more of them \
                 with fiber::stacks!, or ask for fewer workers"
            ),
            Self::Capability(interface) => {
                write!(out, "the program has no {interface}: its manifest must grant it")
            }
            Self::RingEntries { entries, least } => write!(
                out,
                "the rings of the program's threads have {entries} entries, and a worker needs \
                 {least}: raise ringEntries of its profile in the manifest"
            ),
        }
    }
}

impl core::error::Error for SystemError {}

/// A group of stacks of one size, each with an inaccessible guard below it.
#[derive(Debug)]
pub struct StackGroup {
    /// The lowest address.
    pub start: usize,
    /// From one stack's lowest address, its guard, to the next one's.
    pub stride: usize,
    /// Bytes of each guard.
    pub guard: usize,
    /// Stacks.
    pub count: usize,
}

/// The system below the runtime.
pub trait Substrate {
    /// A running thread, to be joined.
    type Thread: Send;
    /// What a worker has of the system for itself.
    type Port: Default + Send + Sync;

    /// How many stacks are made at once.
    const STACK_GROUP: usize;
    /// Whether there are only so many stacks: then a worker that finds none takes those that others
    /// keep and do not use.
    const STACKS_ARE_FEW: bool;

    /// Whether the program is one that workers can run in.
    fn admit() -> Result<(), SystemError> {
        Ok(())
    }
    /// This thread's pointer, as set by [`set_current`](Self::set_current). Never inlined: a fiber
    /// may be on another thread after a switch, and no address of this thread may be remembered
    /// across one.
    fn current() -> *const ();
    /// Sets this thread's pointer.
    fn set_current(pointer: *const ());
    /// The frame of this thread as a waiter of its own; made by `make` the first time, and handed
    /// to `retire` when the thread ends.
    fn foreign(make: fn() -> *const (), retire: fn(*const ())) -> *const ();
    /// Sleeps until the word is not `expected`, woken by `unpark`, or `deadline_ns` has passed; may
    /// also return without a reason.
    fn park(word: &AtomicU32, expected: u32, deadline_ns: Option<u64>);
    /// Wakes one thread that sleeps on the word.
    fn unpark(word: &AtomicU32);
    /// Runs a worker's life, on its own thread, with its port.
    #[inline]
    fn attach(_port: &Self::Port, life: impl FnOnce()) {
        life();
    }
    /// Parks the port's worker at a word that is 0, as [`park`](Self::park) does; what comes to the port
    /// ends it as well, and what its fibers want of the system is told to it first.
    #[inline]
    fn sleep(_port: &Self::Port, word: &AtomicU32, deadline_ns: Option<u64>) {
        Self::park(word, 0, deadline_ns);
    }
    /// Whether something has come to the port.
    #[inline(always)]
    fn has_come(_port: &Self::Port) -> bool {
        false
    }
    /// Wakes those for whom something has come to the port. By any thread.
    #[inline(always)]
    fn poll(_port: &Self::Port) {}
    /// Tells the system what the port's fibers want of it, and wakes those for whom it has come. By the
    /// port's worker.
    #[inline(always)]
    fn flush(_port: &Self::Port) {}
    /// Has the port's fibers go elsewhere with what the system was not told yet. By the port's worker,
    /// before it blocks.
    #[inline(always)]
    fn hand_over(_port: &Self::Port) {}
    /// Whether the port takes what a fiber wants of the system, and does not let it wait for others.
    #[inline(always)]
    fn has_room(_port: &Self::Port) -> bool {
        false
    }
    /// Whether a fiber waits until the port has room.
    #[inline(always)]
    fn is_crowded(_port: &Self::Port) -> bool {
        false
    }
    /// Has the first fiber that waits until the port has room ask again, where it goes on; whether there was
    /// one. By any thread.
    #[inline(always)]
    fn hand_over_first(_port: &Self::Port) -> bool {
        false
    }
    /// Whether a fiber waits for what comes to the port: then its worker may not end.
    #[inline(always)]
    fn is_awaited(_port: &Self::Port) -> bool {
        false
    }
    /// Gives the rest of the time slice away.
    fn relax();
    /// A clock that never goes back.
    fn now_ns() -> u64;
    /// Starts a thread.
    fn spawn(name: &str, f: Box<dyn FnOnce() + Send>) -> Result<Self::Thread, SystemError>;
    /// Whether the caller is on it.
    fn is_current(thread: &Self::Thread) -> bool;
    /// Waits for a thread's end.
    fn join(thread: Self::Thread);
    /// How many CPUs this program may use.
    fn cpus() -> usize;
    /// Runs `f`; an error is what it panicked with.
    fn catch<R>(f: impl FnOnce() -> R) -> Result<R, PanicPayload>;
    /// Goes on with a panic that was caught.
    fn resume(payload: PanicPayload) -> !;
    /// Whether this thread unwinds because of a panic. Then what runs on it may not go on elsewhere.
    #[inline(always)]
    fn is_panicking() -> bool {
        false
    }
    /// A message for whoever runs the program.
    fn warn(text: core::fmt::Arguments<'_>);
    /// The size of each stack of a runtime that asks for so many bytes, or for what is usual.
    fn stack_bytes(asked: Option<usize>) -> Result<usize, SystemError>;
    /// Maps a group of stacks of that size.
    fn map_stacks(stack_bytes: usize, count: usize) -> Result<StackGroup, SystemError>;
    /// # Safety
    /// Nobody uses a stack of the group any more.
    unsafe fn unmap_stacks(group: &StackGroup);
    /// How many bytes at the top of the stack that ends at `top` have ever been used.
    fn used_bytes(top: usize, stack_bytes: usize) -> usize;
    /// Prepares this thread to report an overflow of a stack instead of dying without a word.
    fn watch_overflow();
}
