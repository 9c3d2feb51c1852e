//! Switches between user threads and the idle context: nothing of one is seen by another.

use crate::HARMFUL_FLAGS;
use crate::harness::{
    Ended, MAX_CPUS, SLICE_NS, SLOTS, STACK, Setup, Slot, commit, slot, told, whole,
};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use kernel_arch::context::{self, State};
use kernel_arch::cpu;
use kernel_sys::smp;
use smp_ring::Context as _;
use test_kernel::Env;
use test_kit::{Outcome, T, check, check_eq, require, require_eq};
use user_blob::{Program, page};

/// A spinning program whose FS base is at a place of its own in its stack pages.
fn load_spin(slot: &'static Slot, seed: u64, fs_base: u64) -> Result<(), &'static str> {
    slot.load(Program::Spin, Setup { seed, fs_base, argument: None })?;
    let word = seed ^ 0xf5;
    slot.put(page::FS_WORD, word)?;
    slot.space.copy_out(fs_base, &word.to_le_bytes()).map_err(|_| "no stack")
}

fn stop(slot: &'static Slot) -> Ended {
    match slot.put(page::STOP, 1) {
        Ok(()) => slot.run(),
        Err(_) => Ended::Refused,
    }
}

/// Slices without progress that are too many. On a busy host a slice can be over before the first
/// instruction of user code.
const PATIENCE: usize = 200;

/// Runs a slot slice after slice until it has made progress.
fn goes_on(slot: &'static Slot, rounds: &mut u64) -> bool {
    let before = *rounds;
    for _ in 0..PATIENCE {
        if slot.run_for_a_slice() != Ended::TimeUp {
            return false;
        }
        *rounds = slot.get(page::ROUNDS);
        if *rounds > before {
            return true;
        }
    }
    false
}

pub fn preemption(t: &mut T<'_, Env>) -> Outcome {
    // The programs look at AVX registers if they have them; whoever can have them has.
    let features = cpu::this().features();
    check_eq!(t, kernel_arch::fpu::has_avx(), features.xsave && features.avx);
    let slot = slot(0);
    require_eq!(t, load_spin(slot, 0x1234_5678_9abc_def0, STACK), Ok(()));
    let mut last = 0;
    for _ in 0..20 {
        require!(t, goes_on(slot, &mut last), "no progress at {last}");
    }
    check_eq!(t, stop(slot), Ended::Exit(9));
    check_eq!(t, slot.get(page::WRONG), 0);
    t.metric("rounds", last, "rounds");
    check!(t, slot.unload().is_ok());
    Ok(())
}

pub fn flags_in_an_interrupt(t: &mut T<'_, Env>) -> Outcome {
    let slot = slot(0);
    require_eq!(t, slot.load(Program::FlagsSpin, Setup::default()), Ok(()));
    for _ in 0..5 {
        require_eq!(t, slot.run_for_a_slice(), Ended::TimeUp);
        // Without SMAP the kernel need not clear AC, and has no instruction for it.
        let ignored = if cpu::this().features().smap { 0 } else { 1 << 18 };
        let flags = told().kernel_flags.load(Ordering::Relaxed);
        check_eq!(t, flags & HARMFUL_FLAGS & !ignored, 0);
    }
    check!(t, slot.unload().is_ok());
    Ok(())
}

/// The same when the timer takes the CPU away.
pub fn registers_in_an_interrupt(t: &mut T<'_, Env>) -> Outcome {
    let slot = slot(0);
    require_eq!(t, load_spin(slot, user_blob::TAINT, STACK), Ok(()));
    let mut last = 0;
    for _ in 0..3 {
        require!(t, goes_on(slot, &mut last), "no progress at {last}");
        check_eq!(t, told().tainted(), 0);
    }
    check_eq!(t, stop(slot), Ended::Exit(9));
    check_eq!(t, slot.get(page::WRONG), 0);
    check!(t, slot.unload().is_ok());
    Ok(())
}

/// A CPU forgets its predictions when it goes from one address space to another, however often it is idle in
/// between, and not when it comes back to the same; a space that is made anew is another.
pub fn predictions(t: &mut T<'_, Env>) -> Outcome {
    let count = || cpu::this().speculation().barriers;
    let one = u64::from(t.env.speculation.has_barrier);
    let (a, b) = (slot(0), slot(1));
    require_eq!(t, load_spin(a, 1 << 8, STACK), Ok(()));
    require_eq!(t, load_spin(b, 1 << 9, STACK), Ok(()));
    for (what, slot, expected) in [
        ("a first", a, one),
        ("a again", a, 0),
        ("b", b, one),
        ("b again", b, 0),
        ("back to a", a, one),
        ("back to b", b, one),
    ] {
        let before = count();
        require_eq!(t, slot.run_for_a_slice(), Ended::TimeUp);
        check_eq!(t, (what, count() - before), (what, expected));
    }
    check_eq!(t, (stop(a), stop(b)), (Ended::Exit(9), Ended::Exit(9)));
    check!(t, a.unload().is_ok() && b.unload().is_ok());
    let before = count();
    require_eq!(t, load_spin(b, 1 << 9, STACK), Ok(()));
    require_eq!(t, b.run_for_a_slice(), Ended::TimeUp);
    check_eq!(t, ("b made anew", count() - before), ("b made anew", one));
    check_eq!(t, stop(b), Ended::Exit(9));
    check!(t, b.unload().is_ok());
    Ok(())
}

/// Slices in which each thread has made progress.
const ROUNDS: usize = 25;

/// Two threads in two spaces, switched between directly and through the idle context.
fn two_threads_here() -> Result<(), &'static str> {
    let (a, b) = (slot(0), slot(1));
    load_spin(a, 0xaaaa_0000_0000_0001, STACK + 64)?;
    load_spin(b, 0x5555_ffff_0000_1000, STACK + 128)?;
    let number = SLOTS.iter().position(|s| core::ptr::eq(s, b)).ok_or("no slot")?;
    let mut last = [0; 2];
    let mut progress = [0; 2];
    for round in 0..PATIENCE * ROUNDS {
        // The timer takes A away and goes straight to B, and from there back here.
        told().next.store(number + 1, Ordering::Relaxed);
        if a.run_for_a_slice() != Ended::TimeUp {
            return Err("A did not run to the end of its slice");
        }
        // And through here.
        if round % 5 == 0 && b.run_for_a_slice() != Ended::TimeUp {
            return Err("B did not run to the end of its slice");
        }
        let now = [a.get(page::ROUNDS), b.get(page::ROUNDS)];
        for ((now, last), progress) in now.iter().zip(&last).zip(&mut progress) {
            *progress += usize::from(now > last);
        }
        last = now;
        if progress.iter().all(|n| *n >= ROUNDS) {
            break;
        }
    }
    if progress.iter().any(|n| *n < ROUNDS) {
        return Err("a thread made no progress");
    }
    if (stop(a), stop(b)) != (Ended::Exit(9), Ended::Exit(9)) {
        return Err("a thread did not stop");
    }
    if a.get(page::WRONG) + b.get(page::WRONG) != 0 {
        return Err("a thread saw registers or an FS base that were not its own");
    }
    a.unload()?;
    b.unload()?;
    Ok(())
}

