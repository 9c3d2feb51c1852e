//! Wake against block: no wake is lost, no thread is queued twice or run on two stacks.
//!
//! CPU A runs the thread until it parks; the wakers are other CPUs, and each runs the thread
//! itself if it gets to enqueue it. The condition is level-triggered and has its own lock, as a
//! completion queue has. Each mutant is a protocol with one step done wrongly; its test expects
//! the model to find the named failure.

#[path = "wait/mutants.rs"]
mod mutants;

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
        let Ok(WaitVerdict::AboutToWait(ticket)) = self.begin_wait() else { panic!("not running") };
        ticket
    }
    fn cancel(&self) {
        assert_eq!(self.cancel_wait(), Ok(ResumeVerdict::Resume));
    }
    fn commit(&self) -> CommitVerdict {
        self.commit_wait().expect("only CPU A commits")
    }
    fn wake(&self, ticket: Ticket) -> Result<WakeVerdict, Stale> {
        self.wake(GENERATION, ticket)
    }
    fn dispatch(&self) -> bool {
        self.dispatch(GENERATION) == Ok(DispatchVerdict::Run)
    }
    fn is_parked(&self) -> bool {
        self.load().state() == State::Waiting
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
            CommitVerdict::Waits => {}
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
fn pickers(name: &str, pick: fn(&StateWord) -> bool) {
    explore(name, move || {
        let word = Arc::new(StateWord::starting_at(Word::compose(
            State::Runnable,
            GENERATION,
            Ticket::new(0),
            false,
            false,
        )));
        let other = {
            let word = word.clone();
            thread::spawn(move || pick(&word))
        };
        let mine = pick(&word);
        assert!(mine ^ other.join().unwrap(), "run on two CPUs");
    });
}

#[test]
fn two_pickers() {
    pickers("two pickers", |word| word.dispatch(GENERATION).is_ok());
}

/// A preempted thread is given up after the switch; whoever picks it sees its registers.
fn preempt(name: &str, is_after_switch: bool) {
    explore(name, move || {
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
        let requeue = || assert_eq!(world.protocol.requeue(), Ok(RequeueVerdict::Enqueue));
        if is_after_switch {
            world.leave_stack();
            requeue();
        } else {
            requeue();
            world.leave_stack();
        }
        picker.join().unwrap();
    });
}

#[test]
fn preempt_against_pick() {
    preempt("preempt against pick", true);
}
