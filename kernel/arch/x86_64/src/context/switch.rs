//! From one context to another.

use super::{Context, State, WrongState};
use crate::cpu::{self, PerCpu};
use crate::fpu;
use crate::paging::{self, Space};
use core::arch::naked_asm;
use core::sync::atomic::Ordering;
use core_address::is_lower_half;

/// What the next context does for the previous one, once the CPU has left its stack and it counts
/// as saved (or ended): commit its block, queue it, or take it apart.
pub type After = fn(previous: &'static Context, data: u64);

/// What this CPU runs.
#[inline]
pub fn current() -> &'static Context {
    // SAFETY: set when the CPU took its block into use, and only to contexts, which are static.
    unsafe { &*cpu::this().current.load(Ordering::Relaxed) }
}

/// Runs another context on this CPU; returns when this one is run again, on whatever CPU.
///
/// `after` is called on the next context's stack. Refused, with nothing changed, if `next` is
/// not saved: it runs, has ended, or another CPU was faster.
#[inline]
pub fn switch_to(next: &'static Context, after: After, data: u64) -> Result<(), WrongState> {
    claim_here(next)?;
    // SAFETY: claimed.
    unsafe { go(next, after, data, State::Saved) };
    Ok(())
}

/// Runs another context on this CPU and never comes back: this one has ended.
///
/// Comes back only if refused, as [`switch_to`] is.
pub fn end_and_switch_to(next: &'static Context, after: After, data: u64) -> WrongState {
    if let Err(wrong) = claim_here(next) {
        return wrong;
    }
    // SAFETY: claimed.
    unsafe { go(next, after, data, State::Ended) };
    // An ended context is claimed by nobody who runs it.
    crate::exit::halt()
}

/// Claims a context for this CPU; the idle context of another one is never for this.
#[inline]
fn claim_here(next: &'static Context) -> Result<(), WrongState> {
    next.claim(State::Saved, State::Running)?;
    // SAFETY: claimed, so the cell is ours.
    if unsafe { *next.fpu.get() } == 0 && !core::ptr::eq(next, &cpu::this().idle) {
        next.publish(State::Saved);
        return Err(WrongState(State::Running));
    }
    Ok(())
}

/// # Safety
/// `next` was claimed for this CPU.
#[inline]
unsafe fn go(next: &'static Context, after: After, data: u64, state: State) {
    let cpu = cpu::this();
    let previous = current();
    // SAFETY: both contexts are running as far as others are concerned, and so this CPU's alone.
    // Areas and stacks are those given to `prepare`, which stay until the context is taken apart.
    unsafe {
        let saved_area = *previous.fpu.get();
        if saved_area != 0 {
            fpu::save(saved_area);
        }
        change_space(cpu, next);
        let area = *next.fpu.get();
        if area != 0 {
            fpu::restore(area);
            cpu.set_user_entry_stack(*next.entry_stack.get());
            let base = next.fs_base.load(Ordering::Relaxed);
            // A user thread's base is in the register while it runs; idle leaves it as it was.
            if saved_area == 0 || base != previous.fs_base.load(Ordering::Relaxed) {
                cpu::write_fs_base(base);
            }
        }
        cpu.current.store(core::ptr::from_ref(next).cast_mut(), Ordering::Relaxed);
        let to = *next.stack_pointer.get();
        switch_stacks(previous, to, after, data, state);
    }
}

/// Loads the next context's page tables if they are others.
///
/// # Safety
/// `next` was claimed for this CPU, so its space has tables until it is taken apart.
#[inline]
unsafe fn change_space(cpu: &'static PerCpu, next: &Context) {
    let to = next.space.load(Ordering::Relaxed);
    let from = cpu.space.load(Ordering::Relaxed);
    if to == from {
        return;
    }
    let index = cpu.index() as usize;
    cpu.space.store(to, Ordering::Relaxed);
    // SAFETY: pointers to spaces are made from static references; null stands for the kernel's own
    // tables, which stay.
    unsafe {
        match to.as_ref() {
            Some(to) => Space::enter(to, index),
            None => paging::load_kernel_tables(),
        }
        if let Some(from) = from.as_ref() {
            from.leave(index);
        }
    }
}

/// Saves what a function must keep on the stack and goes on with another stack.
///
/// `finish` is entered on the new stack as if the resumed function had called it.
#[allow(improper_ctypes_definitions, reason = "the function is passed on, a word to this code")]
#[unsafe(naked)]
unsafe extern "C" fn switch_stacks(
    previous: &'static Context,
    to: u64,
    after: After,
    data: u64,
    state: State,
) {
    naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov [rdi], rsp",
        "mov rsp, rsi",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "jmp {finish}",
        finish = sym finish,
    )
}

/// The first thing on the new stack: the previous context is left.
#[allow(improper_ctypes_definitions, reason = "called by our own code only")]
extern "C" fn finish(previous: &'static Context, _: u64, after: After, data: u64, state: State) {
    previous.publish(state);
    after(previous, data);
}

/// The base is no user address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotUser;

impl Context {
    /// Gives the running thread another FS base, at once. Only for the context that calls it.
    pub fn set_own_fs_base(base: u64) -> Result<(), NotUser> {
        if !is_lower_half(base) {
            return Err(NotUser);
        }
        current().fs_base.store(base, Ordering::Relaxed);
        cpu::write_fs_base(base);
        Ok(())
    }
}
