//! Five workers run fibers that wait for each other, and some of the fibers are cancelled meanwhile:
//! each runs on one worker at a time, each wait ends in one way, and nobody is left waiting.
//!
//! The real state words, outcomes and queues. A fiber waits for tokens at a place of its own, of
//! which others put one there at a time. Those that last wait for each other in a ring and get all
//! they wait for; those that are cancelled get fewer and end by that.
use std::collections::VecDeque;
use std::ptr::without_provenance_mut;

use abi_sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use abi_sync::{Arc, Mutex, explore, thread};
use fiber_core::{
    CancelVerdict, CommitVerdict, Outcome, OutcomeCell, ParkVerdict, RunQueue, State, StateWord,
    Ticket, WakeVerdict, Word,
};

const WORKERS: usize = 5;
/// Fibers that last, in a ring, and as many that are cancelled.
const LASTING: usize = 3;
const FIBERS: usize = 2 * LASTING;
/// Waits of a fiber.
const WAITS: usize = 3;
/// Random schedules of a model.
const SCHEDULES: u64 = 2000;
/// Those that failed once: 0 and 1 found the cancellation that is lost, 4 the second publication.
const KEPT: [u64; 3] = [0, 1, 4];

/// What is done wrong.
#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    None,
    /// The canceller looks, and then stores.
    CancelsByStore,
    /// The commit of a park does not look at the cancellation.
    CommitsBlindly,
    /// A fiber that was cancelled says so without deciding its wait.
    SettlesBlindly,
    /// Whoever marks a fiber that is about to park publishes it as well.
    PublishesTheParking,
}

struct Fiber {
    word: StateWord,
    /// Tokens nobody has taken, and the wait that is linked.
    place: Mutex<(u32, Option<(Ticket, usize)>)>,
    outcomes: [OutcomeCell; WAITS],
    /// The wait it is at. By whoever runs it.
    at: AtomicUsize,
    taken: AtomicU32,
    put: AtomicU32,
    is_running: AtomicBool,
}

struct World {
    fibers: [Fiber; FIBERS],
    queues: [RunQueue<u8, 4>; WORKERS],
    global: Mutex<VecDeque<usize>>,
    left: AtomicUsize,
    flaw: Flaw,
}

impl Fiber {
    fn new() -> Self {
        Self {
            word: StateWord::new(),
            place: Mutex::new((0, None)),
            outcomes: std::array::from_fn(|_| OutcomeCell::new()),
            at: AtomicUsize::new(0),
            taken: AtomicU32::new(0),
            put: AtomicU32::new(0),
            is_running: AtomicBool::new(false),
        }
    }

    /// Notes how the wait `at` ended.
    fn ended(&self, at: usize, outcome: Outcome) {
        let before = at.checked_sub(1).and_then(|before| self.outcomes[before].get());
        match outcome {
            Outcome::Data(_) => {
                assert_ne!(before, Some(Outcome::Cancelled), "a cancellation does not stay");
                self.taken.fetch_add(1, SeqCst);
            }
            _ => assert!(self.word.load().is_cancelled(), "cancelled by nobody"),
        }
        let _ = self.outcomes[at].decide(outcome);
        self.at.store(at + 1, SeqCst);
    }
}

impl World {
    fn publish(&self, worker: Option<usize>, number: usize) {
        let item = without_provenance_mut(number + 1);
        if worker.is_none_or(|worker| self.queues[worker].push(item).is_err()) {
            self.global.lock().unwrap().push_back(number);
        }
    }

    /// Puts a token where the fiber waits for it.
    fn put(&self, worker: Option<usize>, number: usize) {
        let fiber = &self.fibers[number];
        fiber.put.fetch_add(1, SeqCst);
        let waker = {
            let mut place = fiber.place.lock().unwrap();
            let linked = place.1.take();
            let ended = linked.filter(|(_, at)| fiber.outcomes[*at].decide(Outcome::Data(0)));
            place.0 += u32::from(ended.is_none());
            ended
        };
        let verdict = waker.and_then(|(ticket, _)| fiber.word.wake(ticket).ok());
        let is_ours = verdict == Some(WakeVerdict::Enqueue)
            || verdict.is_some() && self.flaw == Flaw::PublishesTheParking;
        if is_ours {
            self.publish(worker, number);
        }
    }

    /// Lets others run until the fiber has begun that wait, or will not any more.
    fn wait_until(&self, number: usize, wait: u64) {
        let word = &self.fibers[number].word;
        while word.load().ticket().number() < wait && !word.load().is_cancelled() {
            thread::yield_now();
        }
    }

    fn cancel(&self, number: usize) {
        let word = &self.fibers[number].word;
        let verdict = if self.flaw == Flaw::CancelsByStore {
            let (next, verdict) = word.load().cancel();
            word.bits().store(next.to_bits(), SeqCst);
            verdict
        } else {
            word.cancel()
        };
        if verdict == CancelVerdict::Enqueue {
            self.publish(None, number);
        }
    }

    fn commit(&self, word: &StateWord) -> CommitVerdict {
        let now = word.load();
        if self.flaw == Flaw::CommitsBlindly && !now.is_pending() {
            let parked = Word::compose(State::Parked, now.ticket(), now.is_cancelled(), false);
            let [now, parked] = [now.to_bits(), parked.to_bits()];
            if word.bits().compare_exchange(now, parked, SeqCst, SeqCst).is_ok() {
                return CommitVerdict::Parked;
            }
        }
        word.commit_park().unwrap()
    }

