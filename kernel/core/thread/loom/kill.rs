//! Kill against block, wake and end: a killed thread dies exactly once, and never stays parked.
//!
//! Whoever gets a verdict that makes it the thread's owner carries it to its end here, and the
//! world counts the ends.

use abi_sync::explore;
use core_thread::*;
use loom::sync::atomic::{AtomicUsize, Ordering::*};
use loom::sync::{Arc, Mutex};
use loom::thread;

const GENERATION: u32 = 1;

/// How a killer sets its mark: the real way, or a mutant's.
trait Killer: Send + Sync + 'static {
    fn kill(word: &StateWord) -> Result<KillVerdict, Stale>;
}

struct Real;
impl Killer for Real {
    fn kill(word: &StateWord) -> Result<KillVerdict, Stale> {
        word.kill(GENERATION)
    }
}

struct World {
    word: StateWord,
    condition: Mutex<(bool, Option<Ticket>)>,
    ends: AtomicUsize,
    enqueued: AtomicUsize,
}

impl World {
    fn new() -> Arc<Self> {
        let running = Word::compose(State::Running, GENERATION, Ticket::new(0), false, false);
        Arc::new(Self {
            word: StateWord::starting_at(running),
            condition: Mutex::new((false, None)),
            ends: AtomicUsize::new(0),
            enqueued: AtomicUsize::new(0),
        })
    }

    fn end(&self) {
        assert_eq!(self.ends.fetch_add(1, Relaxed), 0, "finalised twice");
    }

    /// CPU A: the thread waits, and the next context commits.
    fn park(&self) {
        match self.word.begin_wait().unwrap() {
            WaitVerdict::Die => return self.last_switch(),
            WaitVerdict::AboutToWait(ticket) => {
                let mut condition = self.condition.lock().unwrap();
                if condition.0 {
                    drop(condition);
                    return match self.word.cancel_wait().unwrap() {
                        ResumeVerdict::Die => self.last_switch(),
                        ResumeVerdict::Resume => self.return_to_user(),
                    };
                }
                condition.1 = Some(ticket);
            }
        }
        match self.word.commit_wait().unwrap() {
            CommitVerdict::Waits => {}
            CommitVerdict::Enqueue => self.enqueue(),
            CommitVerdict::Finalise => self.end(),
        }
    }

    /// The thread's way out of the kernel looks at the mark; the interrupt a killer sends makes
    /// sure that it comes this way once more after the mark is set.
    fn return_to_user(&self) {
        while !self.word.is_killed() {
            thread::yield_now();
        }
        self.last_switch();
    }

    fn last_switch(&self) {
        self.word.finish().unwrap();
        self.end();
    }

    /// The enqueuer's CPU picks the thread at once.
    fn enqueue(&self) {
        assert_eq!(self.enqueued.fetch_add(1, Relaxed), 0, "enqueued twice");
        match self.word.dispatch(GENERATION) {
            Ok(DispatchVerdict::Finalise) => self.end(),
            Ok(DispatchVerdict::Run) => self.return_to_user(),
            Err(Stale) => panic!("an enqueued thread is not runnable"),
        }
    }

    fn kill<K: Killer>(&self) {
        match K::kill(&self.word) {
            Ok(KillVerdict::Enqueue) => self.enqueue(),
            Ok(KillVerdict::Interrupt | KillVerdict::Noted | KillVerdict::Already) => {}
            Err(Stale) => {}
        }
    }

    fn wake(&self) {
        let ticket = {
            let mut condition = self.condition.lock().unwrap();
            condition.0 = true;
            condition.1
        };
        if let Some(ticket) = ticket
            && self.word.wake(GENERATION, ticket) == Ok(WakeVerdict::Enqueue)
        {
            self.enqueue();
        }
    }

    fn check_end(&self) {
        assert_eq!(self.ends.load(Relaxed), 1, "a killed thread lives on");
        assert_eq!(self.word.load().state(), State::Dead);
    }
}

fn kill_against_block<K: Killer>() {
    let world = World::new();
    let killer = {
        let world = world.clone();
        thread::spawn(move || world.kill::<K>())
    };
    world.park();
    killer.join().unwrap();
    world.check_end();
}

fn kill_against_block_and_wake<K: Killer>() {
    let world = World::new();
    let killer = {
        let world = world.clone();
        thread::spawn(move || world.kill::<K>())
    };
    let waker = {
        let world = world.clone();
        thread::spawn(move || world.wake())
    };
    world.park();
    killer.join().unwrap();
    waker.join().unwrap();
    world.check_end();
}

#[test]
fn kill_against_a_thread_that_blocks() {
    explore("kill against block", kill_against_block::<Real>);
}

#[test]
fn kill_against_a_thread_that_blocks_and_is_woken() {
    explore("kill against block and wake", kill_against_block_and_wake::<Real>);
}

/// The thread is parked before killer and waker race for it.
fn kill_against_wake<K: Killer>() {
    let world = World::new();
    world.park();
    let killer = {
        let world = world.clone();
        thread::spawn(move || world.kill::<K>())
    };
    world.wake();
    killer.join().unwrap();
    world.check_end();
}

#[test]
fn kill_against_the_waker_of_a_parked_thread() {
    explore("kill against wake", kill_against_wake::<Real>);
}

fn killers<K: Killer>() {
    let world = World::new();
    let killers: Vec<_> = (0..2)
        .map(|_| {
            let world = world.clone();
            thread::spawn(move || world.kill::<K>())
        })
        .collect();
    world.park();
    for killer in killers {
        killer.join().unwrap();
    }
    world.check_end();
}

#[test]
fn two_killers() {
    explore("two killers", killers::<Real>);
}

