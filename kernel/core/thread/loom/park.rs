//! Wake against block: no wake is lost, no thread is queued twice or run on two stacks.
//!
//! CPU A runs the thread until it parks; the wakers are other CPUs, and each runs the thread
//! itself if it gets to enqueue it. The condition is level-triggered and has its own lock, as a
//! completion queue has. Each mutant is a protocol with one step done wrongly; its test expects
//! the model to find the named failure.

use abi_sync::explore;
use core_thread::*;
use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};
use loom::sync::{Arc, Mutex};
use loom::thread;

const GENERATION: u32 = 1;

fn running() -> Word {
    Word::compose(State::Running, GENERATION, Ticket::new(0), false, false)
}

/// What the machine does with a thread; the real one, or a mutant.
trait Protocol: Send + Sync + 'static {
    /// Whether the wait is made real only after the switch.
    const AFTER_SWITCH: bool = true;
    fn new() -> Self;
    fn begin(&self) -> Ticket;
    fn cancel(&self);
    fn commit(&self) -> CommitVerdict;
    fn wake(&self, ticket: Ticket) -> Result<WakeVerdict, Stale>;
    fn dispatch(&self) -> bool;
    fn is_parked(&self) -> bool;
}

impl Protocol for StateWord {
    fn new() -> Self {
        Self::starting_at(running())
    }
    fn begin(&self) -> Ticket {
        let Ok(ParkVerdict::Parking(ticket)) = self.begin_park() else { panic!("not running") };
        ticket
    }
    fn cancel(&self) {
        assert_eq!(self.cancel_park(), Ok(ResumeVerdict::Resume));
    }
    fn commit(&self) -> CommitVerdict {
        self.commit_park().expect("only CPU A commits")
    }
    fn wake(&self, ticket: Ticket) -> Result<WakeVerdict, Stale> {
        self.wake(GENERATION, ticket)
    }
    fn dispatch(&self) -> bool {
        self.dispatch(GENERATION) == Ok(DispatchVerdict::Run)
    }
    fn is_parked(&self) -> bool {
        self.load().state() == State::Parked
    }
}

/// The world around one thread.
struct World<P> {
    protocol: P,
    /// What the thread waits for, and the wait that is registered.
    condition: Mutex<(bool, Option<Ticket>)>,
    /// 1 while a CPU is on the thread's stack.
    on_stack: AtomicUsize,
    /// What the switch saves.
    registers: AtomicU64,
    enqueued: AtomicUsize,
    resumed: AtomicBool,
}

impl<P: Protocol> World<P> {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            protocol: P::new(),
            condition: Mutex::new((false, None)),
            on_stack: AtomicUsize::new(1),
            registers: AtomicU64::new(0),
            enqueued: AtomicUsize::new(0),
            resumed: AtomicBool::new(false),
        })
    }

    /// CPU A: parks the thread, unless the condition holds.
    fn park(&self) {
        let ticket = self.protocol.begin();
        {
            let mut condition = self.condition.lock().unwrap();
            if condition.0 {
                self.protocol.cancel();
                self.resumed.store(true, Relaxed);
                return;
            }
            condition.1 = Some(ticket);
        }
        if P::AFTER_SWITCH {
            self.leave_stack();
            self.committed();
        } else {
            self.committed();
            self.leave_stack();
        }
    }

    fn leave_stack(&self) {
        self.registers.store(42, Relaxed);
        self.on_stack.store(0, Relaxed);
    }

    fn committed(&self) {
        match self.protocol.commit() {
            CommitVerdict::Parked => {}
            CommitVerdict::Enqueue => self.enqueue_and_run(),
            CommitVerdict::Finalise => panic!("nobody killed it"),
        }
    }

    /// Another CPU: makes the condition true and wakes the registered wait.
    fn wake(&self) {
        let ticket = {
            let mut condition = self.condition.lock().unwrap();
            condition.0 = true;
            condition.1
        };
        if let Some(ticket) = ticket
            && self.protocol.wake(ticket) == Ok(WakeVerdict::Enqueue)
        {
            self.enqueue_and_run();
        }
    }

    /// The enqueuer's CPU picks the thread at once.
    fn enqueue_and_run(&self) {
        assert_eq!(self.enqueued.fetch_add(1, Relaxed), 0, "enqueued twice");
        assert!(self.protocol.dispatch(), "an enqueued thread is not runnable");
        assert_eq!(self.on_stack.load(Relaxed), 0, "run on two stacks");
        assert_eq!(self.registers.load(Relaxed), 42, "run with old registers");
        self.resumed.store(true, Relaxed);
    }

    fn check_end(&self) {
        assert!(!self.protocol.is_parked() && self.resumed.load(Relaxed), "lost wake");
    }
}

