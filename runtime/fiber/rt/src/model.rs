//! Waiting in a model: its threads are the fibers, each of which commits its own park.
//!
//! The state word and the outcome are the real ones, and so is the rule of cancellation; only the
//! substrate is the model's. A wait with a deadline may end with Timeout at any moment, which is what
//! a deadline can do.
//!
//! Decided in ADR 183.

use core::cell::{Cell, OnceCell};
use core::task::{Context, Poll};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;
// Not the model's: it says what a frame is, and is written before anybody asks.
use std::sync::atomic::{AtomicBool, Ordering};

use abi_sync::{CheckedCell, thread};
use fiber_core::{
    CancelVerdict, CommitVerdict, Misuse, Outcome, OutcomeCell, ParkVerdict, State, StateWord,
    Ticket, WakeVerdict, Word,
};

use crate::last_waker::LastWaker;
use crate::planted::{Defect, is_any, is_planted};
use crate::shield::shield_at;
use crate::thread_wait::ThreadWord;
use crate::time::Cancelled;
use crate::timer::{Timer, Timers};
use crate::what::What;

/// What is known of a fiber, which is a thread of the model. Never freed, as the real one.
#[derive(Debug)]
pub(crate) struct Frame {
    pub word: StateWord,
    /// Written by the thread itself, before it parks for the first time.
    thread: OnceLock<thread::Thread>,
    /// If it is a future's.
    last_waker: Option<LastWaker>,
    /// For its deadlines. By the thread itself.
    timer: OnceCell<Timer>,
    /// Whether it waits as a thread does.
    is_thread: AtomicBool,
    thread_word: ThreadWord,
}

// SAFETY: the timer is the thread's own, and in a wheel only reached under that one's lock.
unsafe impl Sync for Frame {}
// SAFETY: as for Sync.
unsafe impl Send for Frame {}

impl Frame {
    fn new(last_waker: Option<LastWaker>) -> &'static Self {
        let running = Word::compose(State::Running, Ticket::new(0), false, false);
        let word = StateWord::starting_at(running);
        Box::leak(Box::new(Self {
            word,
            thread: OnceLock::new(),
            last_waker,
            timer: OnceCell::new(),
            is_thread: AtomicBool::new(false),
            thread_word: ThreadWord::new(),
        }))
    }

    /// Lets whoever waits go on, which has been made runnable by the caller.
    fn publish(&self) {
        if let Some(waker) = &self.last_waker {
            waker.wake();
        }
        if self.is_thread.load(Ordering::Relaxed) {
            self.thread_word.set();
        } else if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    pub(crate) fn last_waker(&self) -> Option<&LastWaker> {
        self.last_waker.as_ref()
    }
}

/// A frame for a future.
pub(crate) fn take_future_frame() -> &'static Frame {
    Frame::new(Some(LastWaker::default()))
}

/// No frame is used again here: whoever is late finds the one it means.
pub(crate) fn give_future_frame(_: &'static Frame) {}

pub(crate) fn check<T>(result: Result<T, Misuse>) -> Option<T> {
    // A model that has failed unwinds through here, in whatever state it is.
    let is_good = result.is_ok() || std::thread::panicking();
    assert!(is_good, "the state word was moved by a stranger");
    result.ok()
}

abi_sync::thread_local! {
    static CURRENT: Cell<Option<&'static Frame>> = Cell::new(None);
}

fn current_frame() -> &'static Frame {
    CURRENT.with(|current| {
        let frame = current.get().unwrap_or_else(|| Frame::new(None));
        current.set(Some(frame));
        frame
    })
}

