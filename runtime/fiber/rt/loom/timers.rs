//! Deadlines against completions and cancellations, of fibers and of threads: a wait has one end, and nobody
//! looks at it after that.
//!
//! Timers, wheels and the way a fiber waits with one are the real ones. Every wait of a model says when it
//! goes, so that whoever could look at one that is gone is found.
use core::cell::Cell;
use core::ptr;

use abi_sync::atomic::{AtomicBool, Ordering};
use abi_sync::{Arc, CheckedCell, explore, thread};
use fiber_core::Outcome;
use fiber_rt::{
    Defect, ModelFiber, SpinLock, Timer, Timers, Wait, Waker, plant, wait_on_thread, wait_timed,
};

const SOON_NS: u64 = 1_000_000;
/// When all is due.
const LATE_NS: u64 = 1_000 * SOON_NS;

/// A waitable for one.
struct Gate(Cell<*const Wait>);

// SAFETY: reached under its lock.
unsafe impl Send for Gate {}

struct World {
    timers: Timers,
    gate: SpinLock<Gate>,
    is_over: AtomicBool,
}

impl World {
    fn new() -> Arc<Self> {
        let gate = SpinLock::new(Gate(Cell::new(ptr::null())));
        Arc::new(Self { timers: Timers::new(2, 0), gate, is_over: AtomicBool::new(false) })
    }

    fn link(&self, wait: &Wait) -> bool {
        self.gate.with(|gate| gate.0.set(wait));
        true
    }

    fn unlink(&self, outcome: Outcome) {
        if outcome != Outcome::Data(0) {
            self.gate.with(|gate| gate.0.set(ptr::null()));
        }
    }

    /// Waits until the gate opens or it is late.
    fn wait(&self) -> Option<Outcome> {
        let (publish, unlink) = (|wait: &_| self.link(wait), |outcome| self.unlink(outcome));
        let outcome = wait_timed(&self.timers, SOON_NS, publish, unlink);
        assert_eq!(self.timers.len(), 0, "the timer is out of its wheel");
        self.is_over.store(true, Ordering::Relaxed);
        outcome
    }

    /// Lets the one who waits go on; whether there was one.
    fn open(&self) -> bool {
        let waker = self.gate.with(|gate| {
            // SAFETY: a linked wait is alive: its waiter unlinks it, or is completed here.
            let wait = unsafe { gate.0.replace(ptr::null()).as_ref() }?;
            let waker = wait.waker();
            wait.decide(Outcome::Data(0)).then_some(waker)
        });
        waker.map(Waker::wake).is_some()
    }

    /// Fires the timer as soon as there is one, unless the wait is over by then.
    fn fire(&self) {
        while !self.is_over.load(Ordering::Relaxed) {
            if self.timers.len() > 0 {
                return self.timers.fire(LATE_NS);
            }
            thread::yield_now();
        }
    }
}

fn spawn<T: 'static>(world: &Arc<World>, f: fn(&World) -> T) -> thread::JoinHandle<T> {
    let world = world.clone();
    thread::spawn(move || f(&world))
}

/// It gets late while somebody opens the gate.
fn late_and_open() {
    let world = World::new();
    let (opens, fires) = (spawn(&world, World::open), spawn(&world, World::fire));
    let outcome = world.wait();
    fires.join().unwrap();
    let expected = if opens.join().unwrap() { Outcome::Data(0) } else { Outcome::Timeout };
    assert_eq!(outcome, Some(expected));
}

