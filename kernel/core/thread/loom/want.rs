//! Completions against a wait for some of them, without a lock between thread and posters.
//!
//! CPU A runs the thread: it announces how many it wants, begins to wait, counts, and waits. The
//! posters are other CPUs; among themselves a lock keeps them apart, as a completion queue's does.
//! No interleaving leaves the thread waiting with what it wanted there. Each mutant does one step of
//! the protocol wrongly.

use abi_sync::explore;
use core_thread::*;
use loom::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};
use loom::sync::{Arc, Mutex};
use loom::thread;

const GENERATION: u32 = 1;

/// Which step is done wrongly.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mutant {
    None,
    /// The poster reads the state word instead of writing it.
    PlainLook,
    /// The number is announced after the wait has begun.
    LateNumber,
    /// The thread counts before it begins to wait, and not again.
    EarlyCount,
    /// The poster claims a thread that wants more than one.
    ClaimsAny,
}
use Mutant::*;

struct World {
    state: StateWord,
    want: Want,
    /// Completions that were posted; written under `posting`, read without it.
    tail: AtomicU32,
    posting: Mutex<()>,
    enqueued: AtomicUsize,
    mutant: Mutant,
}

impl World {
    fn new(mutant: Mutant) -> Arc<Self> {
        let running = Word::compose(State::Running, GENERATION, Ticket::new(0), false, false);
        let want = Want::new();
        // An earlier wait's number.
        want.announce(9);
        Arc::new(Self {
            state: StateWord::starting_at(running),
            want,
            tail: AtomicU32::new(0),
            posting: Mutex::new(()),
            enqueued: AtomicUsize::new(0),
            mutant,
        })
    }

    /// CPU A: waits for `count` completions.
    fn wait(&self, count: u32) {
        let early = self.tail.load(Relaxed);
        if self.mutant != LateNumber {
            self.want.announce(count);
        }
        let Ok(WaitVerdict::AboutToWait(_)) = self.state.begin_wait() else {
            panic!("not running")
        };
        if self.mutant == LateNumber {
            self.want.announce(count);
        }
        let seen = if self.mutant == EarlyCount { early } else { self.tail.load(Relaxed) };
        if seen >= count {
            assert_eq!(self.state.cancel_wait(), Ok(ResumeVerdict::Resume));
        } else if self.state.commit_wait() == Ok(CommitVerdict::Enqueue) {
            self.run();
        }
    }

    /// Whoever made it runnable runs it.
    fn run(&self) {
        assert_eq!(self.enqueued.fetch_add(1, Relaxed), 0, "enqueued twice");
        assert_eq!(self.state.dispatch(GENERATION), Ok(DispatchVerdict::Run));
    }

    /// Another CPU: posts one completion and wakes the thread if that was what it wanted.
    fn post(&self) {
        let due = {
            let _lock = self.posting.lock().unwrap();
            let count = self.tail.load(Relaxed) + 1;
            self.tail.store(count, Release);
            self.due(count)
        };
        if let Some(due) = due
            && self.state.wake(due.generation, due.ticket) == Ok(WakeVerdict::Enqueue)
        {
            self.run();
        }
    }

    fn due(&self, count: u32) -> Option<Due> {
        if self.mutant != PlainLook {
            return self.want.due(&self.state, count);
        }
        let word = self.state.load();
        // What the word says decides; the number is what the thread announced.
        let waits = word.is_waiting() && count >= 1;
        waits.then(|| Due { generation: word.generation(), ticket: word.ticket() })
    }

    /// Another CPU: takes the thread if it waits for one completion, posts it and runs the thread;
    /// otherwise as `post`.
    fn post_and_run(&self) {
        let claimed = if self.mutant == ClaimsAny {
            let word = self.state.load();
            word.claim(GENERATION).is_ok_and(|next| {
                self.state
                    .bits()
                    .compare_exchange(word.to_bits(), next.to_bits(), AcqRel, Acquire)
                    .is_ok()
            })
        } else {
            self.want.claim_one(&self.state, GENERATION).is_ok()
        };
        if !claimed {
            return self.post();
        }
        assert_eq!(self.enqueued.fetch_add(1, Relaxed), 0, "enqueued twice");
        let _lock = self.posting.lock().unwrap();
        let count = self.tail.load(Relaxed) + 1;
        self.tail.store(count, Release);
        assert!(count >= self.wanted(), "run without what it waits for");
    }

    fn wanted(&self) -> u32 {
        // The thread does not announce another number here.
        (1..=9).find(|&n| self.want.due(&waiting(), n).is_some()).unwrap()
    }

    fn check(&self, count: u32) {
        let word = self.state.load();
        word.check_invariants().unwrap();
        let satisfied = self.tail.load(Relaxed) >= count;
        assert!(!(satisfied && word.state() == State::Waiting), "lost wake");
    }
}

/// A word that waits, to ask a number about.
fn waiting() -> StateWord {
    StateWord::starting_at(Word::compose(State::Waiting, 1, Ticket::new(1), false, false))
}

fn posters(mutant: Mutant, wanted: u32, posters: &'static [fn(&World)]) {
    let world = World::new(mutant);
    let others: Vec<_> = posters
        .iter()
        .map(|poster| {
            let world = world.clone();
            thread::spawn(move || poster(&world))
        })
        .collect();
    world.wait(wanted);
    for other in others {
        other.join().unwrap();
    }
    world.check(wanted);
}

#[test]
fn one_completion_wanted_one_posted() {
    explore("want 1, 1 poster", || posters(None, 1, &[World::post]));
}

#[test]
fn one_completion_wanted_two_posted() {
    explore("want 1, 2 posters", || posters(None, 1, &[World::post, World::post]));
}

#[test]
fn two_completions_wanted_two_posted() {
    explore("want 2, 2 posters", || posters(None, 2, &[World::post, World::post]));
}

#[test]
fn a_claim_against_a_post() {
    explore("want 1, claim and post", || posters(None, 1, &[World::post_and_run, World::post]));
}

#[test]
fn a_claim_takes_nobody_who_wants_more() {
    explore("want 2, claim and post", || posters(None, 2, &[World::post_and_run, World::post]));
}

#[test]
#[should_panic(expected = "lost wake")]
fn mutant_poster_that_only_reads_loses_a_wake() {
    explore("mutant: plain look", || posters(PlainLook, 1, &[World::post]));
}

#[test]
#[should_panic(expected = "lost wake")]
fn mutant_number_announced_late_loses_a_wake() {
    explore("mutant: late number", || posters(LateNumber, 1, &[World::post]));
}

#[test]
#[should_panic(expected = "lost wake")]
fn mutant_early_count_loses_a_wake() {
    explore("mutant: early count", || posters(EarlyCount, 1, &[World::post]));
}

#[test]
#[should_panic(expected = "run without what it waits for")]
fn mutant_claim_of_any_wait_runs_too_early() {
    explore("mutant: claims any", || posters(ClaimsAny, 2, &[World::post_and_run]));
}
