//! What the runtime needs of the system below it, and nothing else.
//!
//! One implementation is compiled in, as [`Sys`]. The rest of the crate neither names an operating
//! system nor uses `std`.

use core::sync::atomic::AtomicU32;

use alloc::boxed::Box;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod linux_stacks;

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
    /// Gives the rest of the time slice away.
    fn relax();
    /// A clock that never goes back.
    fn now_ns() -> u64;
    /// Starts a thread.
    fn spawn(name: &str, f: Box<dyn FnOnce() + Send>) -> Result<Self::Thread, SystemError>;
    /// Waits for a thread's end.
    fn join(thread: Self::Thread);
    /// How many CPUs this program may use.
    fn cpus() -> usize;
    /// Runs `f`; an error is what it panicked with.
    fn catch<R>(f: impl FnOnce() -> R) -> Result<R, PanicPayload>;
    /// Goes on with a panic that was caught.
    fn resume(payload: PanicPayload) -> !;
    /// A message for whoever runs the program.
    fn warn(text: core::fmt::Arguments<'_>);
    /// The size of a page.
    fn page_bytes() -> usize;
    /// Maps a group of stacks.
    fn map_stacks(stack_bytes: usize, count: usize) -> Result<StackGroup, SystemError>;
    /// # Safety
    /// Nobody uses a stack of the group any more.
    unsafe fn unmap_stacks(group: &StackGroup);
    /// How many bytes at the top of the stack that ends at `top` have ever been used.
    fn used_bytes(top: usize, stack_bytes: usize) -> usize;
    /// Prepares this thread to report an overflow of a stack instead of dying without a word.
    fn watch_overflow();
}
