//! From one context to another.
//!
//! Decided in ADRs 25 and 172.

use super::{Context, State, WrongState};
use crate::cpu::{self, PerCpu};
use crate::fpu;
use crate::paging::{self, Space};
use core::arch::asm;
use core::sync::atomic::Ordering;
use core_address::is_lower_half;

/// What the next context does for the previous one, once the CPU has left its stack and it counts
/// as saved (or ended): commit its block, queue it, or take it apart. `of` is what the previous context
/// gave along.
pub type After<T> = fn(previous: &'static Context, of: &'static T);

/// An [`After`] of whatever type, with what it is given.
#[derive(Clone, Copy)]
struct AfterAny {
    run: fn(&'static Context, *const ()),
    of: *const (),
}

impl AfterAny {
    fn new<T: Sync>(after: After<T>, of: &'static T) -> Self {
        // SAFETY: a reference to a sized value and a raw pointer are passed in the same way, and the
        // function is called with this very reference.
        let run =
            unsafe { core::mem::transmute::<After<T>, fn(&'static Context, *const ())>(after) };
        Self { run, of: core::ptr::from_ref(of).cast() }
    }
}

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
#[inline(always)]
pub fn switch_to<T: Sync>(
    next: &'static Context,
    after: After<T>,
    of: &'static T,
) -> Result<(), WrongState> {
    let cpu = cpu::this();
    claim_for(cpu, next)?;
    // SAFETY: claimed.
    unsafe { go(cpu, next, AfterAny::new(after, of), State::Saved) };
    Ok(())
}

/// Runs another context on this CPU and never comes back: this one has ended.
///
/// Comes back only if refused, as [`switch_to`] is.
pub fn end_and_switch_to<T: Sync>(
    next: &'static Context,
    after: After<T>,
    of: &'static T,
) -> WrongState {
    let cpu = cpu::this();
    if let Err(wrong) = claim_for(cpu, next) {
        return wrong;
    }
    // SAFETY: claimed.
    unsafe { go(cpu, next, AfterAny::new(after, of), State::Ended) };
    // An ended context is claimed by nobody who runs it.
    crate::exit::halt()
}

/// Claims a context for this CPU; the idle context of another one is never for this.
#[inline(always)]
fn claim_for(cpu: &'static PerCpu, next: &'static Context) -> Result<(), WrongState> {
    next.claim(State::Saved, State::Running)?;
    // SAFETY: claimed, so the cell is ours.
    if unsafe { *next.fpu.get() } == 0 {
        return only_own_idle(cpu, next);
    }
    Ok(())
}

/// A claimed context without an area is some CPU's idle context.
#[cold]
fn only_own_idle(cpu: &'static PerCpu, next: &'static Context) -> Result<(), WrongState> {
    if core::ptr::eq(next, &cpu.idle) {
        return Ok(());
    }
    next.publish(State::Saved);
    Err(WrongState(State::Running))
}

/// # Safety
/// `cpu` is this one, and `next` was claimed for it.
#[inline(always)]
unsafe fn go(cpu: &'static PerCpu, next: &'static Context, after: AfterAny, state: State) {
    // SAFETY: as in `current`.
    let previous: &'static Context = unsafe { &*cpu.current.load(Ordering::Relaxed) };
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
            // User mode loads segment registers without asking, and a load of FS changes its base, a
            // null one without leaving a trace: nothing of them is believed, and nothing passed on.
            if cpu::data_selectors() != 0 {
                cpu::clear_data_selectors();
            }
            cpu::write_fs_base(next.fs_base.load(Ordering::Relaxed));
        }
        cpu.current.store(core::ptr::from_ref(next).cast_mut(), Ordering::Relaxed);
        let to = *next.stack_pointer.get();
        let (previous, left) = switch_stacks(previous, to, Left { after, state: state as u8 });
        finish(previous, left);
    }
}

/// Loads the next context's page tables if they are others.
///
/// # Safety
/// `next` was claimed for this CPU, so its space has tables until it is taken apart.
#[inline(always)]
unsafe fn change_space(cpu: &'static PerCpu, next: &Context) {
    let to = next.space.load(Ordering::Relaxed);
    let from = cpu.space.load(Ordering::Relaxed);
    if to == from {
        return;
    }
    cpu.space.store(to, Ordering::Relaxed);
    // SAFETY: pointers to spaces are made from static references; null stands for the kernel's own
    // tables, which stay.
    unsafe {
        match to.as_ref() {
            Some(to) => Space::enter(to, cpu),
            None => paging::load_kernel_tables(),
        }
        if let Some(from) = from.as_ref() {
            from.leave(cpu.resident);
        }
    }
}

/// Goes on with another stack, and comes back when somebody goes on with this one: with what they
/// gave along. The frame pointer and RBX, which code around an `asm!` cannot give up, and the place to go
/// on are on the stack; every other register is lost.
///
/// A context that runs for the first time goes on in [`first`], with the same registers.
///
/// # Safety
/// `previous` is what this CPU runs, with its own stack; `to` is the stack pointer of a context that was
/// claimed for this CPU, as this or `start::push` left it.
#[inline(always)]
unsafe fn switch_stacks(
    previous: &'static Context,
    to: u64,
    left: Left,
) -> (&'static Context, Left) {
    let Left { after: AfterAny { run, of }, state } = left;
    let (mut previous, mut run, mut of) = (core::ptr::from_ref(previous), run, of);
    let mut state = u32::from(state);
    // SAFETY: by the contract. Whoever comes back to label 2 put there what they themselves switch away
    // with: registers of the same types. Contexts are static.
    unsafe {
        asm!(
            "push rbp",
            "push rbx",
            "lea rax, [rip + 2f]",
            "push rax",
            "mov [rdi], rsp",
            "mov rsp, rsi",
            "ret",
            "2:",
            "pop rbx",
            "pop rbp",
            inout("rdi") previous,
            inout("rsi") to => _,
            inout("rdx") run,
            inout("rcx") of,
            inout("r8") state,
            out("rax") _,
            out("r9") _,
            out("r10") _,
            out("r11") _,
            out("r12") _,
            out("r13") _,
            out("r14") _,
            out("r15") _,
        );
        (&*previous, Left { after: AfterAny { run, of }, state: state as u8 })
    }
}

const _: () = assert!(core::mem::offset_of!(Context, stack_pointer) == 0);

/// What a context leaves to the next one: what to do for it, and what it is then.
#[derive(Clone, Copy)]
struct Left {
    after: AfterAny,
    /// A [`State`].
    state: u8,
}

/// The first thing on the new stack: the previous context is left.
#[inline(always)]
fn finish(previous: &'static Context, left: Left) {
    // Release: as in `publish`.
    previous.state.store(left.state, Ordering::Release);
    (left.after.run)(previous, left.after.of);
}

/// The first thing a new context does, in the registers [`switch_stacks`] left; returns to what
/// `start::push` put above.
#[allow(improper_ctypes_definitions, reason = "reached by our own code only")]
pub(super) extern "C" fn first(
    previous: &'static Context,
    _: u64,
    run: fn(&'static Context, *const ()),
    of: *const (),
    state: u8,
) {
    finish(previous, Left { after: AfterAny { run, of }, state });
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
