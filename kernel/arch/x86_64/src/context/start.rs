//! The state a thread starts in, and its first way into user mode or into a function of the kernel.
//!
//! A new context's stack looks as if it had been interrupted in user mode before its first
//! instruction and then switched away from, so the switch needs no special case.

use super::switch::first;
use crate::trap::{TrapFrame, trap_return};
use core_address::check_start;

pub use core_address::BadStart;

/// What a thread starts with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UserStart {
    entry: u64,
    stack_top: u64,
    fs_base: u64,
    /// RDI: the argument.
    pub argument: u64,
    /// RSI: the thread's number.
    pub tid: u64,
    /// RDX: the process's number.
    pub pid: u64,
    /// RCX: where the ring block is.
    pub ring: u64,
    /// R8: where the CapSet is, or 0.
    pub capset: u64,
}

impl UserStart {
    /// A start at `entry` on `stack_top` with `fs_base`, everything else zero; refused if the CPU
    /// could not begin there ([`check_start`]).
    pub const fn new(entry: u64, stack_top: u64, fs_base: u64) -> Result<UserStart, BadStart> {
        if let Err(bad) = check_start(entry, stack_top, fs_base) {
            return Err(bad);
        }
        Ok(UserStart { entry, stack_top, fs_base, argument: 0, tid: 0, pid: 0, ring: 0, capset: 0 })
    }

    pub(super) const fn fs_base(&self) -> u64 {
        self.fs_base
    }
}

/// What the switch finds: where it goes on, where that returns to, and the frame of the interrupt.
#[repr(C)]
struct Saved {
    goes_on: u64,
    returns_to: u64,
    frame: TrapFrame,
}

/// Puts the start on a stack that ends at `top`: where its stack pointer is.
///
/// # Safety
/// The memory below `top`, which is a multiple of 16, is a stack of the caller's.
pub(super) unsafe fn push(top: u64, start: &UserStart) -> u64 {
    let mut frame = TrapFrame::user(start.entry, start.stack_top);
    frame.registers.rdi = start.argument;
    frame.registers.rsi = start.tid;
    frame.registers.rdx = start.pid;
    frame.registers.rcx = start.ring;
    frame.registers.r8 = start.capset;
    // The switch leaves nothing of the last thread in the segment registers.
    let returns_to = trap_return as *const () as u64;
    let saved = Saved { goes_on: first as *const () as u64, returns_to, frame };
    let at = top - size_of::<Saved>() as u64;
    // SAFETY: by the contract; the size is a multiple of 8.
    unsafe { (at as *mut Saved).write(saved) };
    at
}

/// A function of the kernel that a context runs, with what it is given.
#[derive(Clone, Copy)]
pub struct KernelStart {
    run: fn(*const ()) -> !,
    of: *const (),
}

// SAFETY: `new` takes references to what may be shared, and only the function looks at them.
unsafe impl Send for KernelStart {}

impl KernelStart {
    /// Runs `run` with `of`.
    pub fn new<T: Sync>(run: fn(&'static T) -> !, of: &'static T) -> Self {
        // SAFETY: a reference to a sized value and a raw pointer are passed in the same way, and the
        // function is called with this very reference.
        let run = unsafe { core::mem::transmute::<fn(&'static T) -> !, fn(*const ()) -> !>(run) };
        Self { run, of: core::ptr::from_ref(of).cast() }
    }
}

/// As [`Saved`], for a function of the kernel.
#[repr(C)]
struct SavedInKernel {
    goes_on: u64,
    returns_to: u64,
    run: u64,
    of: u64,
}

// The stack is aligned for a call when the function begins.
const _: () = assert!(size_of::<SavedInKernel>().is_multiple_of(16));

/// Puts the start on a stack that ends at `top`, as [`push`] does.
///
/// # Safety
/// As for [`push`].
pub(super) unsafe fn push_kernel(top: u64, start: KernelStart) -> u64 {
    let saved = SavedInKernel {
        goes_on: first as *const () as u64,
        returns_to: run_start as *const () as u64,
        run: start.run as *const () as u64,
        of: start.of as u64,
    };
    let at = top - size_of::<SavedInKernel>() as u64;
    // SAFETY: by the contract; the size is a multiple of 16.
    unsafe { (at as *mut SavedInKernel).write(saved) };
    at
}

/// Calls the function whose address is on the stack, with the word above it; it does not come back.
#[unsafe(naked)]
extern "C" fn run_start() -> ! {
    core::arch::naked_asm!("pop rax", "pop rdi", "call rax", "ud2")
}
