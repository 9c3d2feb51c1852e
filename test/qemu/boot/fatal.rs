//! Every way a run goes wrong ends in one report and the panic code. The word `end=` says which.
//!
//! The hook looks at the report before the end: if it is not what it should be, the run ends with
//! the failure code instead, which the harness tells from a panic.
#![no_std]
#![no_main]

use abi_report::Exit;
use core::fmt;
use core::sync::atomic::{AtomicUsize, Ordering};
use core_fault::Vector;
use kernel_arch::cpu;
use kernel_arch::trap::probe;
use kernel_sys::fatal::{self, Cause, Fatal};
use kernel_sys::{Machine, smp};
use test_kernel::Env;
use test_kit::{Outcome, Suite, T, Test};

kernel_sys::kernel_main!(main);

macro_rules! ends {
    ($($word:literal => $test:ident, $hook:ident;)*) => {
        fn main(machine: &'static Machine) -> ! {
            let end = machine.words().value("end").unwrap_or("none");
            $(
                if end == $word {
                    const SUITE: Suite<Env> = Suite::new(&[Test::new(concat!("fatal.", $word), $test)]);
                    fatal::expect($hook);
                    test_kernel::run(machine, &SUITE);
                }
            )*
            panic!("end={end} is none of this kernel's")
        }
    };
}

ends! {
    "panic" => panics, a_panic_here;
    "fault" => faults, a_page_fault;
    "overflow" => overflows, a_double_fault_on_a_guard;
    "nested" => fails_to_report, never;
    "elsewhere" => panics_elsewhere, a_panic_elsewhere;
    "together" => all_panic, a_panic_anywhere;
    "locked" => panics_while_logging, a_panic_here;
}

/// Panic if the report is as it should be, failure if not.
fn verdict(as_expected: bool) -> Exit {
    if as_expected { Exit::Panic } else { Exit::Fail }
}

fn others_stopped(fatal: &Fatal<'_>) -> bool {
    let others = cpu::all().len() - 1;
    let known = cpu::all().iter().filter(|c| c.stopped_at().is_some()).count();
    fatal.stopped == (others, others) && known == others
}

fn a_panic_here(fatal: &Fatal<'_>) -> Exit {
    let panic = matches!(fatal.cause, Cause::Panic(info) if info.location().is_some());
    verdict(panic && cpu::this().index() == 0 && others_stopped(fatal) && fatal.frames >= 5)
}

fn a_panic_elsewhere(fatal: &Fatal<'_>) -> Exit {
    let panic = matches!(fatal.cause, Cause::Panic(_));
    verdict(panic && cpu::this().index() == 1 && others_stopped(fatal) && fatal.frames >= 3)
}

fn a_panic_anywhere(fatal: &Fatal<'_>) -> Exit {
    verdict(matches!(fatal.cause, Cause::Panic(_)))
}

fn a_page_fault(fatal: &Fatal<'_>) -> Exit {
    let Cause::Fault(frame) = fatal.cause else { return Exit::Fail };
    let fault = frame.vector() == Vector::PAGE_FAULT && fatal.address == UNMAPPED as u64;
    verdict(fault && others_stopped(fatal) && fatal.frames >= 4)
}

fn a_double_fault_on_a_guard(fatal: &Fatal<'_>) -> Exit {
    let Cause::Fault(frame) = fatal.cause else { return Exit::Fail };
    let guard = kernel_mm::stack::is_guard(fatal.address);
    let double = frame.vector() == Vector::DOUBLE_FAULT;
    verdict(double && guard && others_stopped(fatal) && fatal.frames > 10)
}

fn never(_: &Fatal<'_>) -> Exit {
    Exit::Fail
}

fn panics(_: &mut T<'_, Env>) -> Outcome {
    panic!("a panic on purpose")
}

/// Nothing is mapped in the lower half.
const UNMAPPED: usize = 0x1234_5678;

fn faults(t: &mut T<'_, Env>) -> Outcome {
    probe::fault_for_good(UNMAPPED as u64);
    t.fail(format_args!("reading {UNMAPPED:#x} did not fault"))
}

#[inline(never)]
fn recurse(depth: u64) -> u64 {
    let mut block = [depth; 64];
    core::hint::black_box(&mut block);
    if depth == u64::MAX { 0 } else { recurse(depth + 1) + block[7] }
}

fn overflows(t: &mut T<'_, Env>) -> Outcome {
    let depth = recurse(core::hint::black_box(0));
    t.fail(format_args!("the stack holds {depth} frames without end"))
}

struct CannotBeShown;

impl fmt::Display for CannotBeShown {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("a panic while a panic is reported")
    }
}

fn fails_to_report(_: &mut T<'_, Env>) -> Outcome {
    panic!("{}", CannotBeShown)
}

fn panics_while_logging(_: &mut T<'_, Env>) -> Outcome {
    // The console is locked while its text is made.
    kernel_arch::println!("{}", CannotBeShown);
    Ok(())
}

fn panic_here() {
    panic!("a panic on cpu {}", cpu::this().index())
}

fn panics_elsewhere(_: &mut T<'_, Env>) -> Outcome {
    smp::run_on(1, panic_here);
    Ok(())
}

/// CPUs that are about to panic.
static READY: AtomicUsize = AtomicUsize::new(0);

fn panic_together() {
    READY.fetch_add(1, Ordering::Relaxed);
    while READY.load(Ordering::Relaxed) < cpu::all().len() {
        cpu::relax();
    }
    panic_here()
}

fn all_panic(_: &mut T<'_, Env>) -> Outcome {
    for index in 1..cpu::all().len() {
        smp::start_on(index, panic_together);
    }
    panic_together();
    Ok(())
}