/// A thread of a model that others may cancel, as a fiber's handle does.
#[derive(Clone, Copy, Debug)]
pub struct ModelFiber(&'static Frame);

impl ModelFiber {
    /// Starts one.
    pub fn spawn<T: Send + 'static>(
        f: impl FnOnce() -> T + Send + 'static,
    ) -> (Self, thread::JoinHandle<T>) {
        let frame = Frame::new(None);
        let run = move || {
            CURRENT.with(|current| current.set(Some(frame)));
            f()
        };
        (Self(frame), thread::spawn(run))
    }

    /// Cancels it.
    pub fn cancel(self) {
        let is_late = self.0.word.load().state() != State::Parked;
        if is_late && is_planted(Defect::CancelsOnlyTheParked) {
            return;
        }
        if self.0.word.cancel() == CancelVerdict::Enqueue {
            self.0.publish();
        }
    }
}

/// One wait.
pub struct Wait {
    outcome: OutcomeCell,
    waker: Waker,
    /// Read by whoever looks at the wait and written when it goes: a look that nothing orders before
    /// that is found. Not a part of the wait, so that it is there for one that is late.
    life: &'static CheckedCell<()>,
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.end();
    }
}

impl Wait {
    pub(crate) fn of(frame: &'static Frame, ticket: Ticket) -> Self {
        let life = Box::leak(Box::new(CheckedCell::new(())));
        Self { outcome: OutcomeCell::new(), waker: Waker { frame, ticket }, life }
    }

    /// Nobody looks at it any more.
    fn end(&self) {
        // A model that has failed unwinds through here.
        if !std::thread::panicking() {
            self.life.update(|()| {});
        }
    }

    pub(crate) fn settle(&self) -> Outcome {
        self.outcome.settle()
    }

    /// Decides the outcome; false if it was decided before.
    #[must_use]
    pub fn decide(&self, outcome: Outcome) -> bool {
        self.life.get();
        self.outcome.decide(outcome)
    }

    /// Whether the outcome is open.
    pub fn is_open(&self) -> bool {
        self.life.get();
        self.outcome.get().is_none()
    }

    pub(crate) fn has_timed_out(&self) -> bool {
        self.outcome.get() == Some(Outcome::Timeout)
    }

    /// Whom to wake.
    pub fn waker(&self) -> Waker {
        self.life.get();
        self.waker
    }
}

/// The right to end one wait.
#[derive(Clone, Copy, Debug)]
pub struct Waker {
    frame: &'static Frame,
    ticket: Ticket,
}

impl Waker {
    /// Ends the wait.
    pub fn wake(self) {
        if self.frame.word.wake(self.ticket) == Ok(WakeVerdict::Enqueue) {
            self.frame.publish();
        }
    }

    /// There is no cache here.
    pub(crate) fn prefetch(self) {}

    pub(crate) fn wake_quietly(self) {
        let _ = self.frame.word.wake(self.ticket);
    }
}

/// As the real one.
pub fn wait(
    what: What,
    at: *const (),
    deadline_ns: Option<u64>,
    publish: impl FnOnce(&Wait) -> bool,
    unlink: impl FnOnce(Outcome),
) -> Option<Outcome> {
    wait_unless(what, at, deadline_ns, |start| start.publish(publish), unlink).err()
}

/// As the real one.
pub fn wait_unless<R>(
    _what: What,
    _at: *const (),
    deadline_ns: Option<u64>,
    attempt: impl FnOnce(&Start) -> Option<R>,
    unlink: impl FnOnce(Outcome),
) -> Result<R, Outcome> {
    wait_by(attempt, unlink, |wait| {
        if deadline_ns.is_some() && wait.decide(Outcome::Timeout) {
            let _ = wait.waker.frame.word.abort_park();
        } else {
            park(&wait.waker.frame.word);
        }
    })
}

/// As [`wait`], with a deadline that is in a wheel of `timers`, as a fiber's is.
pub fn wait_timed(
    timers: &Timers,
    deadline_ns: u64,
    publish: impl FnOnce(&Wait) -> bool,
    unlink: impl FnOnce(Outcome),
) -> Option<Outcome> {
    let parked = wait_by(
        |start| start.publish(publish),
        unlink,
        |wait| {
            let frame = wait.waker.frame;
            let timer = frame.timer.get_or_init(Timer::idle);
            // SAFETY: a frame's timer stays where it is. Nobody sleeps who would have to be woken.
            let insert = || _ = unsafe { timers.insert_quietly(0, timer, deadline_ns) };
            timers.park_until(timer, wait, insert, || park(&frame.word));
        },
    );
    parked.err()
}

