//! What a CPU can run: user threads, each on a kernel stack of its own, and its idle context.
//!
//! A [`Context`] is the part of a thread that the machine needs: where its registers are, which page
//! tables, FS base and FPU area it has. It lies in memory that is never given back, and its state word
//! says who may touch it, so that no order of calls makes two CPUs run on one stack:
//!
//! | state | meaning | who may touch it |
//! |---|---|---|
//! | empty | no stack | whoever prepares it |
//! | saved | registers are in memory | whoever claims it: to run it, or to take it apart |
//! | running | a CPU is on its stack | that CPU |
//! | ended | will not run again | whoever takes it apart |
//!
//! A switch claims the next context before anything else, and the previous one stays *running* until
//! the CPU has left its stack: then the next context says that it is saved, and calls the function
//! that was given for it ([`After`]). Only from there on may another CPU run it or its stack
//! be freed.
//!
//! * [`switch`]: the switch itself. [`start`]: the first entry into user mode.
//!
//! Decided in ADR 25.

mod start;
mod switch;

pub use start::{BadStart, KernelStart, UserStart};
pub use switch::{After, current, end_and_switch_to, switch_to};

use crate::fpu;
use crate::paging::Space;
use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};

/// Something a CPU can run.
#[repr(C)]
pub struct Context {
    /// Where the registers were pushed, while saved. First: the switch finds it by the address.
    stack_pointer: UnsafeCell<u64>,
    /// Top of the stack that entries from user mode start on, see `PerCpu::set_user_entry_stack`.
    entry_stack: UnsafeCell<u64>,
    /// The FPU area; 0 for an idle context, which has none.
    fpu: UnsafeCell<u64>,
    /// Read at each switch; written by the thread itself, or while it is prepared.
    fs_base: AtomicU64,
    /// Null for an idle context: the kernel's tables.
    space: AtomicPtr<Space>,
    state: AtomicU8,
}

// SAFETY: the cells are touched only by whoever the state word says (see the top of the file).
unsafe impl Sync for Context {}
// SAFETY: nothing in it is bound to a CPU while it is not running.
unsafe impl Send for Context {}

const _: () = assert!(offset_of!(Context, stack_pointer) == 0);

/// What a context is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum State {
    /// Without a stack.
    Empty = 0,
    /// Can be run.
    Saved = 1,
    /// A CPU runs it.
    Running = 2,
    /// Will not run again.
    Ended = 3,
    /// Being prepared or taken apart.
    Changing = 4,
}

/// The context is not in a state to be run, prepared or taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WrongState(pub State);

impl Context {
    /// One that can be prepared.
    pub const fn new() -> Context {
        Context::in_state(State::Empty)
    }

    /// The context of a CPU that is about to start.
    pub(crate) const fn running() -> Context {
        Context::in_state(State::Running)
    }

    const fn in_state(state: State) -> Context {
        Context {
            stack_pointer: UnsafeCell::new(0),
            entry_stack: UnsafeCell::new(0),
            fpu: UnsafeCell::new(0),
            fs_base: AtomicU64::new(0),
            space: AtomicPtr::new(core::ptr::null_mut()),
            state: AtomicU8::new(state as u8),
        }
    }

    /// What it is. Acquire, pairs with the release when the state was set.
    pub fn state(&self) -> State {
        State::from_u8(self.state.load(Ordering::Acquire))
    }

    /// Goes from one state to another; only one caller succeeds.
    #[inline]
    fn claim(&self, from: State, to: State) -> Result<(), WrongState> {
        // Acquire, pairs with the release in `publish`: what the last one to touch it wrote is seen.
        self.state
            .compare_exchange(from as u8, to as u8, Ordering::Acquire, Ordering::Relaxed)
            .map(|_| ())
            .map_err(|found| WrongState(State::from_u8(found)))
    }

    /// Release, pairs with the acquire in `claim` and `state`.
    #[inline]
    fn publish(&self, state: State) {
        self.state.store(state as u8, Ordering::Release);
    }

    /// Makes an empty context one that enters user mode as `start` says when it is first run.
    ///
    /// # Safety
    /// The stack from `bottom` to `stack_top` is mapped in the kernel's half, page-aligned, at least
    /// two pages, and used for nothing else until [`Self::take_apart`] succeeds.
    pub unsafe fn prepare(
        &'static self,
        stack_top: u64,
        space: &'static Space,
        start: &UserStart,
    ) -> Result<(), WrongState> {
        self.claim(State::Empty, State::Changing)?;
        if !space.hold() {
            self.publish(State::Empty);
            return Err(WrongState(State::Empty));
        }
        let area = stack_top - fpu::area_bytes() as u64;
        // SAFETY: the claim makes the cells ours; the stack is, by the contract. The area begins
        // on a multiple of 64 below a page boundary.
        unsafe {
            fpu::init_area(area as *mut u8);
            *self.fpu.get() = area;
            *self.entry_stack.get() = area - 8;
            *self.stack_pointer.get() = start::push(area, start);
        }
        self.fs_base.store(start.fs_base(), Ordering::Relaxed);
        self.space.store(core::ptr::from_ref(space).cast_mut(), Ordering::Relaxed);
        self.publish(State::Saved);
        Ok(())
    }

    /// Makes an empty context one that runs a function of the kernel, on the kernel's own page tables.
    ///
    /// # Safety
    /// As for [`Self::prepare`].
    pub unsafe fn prepare_kernel(
        &'static self,
        stack_top: u64,
        start: KernelStart,
    ) -> Result<(), WrongState> {
        self.claim(State::Empty, State::Changing)?;
        let area = stack_top - fpu::area_bytes() as u64;
        // SAFETY: as in `prepare`. The area is there so that this context is switched like any other.
        unsafe {
            fpu::init_area(area as *mut u8);
            *self.fpu.get() = area;
            *self.entry_stack.get() = area - 8;
            *self.stack_pointer.get() = start::push_kernel(area, start);
        }
        self.fs_base.store(0, Ordering::Relaxed);
        self.space.store(core::ptr::null_mut(), Ordering::Relaxed);
        self.publish(State::Saved);
        Ok(())
    }

    /// Takes a context apart that no CPU runs: its stack is the caller's again.
    pub fn take_apart(&'static self) -> Result<(), WrongState> {
        self.claim(State::Saved, State::Changing)
            .or_else(|_| self.claim(State::Ended, State::Changing))?;
        // SAFETY: the claim makes the context ours; the space outlives its contexts (static).
        if let Some(space) = unsafe { self.space.load(Ordering::Relaxed).as_ref() } {
            space.release();
        }
        self.space.store(core::ptr::null_mut(), Ordering::Relaxed);
        self.publish(State::Empty);
        Ok(())
    }

    /// Its FS base.
    pub fn fs_base(&self) -> u64 {
        self.fs_base.load(Ordering::Relaxed)
    }
}

impl Default for Context {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    const fn from_u8(value: u8) -> State {
        match value {
            0 => State::Empty,
            1 => State::Saved,
            2 => State::Running,
            3 => State::Ended,
            _ => State::Changing,
        }
    }
}