/// CPU A: the thread gives way in the middle of something, another CPU runs it on, and it finishes.
/// CPU B: it is killed at whatever moment.
fn kill_against_preemption(mark: bool) {
    let world = World::new();
    let killer = {
        let world = world.clone();
        thread::spawn(move || world.kill::<Real>())
    };
    if mark {
        world.word.pause().unwrap();
    }
    let is_finished = match world.word.requeue().unwrap() {
        RequeueVerdict::Finalise => {
            world.end();
            false
        }
        RequeueVerdict::Enqueue => match world.word.dispatch(GENERATION).unwrap() {
            DispatchVerdict::Finalise => {
                world.end();
                false
            }
            DispatchVerdict::Run => {
                world.word.resume().unwrap();
                world.return_to_user();
                true
            }
        },
    };
    killer.join().unwrap();
    assert!(is_finished, "what was half done is left so");
    world.check_end();
}

#[test]
fn kill_against_a_thread_in_the_middle_of_something() {
    explore("kill against preemption", || kill_against_preemption(true));
}

#[test]
#[should_panic(expected = "what was half done is left so")]
fn mutant_preemption_without_the_mark_leaves_things_half_done() {
    explore("mutant: no mark", || kill_against_preemption(false));
}

/// The end of a thread against a kill that comes late: the record's next thread is spared.
fn late_kill<K: Killer>() {
    let running = Word::compose(State::Running, GENERATION, Ticket::new(0), false, false);
    let word = Arc::new(StateWord::starting_at(running));
    let killer = {
        let word = word.clone();
        thread::spawn(move || {
            let _ = K::kill(&word);
        })
    };
    word.finish().unwrap();
    assert_eq!(word.recycle(), Ok(RecycleVerdict::Free));
    assert_eq!(word.create(), Ok(GENERATION + 1));
    word.start().unwrap();
    let dispatched = word.dispatch(GENERATION + 1);
    killer.join().unwrap();
    assert!(!word.is_killed(), "a kill reached the next thread");
    assert_eq!(dispatched, Ok(DispatchVerdict::Run));
}

#[test]
fn a_late_kill_spares_the_next_thread() {
    explore("late kill", late_kill::<Real>);
}

// ---- mutants -----------------------------------------------------------------------------

/// Leaves a thread alone that is about to wait, as "not waiting yet".
struct SkipsAboutToWait;
impl Killer for SkipsAboutToWait {
    fn kill(word: &StateWord) -> Result<KillVerdict, Stale> {
        if word.load().state() == State::AboutToWait {
            return Ok(KillVerdict::Noted);
        }
        word.kill(GENERATION)
    }
}

#[test]
#[should_panic(expected = "a killed thread lives on")]
fn mutant_kill_that_skips_parking_is_lost() {
    explore("mutant: skips AboutToWait", kill_against_block::<SkipsAboutToWait>);
}

/// Looks at the state, then sets the mark apart from it.
struct LooksThenMarks;
impl Killer for LooksThenMarks {
    fn kill(word: &StateWord) -> Result<KillVerdict, Stale> {
        let seen = word.load();
        if seen.state() == State::Waiting {
            return word.kill(GENERATION);
        }
        let mark = Word::compose(State::Free, 0, Ticket::new(0), true, false).to_bits();
        word.bits().fetch_or(mark, AcqRel);
        Ok(KillVerdict::Interrupt)
    }
}

#[test]
#[should_panic(expected = "a killed thread lives on")]
fn mutant_mark_apart_from_the_state_leaves_the_thread_parked() {
    explore("mutant: looks, then marks", kill_against_block::<LooksThenMarks>);
}

/// Claims the parked thread with a plain store: a waker may have claimed it too.
struct StoresOverTheWaker;
impl Killer for StoresOverTheWaker {
    fn kill(word: &StateWord) -> Result<KillVerdict, Stale> {
        let seen = word.load();
        let (next, verdict) = seen.kill(GENERATION)?;
        word.bits().store(next.to_bits(), Release);
        Ok(verdict)
    }
}

#[test]
#[should_panic(expected = "enqueued twice")]
fn mutant_kill_by_store_takes_the_thread_from_its_waker() {
    explore("mutant: kill by store", kill_against_wake::<StoresOverTheWaker>);
}

/// Claims a parked thread with a plain store, and is careful with any other.
struct StoresOverTheWaiting;
impl Killer for StoresOverTheWaiting {
    fn kill(word: &StateWord) -> Result<KillVerdict, Stale> {
        if word.load().state() == State::Waiting {
            return StoresOverTheWaker::kill(word);
        }
        word.kill(GENERATION)
    }
}

#[test]
fn a_store_over_the_parked_needs_a_second_claimer_to_be_seen() {
    explore("careful store", kill_against_block::<StoresOverTheWaiting>);
}

#[test]
#[should_panic(expected = "enqueued twice")]
fn mutant_store_over_the_parked_meets_the_waker_of_a_thread_that_blocks() {
    explore("mutant: careful store", kill_against_block_and_wake::<StoresOverTheWaiting>);
}

#[test]
#[should_panic(expected = "enqueued twice")]
fn mutant_store_over_the_parked_meets_another_killer() {
    explore("mutant: two careful stores", killers::<StoresOverTheWaiting>);
}

/// Kills whatever thread the record holds.
struct ForgetsTheGeneration;
impl Killer for ForgetsTheGeneration {
    fn kill(word: &StateWord) -> Result<KillVerdict, Stale> {
        word.kill(word.load().generation())
    }
}

#[test]
#[should_panic(expected = "a kill reached the next thread")]
fn mutant_without_generation_kills_the_next_thread() {
    explore("mutant: no generation", late_kill::<ForgetsTheGeneration>);
}