/// As [`wait`], on the word of a thread that is no worker. `is_late`: its deadline has passed when it
/// first looks.
pub fn wait_on_thread(
    mut is_late: bool,
    publish: impl FnOnce(&Wait) -> bool,
    unlink: impl FnOnce(Outcome),
) -> Option<Outcome> {
    current_frame().is_thread.store(true, Ordering::Relaxed);
    let waited = wait_by(
        |start| start.publish(publish),
        unlink,
        |wait| {
            let frame = wait.waker.frame;
            let _ = frame.thread_word.wait(&frame.word, wait, || {
                thread::yield_now();
                core::mem::take(&mut is_late)
            });
        },
    );
    waited.err()
}

/// Parks until woken or cancelled.
fn park(word: &StateWord) {
    if word.commit_park() == Ok(CommitVerdict::Parked) {
        while word.load().state() == State::Parked {
            // A mutant waits for ever by looking again and again, which loom ends in good order; a
            // deadlock it would end in the middle of everything.
            if is_any() { thread::yield_now() } else { thread::park() }
        }
        let _ = word.dispatch();
    }
}

/// What all waits have in common; `park` gives the CPU up until the wait is ended.
fn wait_by<R>(
    attempt: impl FnOnce(&Start) -> Option<R>,
    unlink: impl FnOnce(Outcome),
    park: impl FnOnce(&'static Wait),
) -> Result<R, Outcome> {
    let start = Start(OnceCell::new());
    if let Some(result) = attempt(&start) {
        return Ok(result);
    }
    let Some(wait) = start.0.get() else { return Err(Outcome::Cancelled) };
    let word = &wait.waker.frame.word;
    park(wait);
    let is_forced = is_planted(Defect::CancelsWithoutDeciding) && word.load().sees_cancel();
    let outcome = if is_forced { Outcome::Cancelled } else { wait.settle() };
    assert!(outcome != Outcome::Cancelled || word.load().sees_cancel(), "woken without an outcome");
    unlink(outcome);
    Err(outcome)
}

/// Where a wait is, once it has begun. Its memory stays, for one that looks when it is late.
pub struct Start(OnceCell<&'static Wait>);

impl Drop for Start {
    fn drop(&mut self) {
        if let Some(wait) = self.0.get() {
            wait.end();
        }
    }
}

impl Start {
    /// Begins a wait and publishes it; `Some` if nothing is waited for.
    fn publish(&self, publish: impl FnOnce(&Wait) -> bool) -> Option<()> {
        let wait = self.begin().filter(|wait| !publish(wait))?;
        let _ = wait.waker.frame.word.abort_park();
        Some(())
    }

    /// As the real one.
    pub fn begin(&self) -> Option<&Wait> {
        let frame = current_frame();
        frame.thread.get_or_init(thread::current);
        let Ok(ParkVerdict::Parking(ticket)) = frame.word.begin_park() else { return None };
        let wait = Box::leak(Box::new(Wait::of(frame, ticket)));
        Some(self.0.get_or_init(|| wait))
    }
}

/// A number that no other thread of the model has.
pub fn current_id() -> usize {
    let mut hasher = DefaultHasher::new();
    thread::current().id().hash(&mut hasher);
    hasher.finish() as usize | 1
}

/// Any arm may come first.
pub fn random() -> u64 {
    abi_sync::random()
}

/// As the real one.
pub fn shield<R>(f: impl FnOnce() -> R) -> R {
    let word = &current_frame().word;
    shield_at((!is_planted(Defect::ShieldsNothing)).then_some(word), f)
}

/// No budget.
pub fn consume_budget() {}

/// No budget.
pub fn poll_budget(_: &Context<'_>) -> Poll<()> {
    Poll::Ready(())
}

/// Others may run at every step.
pub fn yield_now() -> Result<(), Cancelled> {
    Ok(())
}
