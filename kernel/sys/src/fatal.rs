//! The end of a run that went wrong: one report on every console, then the exit port or a halt.
//!
//! Panics and exceptions that nobody expects come here. No lock is taken. The first CPU to come
//! stops all others and reports; a second one stops itself; a failure while reporting gives a short
//! line, and one more gives nothing but the end.

use crate::symbols::Named;
use abi_report::Exit;
use core::fmt::{self, Write};
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use core_cmdline::AtEnd;
use kernel_arch::console::{self, Console, Ink};
use kernel_arch::cpu::{self, ControlBits};
use kernel_arch::stop::{self, Claim};
use kernel_arch::trap::TrapFrame;
use kernel_arch::{exit, paging, power, unwind};
use spin::Once;

/// Whether the exit port may be used (`exit=debug`).
static EXIT_PORT_ALLOWED: AtomicBool = AtomicBool::new(false);
/// What becomes of the machine when the system has ended, an [`AtEnd`].
static AT_END: AtomicU8 = AtomicU8::new(AtEnd::PowerOff as u8);
static HOOK: Once<Hook> = Once::new();

/// What a test kernel does with a report: look at it, and say how the run ends.
pub type Hook = fn(&Fatal<'_>) -> Exit;

/// What went wrong.
#[derive(Clone, Copy, Debug)]
pub enum Cause<'a> {
    /// Code panicked.
    Panic(&'a PanicInfo<'a>),
    /// The CPU refused something.
    Fault(&'a TrapFrame),
}

/// A run's end.
#[derive(Clone, Copy, Debug)]
pub struct Fatal<'a> {
    /// Why.
    pub cause: Cause<'a>,
    /// The registers then.
    pub frame: &'a TrapFrame,
    /// The address a page fault is about.
    pub address: u64,
    /// How many other CPUs were stopped, of how many that ran.
    pub stopped: (usize, usize),
    /// How many frames the backtrace has.
    pub frames: usize,
}

/// Says whether the run may end through the exit port, and what becomes of the machine otherwise.
pub fn choose_end(allows_exit_port: bool, at_end: AtEnd) {
    EXIT_PORT_ALLOWED.store(allows_exit_port, Ordering::Relaxed);
    AT_END.store(at_end as u8, Ordering::Relaxed);
}

/// Says what decides about a run that went wrong, once. For test kernels that expect it.
pub fn expect(hook: Hook) {
    HOOK.call_once(|| hook);
}

/// A console takes every line; were it to refuse one, there would be nobody left to tell.
fn told(_: fmt::Result) {}

/// Ends the run as [`leave`] does, after a line for the person before a machine that stays on.
pub fn close(verdict: Exit) -> ! {
    if !EXIT_PORT_ALLOWED.load(Ordering::Relaxed) {
        let console = console::steal();
        told(writeln!(console, "The machine is halted. Reset it to go on (Ctrl-A X leaves QEMU)."));
    }
    leave(verdict)
}

/// Ends the run with a verdict, if the exit port may be used and is there. Otherwise a system that ran to
/// its end leaves the machine as the command line says; one that did not is halted, with its report.
pub fn leave(verdict: Exit) -> ! {
    if EXIT_PORT_ALLOWED.load(Ordering::Relaxed) {
        exit::debug_exit(verdict);
    }
    if matches!(verdict, Exit::Pass | Exit::Fail) {
        match AT_END.load(Ordering::Relaxed) {
            POWER_OFF => {
                let why = power::off();
                told(writeln!(console::steal(), "The machine is halted, not off: {why}."));
            }
            REBOOT => power::reset(),
            _ => {}
        }
    }
    exit::halt()
}

const POWER_OFF: u8 = AtEnd::PowerOff as u8;
const REBOOT: u8 = AtEnd::Reboot as u8;

/// Ends a boot on a machine that the kernel does not run on: a sentence, and a verdict of its own.
pub(crate) fn refuse(why: impl fmt::Display) -> ! {
    let console = console::steal();
    console.set_ink(Ink::Alarm);
    told(writeln!(console, "\ncapOS does not run on this machine: {why}."));
    close(Exit::Refused)
}

#[panic_handler]
fn panicked(info: &PanicInfo<'_>) -> ! {
    end(Cause::Panic(info), &TrapFrame::here())
}

/// An exception nobody expects.
pub(crate) fn fault(frame: &TrapFrame) -> ! {
    end(Cause::Fault(frame), frame)
}