    /// What the fiber does from one wait to the next; true if it is about to park, false at its end.
    fn go_on(&self, worker: usize, number: usize, is_resumed: bool) -> bool {
        let fiber = &self.fibers[number];
        let mut at = fiber.at.load(SeqCst);
        if is_resumed {
            let outcome = match self.flaw {
                Flaw::SettlesBlindly if fiber.word.load().is_cancelled() => Outcome::Cancelled,
                _ => fiber.outcomes[at].settle(),
            };
            fiber.place.lock().unwrap().1 = None;
            fiber.ended(at, outcome);
            at += 1;
        }
        while at < WAITS {
            if number < LASTING {
                self.put(Some(worker), (number + 1) % LASTING);
            }
            match fiber.word.begin_park().unwrap() {
                ParkVerdict::Cancelled => fiber.ended(at, Outcome::Cancelled),
                ParkVerdict::Parking(ticket) => {
                    let mut place = fiber.place.lock().unwrap();
                    if place.0 == 0 {
                        place.1 = Some((ticket, at));
                        return true;
                    }
                    place.0 -= 1;
                    drop(place);
                    fiber.word.abort_park().unwrap();
                    fiber.ended(at, Outcome::Data(0));
                }
            }
            at += 1;
        }
        false
    }

    fn run(&self, worker: usize, number: usize) {
        let fiber = &self.fibers[number];
        fiber.word.dispatch().expect("published once, when it is runnable");
        let mut is_resumed = fiber.word.load().ticket() != Ticket::new(0);
        loop {
            assert!(!fiber.is_running.swap(true, SeqCst), "run on two workers");
            let parks = self.go_on(worker, number, is_resumed);
            fiber.is_running.store(false, SeqCst);
            if !parks {
                fiber.word.finish(true).unwrap();
                self.left.fetch_sub(1, SeqCst);
                return;
            }
            if self.commit(&fiber.word) == CommitVerdict::Parked {
                return;
            }
            is_resumed = true;
        }
    }

    fn work(&self, me: usize) {
        while self.left.load(SeqCst) > 0 {
            let own = || self.queues[me].pop().map(|item| item.addr() - 1);
            let global = || self.global.lock().unwrap().pop_front();
            let steal = || {
                let mut first = None;
                self.queues[(me + 1) % WORKERS].take_half(|item| match first {
                    None => first = Some(item.addr() - 1),
                    Some(_) => self.publish(Some(me), item.addr() - 1),
                });
                first
            };
            match own().or_else(global).or_else(steal) {
                Some(number) => self.run(me, number),
                None => thread::yield_now(),
            }
        }
    }
}

fn all_end(flaw: Flaw) {
    let world = Arc::new(World {
        fibers: std::array::from_fn(|_| Fiber::new()),
        queues: std::array::from_fn(|_| RunQueue::new()),
        global: Mutex::new(VecDeque::new()),
        left: AtomicUsize::new(FIBERS),
        flaw,
    });
    for (number, fiber) in world.fibers.iter().enumerate() {
        fiber.word.start().unwrap();
        world.publish(None, number);
    }
    let start = |me| {
        let world = world.clone();
        thread::spawn(move || world.work(me))
    };
    let workers: Vec<_> = (0..WORKERS).map(start).collect();
    let putter = {
        let world = world.clone();
        thread::spawn(move || {
            for number in LASTING..FIBERS {
                world.wait_until(number, 1);
                world.put(None, number);
            }
        })
    };
    for number in LASTING..FIBERS {
        // The first at once, the next in its first wait, the last in its second.
        world.wait_until(number, (number - LASTING) as u64);
        world.cancel(number);
    }
    putter.join().unwrap();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    for (number, fiber) in world.fibers.iter().enumerate() {
        let (taken, put) = (fiber.taken.load(SeqCst), fiber.put.load(SeqCst));
        assert_eq!(taken + fiber.place.lock().unwrap().0, put, "a token is lost");
        assert!(number >= LASTING || taken == WAITS as u32, "cancelled by mistake");
    }
}

#[test]
fn cancel_against_wake_with_five_workers() {
    explore("five workers, cancel against wake", &KEPT, SCHEDULES, || all_end(Flaw::None));
}

#[test]
#[should_panic(expected = "exceeded max_steps")]
fn mutant_cancel_that_looks_and_stores() {
    explore("mutant: cancel by store", &[], SCHEDULES, || all_end(Flaw::CancelsByStore));
}

#[test]
#[should_panic(expected = "exceeded max_steps")]
fn mutant_commit_that_does_not_look() {
    explore("mutant: blind commit", &[], SCHEDULES, || all_end(Flaw::CommitsBlindly));
}

#[test]
#[should_panic(expected = "a token is lost")]
fn mutant_end_that_is_not_decided() {
    explore("mutant: blind end", &[], SCHEDULES, || all_end(Flaw::SettlesBlindly));
}

#[test]
#[should_panic(expected = "wanted: Parking")]
fn mutant_publication_of_the_parking() {
    explore("mutant: published while parking", &[], SCHEDULES, || {
        all_end(Flaw::PublishesTheParking);
    });
}