fn one_thread_and_wakers<P: Protocol>(wakers: usize) {
    let world = World::<P>::new();
    let others: Vec<_> = (0..wakers)
        .map(|_| {
            let world = world.clone();
            thread::spawn(move || world.wake())
        })
        .collect();
    world.park();
    for other in others {
        other.join().unwrap();
    }
    world.check_end();
}

#[test]
fn one_waker() {
    explore("park, 1 waker", || one_thread_and_wakers::<StateWord>(1));
}

#[test]
fn two_wakers() {
    explore("park, 2 wakers", || one_thread_and_wakers::<StateWord>(2));
}

/// Two CPUs hold the same name, one from the queue and one from an old hint: one runs it.
#[test]
fn two_pickers() {
    explore("two pickers", || {
        let word = Arc::new(StateWord::starting_at(Word::compose(
            State::Runnable,
            GENERATION,
            Ticket::new(0),
            false,
            false,
        )));
        let other = {
            let word = word.clone();
            thread::spawn(move || word.dispatch(GENERATION).is_ok())
        };
        let mine = word.dispatch(GENERATION).is_ok();
        assert!(mine ^ other.join().unwrap(), "run on two CPUs");
    });
}

/// A preempted thread is given up after the switch; whoever picks it sees its registers.
#[test]
fn preempt_against_pick() {
    explore("preempt against pick", || {
        let world = World::<StateWord>::new();
        let picker = {
            let world = world.clone();
            thread::spawn(move || {
                if world.protocol.dispatch(GENERATION).is_ok() {
                    assert_eq!(world.on_stack.load(Relaxed), 0, "run on two stacks");
                    assert_eq!(world.registers.load(Relaxed), 42, "run with old registers");
                }
            })
        };
        world.leave_stack();
        assert_eq!(world.protocol.requeue(), Ok(RequeueVerdict::Enqueue));
        picker.join().unwrap();
    });
}

// ---- mutants -----------------------------------------------------------------------------

/// The wake mark in a variable of its own, read before the state is committed.
struct TwoVariables {
    word: AtomicU64,
    pending: AtomicBool,
}

impl Protocol for TwoVariables {
    fn new() -> Self {
        Self { word: AtomicU64::new(running().to_bits()), pending: AtomicBool::new(false) }
    }
    fn begin(&self) -> Ticket {
        let word = Word::from_bits(self.word.load(SeqCst));
        let (next, verdict) = word.begin_park().unwrap();
        self.word.store(next.to_bits(), SeqCst);
        let ParkVerdict::Parking(ticket) = verdict else { panic!() };
        ticket
    }
    fn cancel(&self) {
        self.word.store(running().to_bits(), SeqCst);
    }
    fn commit(&self) -> CommitVerdict {
        let word = Word::from_bits(self.word.load(SeqCst));
        if self.pending.load(SeqCst) {
            let runnable = Word::compose(State::Runnable, 1, word.ticket(), false, false);
            self.word.store(runnable.to_bits(), SeqCst);
            return CommitVerdict::Enqueue;
        }
        let (next, verdict) = word.commit_park().unwrap();
        self.word.store(next.to_bits(), SeqCst);
        verdict
    }
    fn wake(&self, ticket: Ticket) -> Result<WakeVerdict, Stale> {
        let word = Word::from_bits(self.word.load(SeqCst));
        match word.state() {
            State::Parking => {
                self.pending.store(true, SeqCst);
                Ok(WakeVerdict::Noted)
            }
            State::Parked => {
                let (next, verdict) = word.wake(GENERATION, ticket)?;
                self.word
                    .compare_exchange(word.to_bits(), next.to_bits(), SeqCst, SeqCst)
                    .map_err(|_| Stale)?;
                Ok(verdict)
            }
            _ => Err(Stale),
        }
    }
    fn dispatch(&self) -> bool {
        let word = Word::from_bits(self.word.load(SeqCst));
        word.dispatch(GENERATION).is_ok()
    }
    fn is_parked(&self) -> bool {
        Word::from_bits(self.word.load(SeqCst)).state() == State::Parked
    }
}

#[test]
#[should_panic(expected = "lost wake")]
fn mutant_two_variables_loses_a_wake() {
    explore("mutant: two variables", || one_thread_and_wakers::<TwoVariables>(1));
}