#[test]
fn a_completion_at_the_deadline() {
    explore("a completion at the deadline", late_and_open);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_a_timer_is_left_in_its_wheel() {
    plant(Defect::LeavesItsTimer);
    explore("mutant: a timer is left", late_and_open);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_waits_are_ended_after_the_lock() {
    plant(Defect::EndsWaitsUnlocked);
    explore("mutant: waits are ended after the lock", late_and_open);
}

/// It gets late while the fiber is cancelled, and perhaps the gate is opened.
fn late_and_cancelled(opens: bool) {
    let world = World::new();
    let (fiber, waits) = {
        let world = world.clone();
        ModelFiber::spawn(move || world.wait())
    };
    let fires = spawn(&world, World::fire);
    let has_opened = opens && world.open();
    fiber.cancel();
    let outcome = waits.join().unwrap();
    fires.join().unwrap();
    match outcome {
        Some(Outcome::Data(_)) => assert!(has_opened),
        Some(Outcome::Timeout | Outcome::Cancelled) => assert!(!has_opened),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cancellation_at_the_deadline() {
    explore("a cancellation at the deadline", || late_and_cancelled(false));
}

#[test]
fn a_cancellation_and_a_completion_at_the_deadline() {
    explore("both at the deadline", || late_and_cancelled(true));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_a_cancelled_wait_leaves_its_timer() {
    plant(Defect::LeavesItsTimer);
    explore("mutant: a cancelled wait leaves its timer", || late_and_cancelled(false));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_cancelled_waits_are_ended_after_the_lock() {
    plant(Defect::EndsWaitsUnlocked);
    explore("mutant: cancelled, ended after the lock", || late_and_cancelled(false));
}

/// A timer that calls a function is taken out while it fires.
fn taken_out() {
    unsafe fn count(calls: *const ()) {
        // SAFETY: whoever takes the timer out waits for this.
        unsafe { &*calls.cast::<CheckedCell<u32>>() }.update(|calls| *calls += 1);
    }
    let world = World::new();
    // Memory that stays, for a mutant that is late.
    let calls: &'static CheckedCell<u32> = Box::leak(Box::new(CheckedCell::new(0)));
    let timer: &'static Timer =
        Box::leak(Box::new(Timer::call(count, ptr::from_ref(calls).cast())));
    // SAFETY: it stays.
    let _ = unsafe { world.timers.insert_quietly(0, timer, SOON_NS) };
    let fires = spawn(&world, |world| world.timers.fire(LATE_NS));
    world.timers.remove_and_wait(timer);
    // As plain memory that goes.
    calls.update(|calls| assert!(*calls <= 1));
    fires.join().unwrap();
}

#[test]
fn a_timer_is_taken_out_while_it_fires() {
    explore("taken out while it fires", taken_out);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_nobody_waits_for_the_function() {
    plant(Defect::WaitsForNoTimer);
    explore("mutant: nobody waits for the function", taken_out);
}

/// A worker goes to sleep as the keeper while another one puts a timer in: one of them knows.
fn kept() {
    let world = World::new();
    let keeps = spawn(&world, |world| world.timers.keep(1));
    let timer: &'static Timer = Box::leak(Box::new(Timer::idle()));
    // SAFETY: it stays, and has nothing to do.
    let woken = unsafe { world.timers.insert_quietly(0, timer, SOON_NS) };
    let until_ns = keeps.join().unwrap();
    assert!(woken == Some(1) || until_ns.is_some(), "the keeper sleeps past a deadline");
}

#[test]
fn the_keeper_or_whoever_is_earlier_knows() {
    explore("the keeper or whoever is earlier", kept);
}

#[test]
#[should_panic(expected = "the keeper sleeps past a deadline")]
fn mutant_the_keeper_has_no_fence() {
    plant(Defect::KeepsWithoutAFence);
    explore("mutant: the keeper has no fence", kept);
}

/// A thread waits twice; somebody opens the gate until it has.
fn thread_waits(is_late: bool) {
    let world = World::new();
    let opens = spawn(&world, |world| {
        let mut opened = 0;
        while !world.is_over.load(Ordering::Relaxed) {
            opened += u32::from(world.open());
            thread::yield_now();
        }
        opened
    });
    let wait =
        |is_late| wait_on_thread(is_late, |wait| world.link(wait), |outcome| world.unlink(outcome));
    let first = wait(is_late);
    let second = wait(false);
    world.is_over.store(true, Ordering::Relaxed);
    let opened = opens.join().unwrap();
    assert_eq!(second, Some(Outcome::Data(0)), "only an opened gate ends it");
    match first {
        Some(Outcome::Data(_)) => assert_eq!(opened, 2),
        Some(Outcome::Timeout) => assert_eq!((opened, is_late), (1, true)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_thread_waits_twice() {
    explore("a thread waits twice", || thread_waits(false));
}

#[test]
fn a_thread_waits_until_it_is_late() {
    explore("a thread waits until it is late", || thread_waits(true));
}

#[test]
#[should_panic(expected = "the state word was moved by a stranger")]
fn mutant_a_thread_keeps_its_wake() {
    plant(Defect::KeepsItsWake);
    explore("mutant: a thread keeps its wake", || thread_waits(false));
}