fn end(cause: Cause<'_>, frame: &TrapFrame) -> ! {
    match stop::claim() {
        Claim::First => {}
        Claim::Again(1) => {
            // Reporting failed: say so without touching what may have broken.
            told(writeln!(
                console::steal(),
                "\n  the report itself failed: {}",
                Headline(cause, 0)
            ));
            leave(Exit::Panic)
        }
        Claim::Again(_) => leave(Exit::Panic),
        Claim::Other => stop::stop_self(),
    }
    let address = frame.fault_address();
    let stopped = stop::stop_others();
    let fatal = Fatal { cause, frame, address, stopped, frames: chain(cause, frame).count() };
    let console = console::steal();
    console.set_ink(Ink::Alarm);
    told(report(console, &fatal));
    let verdict = HOOK.get().map_or(Exit::Panic, |hook| hook(&fatal));
    console.set_ink(Ink::Alarm);
    close(verdict)
}

/// The first line of a report.
struct Headline<'a>(Cause<'a>, u64);

impl fmt::Display for Headline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Cause::Panic(info) => match info.location() {
                Some(at) => write!(f, "panic at {}:{}: {}", at.file(), at.line(), info.message()),
                None => write!(f, "panic: {}", info.message()),
            },
            Cause::Fault(frame) => {
                let (short, long) = frame.vector().name();
                write!(f, "{short} {long}")?;
                if frame.vector().has_error_code() {
                    write!(f, ": {}", frame.error_code())?;
                }
                if frame.vector() == core_fault::Vector::PAGE_FAULT {
                    write!(f, ", address {:#018x}", self.1)?;
                }
                if is_stack_overflow(frame, self.1) {
                    f.write_str(" (kernel stack overflow: the address is a stack's guard page)")?;
                }
                Ok(())
            }
        }
    }
}

/// Whether a page fault or the double fault it became ran into a guard page.
fn is_stack_overflow(frame: &TrapFrame, address: u64) -> bool {
    use core_fault::Vector;
    matches!(frame.vector(), Vector::PAGE_FAULT | Vector::DOUBLE_FAULT)
        && kernel_mm::stack::is_guard(address)
}

/// The return addresses of a report: a panic's start with its caller.
fn chain<'a>(cause: Cause<'a>, frame: &TrapFrame) -> impl Iterator<Item = Named> + use<'a> {
    let first = match cause {
        Cause::Fault(frame) => Some(Named { address: frame.rip(), is_return: false }),
        Cause::Panic(_) => None,
    };
    let callers =
        unwind::backtrace(frame.registers.rbp).map(|address| Named { address, is_return: true });
    first.into_iter().chain(callers)
}

fn report(out: &mut Console, fatal: &Fatal<'_>) -> fmt::Result {
    let cpu = cpu::try_this().map_or(0, |c| c.index());
    writeln!(out, "\n======== capOS kernel stopped ========")?;
    writeln!(out, "cpu {cpu}: {}", Headline(fatal.cause, fatal.address))?;
    if fatal.frame.is_from_user() {
        writeln!(out, "from user mode")?;
    }
    writeln!(out, "registers")?;
    write!(out, "{}", fatal.frame)?;
    let control = ControlBits::read();
    let root = paging::current_root().start().as_u64();
    writeln!(
        out,
        "  cr0 {:08x} cr2 {:016x} cr3 {:x} cr4 {:x} efer {:x}",
        control.cr0, fatal.address, root, control.cr4, control.efer
    )?;
    writeln!(out, "backtrace")?;
    let mut last = 0;
    for (depth, named) in chain(fatal.cause, fatal.frame).enumerate() {
        // Recursion repeats one address: it is said once, and the depth shows how often.
        if named.address != last {
            writeln!(out, "  {depth:>2} {named}")?;
        }
        last = named.address;
    }
    if fatal.frames >= unwind::MAX_FRAMES {
        writeln!(out, "  and more: {} frames are shown", unwind::MAX_FRAMES)?;
    }
    let (stopped, running) = fatal.stopped;
    if running > 0 {
        writeln!(out, "other CPUs: {stopped} of {running} stopped")?;
    }
    for other in cpu::all().iter() {
        if let Some(at) = other.stopped_at() {
            writeln!(
                out,
                "  cpu {:>2} at {}",
                other.index(),
                Named { address: at.rip(), is_return: false }
            )?;
        }
    }
    Ok(())
}