/// A mutant that shares all but one step with the real word.
macro_rules! mutant {
    ($name:ident { $($body:tt)* } rest { $($rest:ident),* }) => {
        struct $name(StateWord);
        impl Protocol for $name {
            $($body)*
            $(mutant!(@ $rest);)*
        }
    };
    (@ new) => { fn new() -> Self { Self(<StateWord as Protocol>::new()) } };
    (@ begin) => { fn begin(&self) -> Ticket { self.0.begin() } };
    (@ cancel) => { fn cancel(&self) { self.0.cancel() } };
    (@ commit) => { fn commit(&self) -> CommitVerdict { self.0.commit() } };
    (@ wake) => {
        fn wake(&self, ticket: Ticket) -> Result<WakeVerdict, Stale> {
            Protocol::wake(&self.0, ticket)
        }
    };
    (@ dispatch) => { fn dispatch(&self) -> bool { Protocol::dispatch(&self.0) } };
    (@ is_parked) => { fn is_parked(&self) -> bool { self.0.is_parked() } };
}

mutant!(CommitsOnItsOwnStack { const AFTER_SWITCH: bool = false; }
    rest { new, begin, cancel, commit, wake, dispatch, is_parked });

#[test]
#[should_panic(expected = "run on two stacks")]
fn mutant_commit_before_the_switch_runs_on_two_stacks() {
    explore("mutant: commit before the switch", || {
        one_thread_and_wakers::<CommitsOnItsOwnStack>(1);
    });
}

/// All transitions as load, then store.
struct LoadThenStore(AtomicU64);

impl LoadThenStore {
    fn step<V, E>(&self, f: impl Fn(Word) -> Result<(Word, V), E>) -> Result<V, E> {
        let (next, verdict) = f(Word::from_bits(self.0.load(SeqCst)))?;
        self.0.store(next.to_bits(), SeqCst);
        Ok(verdict)
    }
}

impl Protocol for LoadThenStore {
    fn new() -> Self {
        Self(AtomicU64::new(running().to_bits()))
    }
    fn begin(&self) -> Ticket {
        let Ok(ParkVerdict::Parking(ticket)) = self.step(Word::begin_park) else { panic!() };
        ticket
    }
    fn cancel(&self) {
        let _ = self.step(Word::cancel_park);
    }
    fn commit(&self) -> CommitVerdict {
        self.step(Word::commit_park).unwrap_or(CommitVerdict::Parked)
    }
    fn wake(&self, ticket: Ticket) -> Result<WakeVerdict, Stale> {
        self.step(|word| word.wake(GENERATION, ticket))
    }
    fn dispatch(&self) -> bool {
        let _ = self.step(|word| word.dispatch(GENERATION));
        true
    }
    fn is_parked(&self) -> bool {
        Word::from_bits(self.0.load(SeqCst)).state() == State::Parked
    }
}

#[test]
#[should_panic(expected = "enqueued twice")]
fn mutant_load_then_store_enqueues_twice() {
    // One waker is enough to lose the wake, so that failure is kept out: the thread is parked
    // before the two wakers start, and what is left is their race for it.
    explore("mutant: load then store", || {
        let world = World::<LoadThenStore>::new();
        world.park();
        let other = {
            let world = world.clone();
            thread::spawn(move || world.wake())
        };
        world.wake();
        other.join().unwrap();
    });
}

/// The real transitions without any order between the CPUs.
struct Unordered(AtomicU64);

impl Unordered {
    fn step<V, E>(&self, f: impl Fn(Word) -> Result<(Word, V), E>) -> Result<V, E> {
        let mut now = self.0.load(Relaxed);
        loop {
            let (next, verdict) = f(Word::from_bits(now))?;
            match self.0.compare_exchange(now, next.to_bits(), Relaxed, Relaxed) {
                Ok(_) => return Ok(verdict),
                Err(other) => now = other,
            }
        }
    }
}

impl Protocol for Unordered {
    fn new() -> Self {
        Self(AtomicU64::new(running().to_bits()))
    }
    fn begin(&self) -> Ticket {
        let Ok(ParkVerdict::Parking(ticket)) = self.step(Word::begin_park) else { panic!() };
        ticket
    }
    fn cancel(&self) {
        let _ = self.step(Word::cancel_park);
    }
    fn commit(&self) -> CommitVerdict {
        self.step(Word::commit_park).unwrap()
    }
    fn wake(&self, ticket: Ticket) -> Result<WakeVerdict, Stale> {
        self.step(|word| word.wake(GENERATION, ticket))
    }
    fn dispatch(&self) -> bool {
        self.step(|word| word.dispatch(GENERATION)).is_ok()
    }
    fn is_parked(&self) -> bool {
        Word::from_bits(self.0.load(Relaxed)).state() == State::Parked
    }
}

#[test]
#[should_panic(expected = "run ")]
fn mutant_relaxed_orders_run_the_thread_before_its_registers_are_saved() {
    explore("mutant: relaxed orders", || one_thread_and_wakers::<Unordered>(1));
}
