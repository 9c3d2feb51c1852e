//! Linux: threads, futex, and `std` for panics and thread-local storage.

extern crate std;

use core::cell::{Cell, UnsafeCell};
use core::ptr;
use core::sync::atomic::AtomicU32;

use alloc::boxed::Box;
use alloc::string::ToString;

use super::{PanicPayload, StackGroup, Substrate, SystemError};

/// The Linux substrate.
#[derive(Debug)]
pub struct Linux;

std::thread_local! {
    static CURRENT: Cell<*const ()> = const { Cell::new(ptr::null()) };
    static FOREIGN: Foreign = const { Foreign(UnsafeCell::new((ptr::null(), None))) };
}

/// The frame of a thread that is no worker; given back when the thread ends.
struct Foreign(UnsafeCell<(*const (), Retire)>);

type Retire = Option<fn(*const ())>;

impl Drop for Foreign {
    fn drop(&mut self) {
        if let (frame, Some(retire)) = *self.0.get_mut() {
            retire(frame);
        }
    }
}

fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000).cast_signed(),
        tv_nsec: (ns % 1_000_000_000).cast_signed(),
    }
}

impl Substrate for Linux {
    type Thread = std::thread::JoinHandle<()>;
    type Port = ();

    const STACK_GROUP: usize = 64;
    const STACKS_ARE_FEW: bool = false;

    #[inline(never)]
    fn current() -> *const () {
        CURRENT.with(Cell::get)
    }

    #[inline(never)]
    fn set_current(pointer: *const ()) {
        CURRENT.with(|current| current.set(pointer));
    }

    #[inline(never)]
    fn foreign(make: fn() -> *const (), retire: fn(*const ())) -> *const () {
        // A destructor of this thread that runs after FOREIGN's gets a frame that is not given back.
        FOREIGN
            .try_with(|foreign| {
                // SAFETY: only this thread reaches the cell, and `make` does not come back here.
                let slot = unsafe { &mut *foreign.0.get() };
                if slot.0.is_null() {
                    *slot = (make(), Some(retire));
                }
                slot.0
            })
            .unwrap_or_else(|_| make())
    }

    fn park(word: &AtomicU32, expected: u32, deadline_ns: Option<u64>) {
        let deadline = deadline_ns.map(timespec);
        let deadline = deadline.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the word is valid while borrowed; FUTEX_WAIT_BITSET takes an absolute time of
        // CLOCK_MONOTONIC, which `now_ns` reads.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                ptr::from_ref(word),
                libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
                expected,
                deadline,
                ptr::null::<u32>(),
                u32::MAX,
            );
        }
    }

    fn unpark(word: &AtomicU32) {
        // SAFETY: only the address is used.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                ptr::from_ref(word),
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                1,
            );
        }
    }

    fn relax() {
        std::thread::yield_now();
    }

    fn now_ns() -> u64 {
        let mut now = timespec(0);
        // SAFETY: the clock exists and the place is valid.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
        now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
    }

    fn spawn(name: &str, f: Box<dyn FnOnce() + Send>) -> Result<Self::Thread, SystemError> {
        std::thread::Builder::new()
            .name(name.to_string())
            .spawn(f)
            .map_err(|error| SystemError::Thread(error.raw_os_error().unwrap_or(0)))
    }

    fn is_current(thread: &Self::Thread) -> bool {
        thread.thread().id() == std::thread::current().id()
    }

    fn join(thread: Self::Thread) {
        // A worker's panic is a defect and has been reported by the panic itself.
        let _ = thread.join();
    }

    fn cpus() -> usize {
        std::thread::available_parallelism().map_or(1, |count| count.get())
    }

    fn catch<R>(f: impl FnOnce() -> R) -> Result<R, PanicPayload> {
        std::panic::catch_unwind(core::panic::AssertUnwindSafe(f))
    }

    fn resume(payload: PanicPayload) -> ! {
        std::panic::resume_unwind(payload)
    }

    #[inline]
    fn is_panicking() -> bool {
        // A look at a count of the process, and only while that is not zero at the thread's, in a
        // function of its own.
        std::thread::panicking()
    }

    fn warn(text: core::fmt::Arguments<'_>) {
        use std::io::Write;
        let _ = std::io::stderr().write_fmt(format_args!("fiber: {text}\n"));
    }

    fn stack_bytes(asked: Option<usize>) -> Result<usize, SystemError> {
        Ok(super::linux_stacks::stack_bytes(asked))
    }

    fn map_stacks(stack_bytes: usize, count: usize) -> Result<StackGroup, SystemError> {
        super::linux_stacks::map(stack_bytes, count)
    }

    unsafe fn unmap_stacks(group: &StackGroup) {
        // SAFETY: by the caller.
        unsafe { super::linux_stacks::unmap(group) }
    }

    fn used_bytes(top: usize, stack_bytes: usize) -> usize {
        super::linux_stacks::used_bytes(top, stack_bytes)
    }

    fn watch_overflow() {
        super::linux_stacks::watch_overflow();
    }
}