pub fn two_threads(t: &mut T<'_, Env>) -> Outcome {
    check_eq!(t, two_threads_here(), Ok(()));
    // The next context has committed each switch, with what was given to it.
    let told = told();
    check_eq!(t, told.commits.load(Ordering::Relaxed), told.switches.load(Ordering::Relaxed));
    check_eq!(
        t,
        told.commit_data.load(Ordering::Relaxed),
        told.switch_data.load(Ordering::Relaxed)
    );
    t.metric("slice", SLICE_NS, "ns");
    Ok(())
}

pub fn context_states(t: &mut T<'_, Env>) -> Outcome {
    let slot = slot(0);
    let context = slot.thread.context();
    check_eq!(t, context.state(), State::Empty);
    check!(t, context::switch_to(context, commit, &0).is_err(), "an empty context ran");
    check!(t, slot.thread.take_apart().is_err());
    require_eq!(t, load_spin(slot, 1, STACK), Ok(()));
    check_eq!(t, context.state(), State::Saved);
    check!(t, slot.space.destroy(1).is_err(), "a space with a thread went away");
    check!(t, context::switch_to(cpu::this().idle(), commit, &0).is_err(), "idle runs already");
    require_eq!(t, slot.run_for_a_slice(), Ended::TimeUp);
    check_eq!(t, context.state(), State::Saved);
    check_eq!(t, slot.space.resident().bits(), 0);
    check_eq!(t, stop(slot), Ended::Exit(9));
    check_eq!(t, context.state(), State::Ended);
    check_eq!(t, slot.run(), Ended::Refused);
    check!(t, slot.unload().is_ok());
    check_eq!(t, context.state(), State::Empty);
    Ok(())
}

static DONE: AtomicUsize = AtomicUsize::new(0);
static WRONG: AtomicUsize = AtomicUsize::new(0);

fn everything_here() {
    for _ in 0..4 {
        let fine = two_threads_here() == Ok(())
            && whole(Program::Registers, Setup::default(), |_| ()) == Ok(Ended::Exit(7))
            && whole(Program::Syscalls, Setup::default(), |_| ()) == Ok(Ended::Exit(8))
            && matches!(
                whole(Program::ReadKernel, Setup::default(), |_| ()),
                Ok(Ended::Fault { vector: 14, .. })
            );
        let counter = if fine { &DONE } else { &WRONG };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

pub fn every_cpu(t: &mut T<'_, Env>) -> Outcome {
    let cpus = t.env.cpus().len();
    require!(t, cpus <= MAX_CPUS);
    smp::run_on_others(everything_here);
    everything_here();
    check_eq!(t, WRONG.load(Ordering::Relaxed), 0);
    check_eq!(t, DONE.load(Ordering::Relaxed), cpus * 4);
    Ok(())
}

/// The slot that moves from CPU to CPU, and how its last run ended.
static MOVED: AtomicU64 = AtomicU64::new(0);

fn run_the_mover() {
    let slot = &SLOTS[0];
    let moved = goes_on(slot, &mut slot.get(page::ROUNDS));
    MOVED.store(u64::from(moved), Ordering::Relaxed);
}

pub fn migrates(t: &mut T<'_, Env>) -> Outcome {
    let cpus = t.env.cpus().len();
    if cpus == 1 {
        return t.skip("takes two CPUs");
    }
    let slot = &SLOTS[0];
    require_eq!(t, load_spin(slot, 0x0f0f_0f0f_1111_2222, STACK), Ok(()));
    for round in 0..cpus * 6 {
        require!(t, smp::run_on(round % cpus, run_the_mover));
        require_eq!(t, MOVED.load(Ordering::Relaxed), 1);
    }
    check_eq!(t, stop(slot), Ended::Exit(9));
    check_eq!(t, slot.get(page::WRONG), 0);
    check!(t, slot.unload().is_ok());
    Ok(())
}
