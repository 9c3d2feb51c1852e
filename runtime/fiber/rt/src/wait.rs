//! Waiting and waking: the one way to park and the one way to be woken.
//!
//! Decided in ADR 182.

use core::cell::{Cell, UnsafeCell};
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering;

use fiber_core::{Misuse, Outcome, OutcomeCell, ParkVerdict, Ticket, WakeVerdict};

pub(crate) use crate::frame::Frame;
use crate::frame::{Switch, give_frame, take_frame};
use crate::prefetch::prefetch;
use crate::substrate::{Substrate, Sys};
use crate::timer::Timer;
use crate::what::What;
use crate::worker::{self, Worker};

/// One wait: its outcome, and who is to be woken. On the waiter's stack.
pub struct Wait {
    outcome: OutcomeCell,
    waker: Waker,
}

impl Wait {
    pub(crate) fn of(frame: &'static Frame, ticket: Ticket) -> Self {
        Self { outcome: OutcomeCell::new(), waker: Waker { frame, ticket } }
    }

    /// The outcome, for the waiter that goes on. If none is decided it was cancelled, or gives up.
    #[inline]
    pub(crate) fn settle(&self) -> Outcome {
        self.outcome.settle()
    }

    /// The timer that goes with the waiter's frame, for its deadline.
    pub(crate) fn timer(&self) -> &'static Timer {
        self.waker.frame.timer
    }

    /// Decides the outcome; false if it was decided before. Under the lock of the waitable, after the
    /// node is unlinked and what is to be moved has been moved: the waiter may go on at once.
    #[inline]
    #[must_use]
    pub fn decide(&self, outcome: Outcome) -> bool {
        self.outcome.decide(outcome)
    }

    /// Whether the outcome is open; a wait that was decided elsewhere is passed over.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.outcome.get().is_none()
    }

    /// Whether its deadline ended it.
    #[inline]
    pub(crate) fn has_timed_out(&self) -> bool {
        self.outcome.get() == Some(Outcome::Timeout)
    }

    /// Whom to wake, after the lock, by whoever decided the outcome.
    #[inline]
    pub fn waker(&self) -> Waker {
        self.waker
    }
}

/// The right to end one wait of one fiber or thread. Old ones do nothing.
#[derive(Clone, Copy)]
pub struct Waker {
    frame: &'static Frame,
    ticket: Ticket,
}

impl Waker {
    /// Has what the wake needs brought into the cache meanwhile.
    #[inline]
    pub(crate) fn prefetch(self) {
        for line in 0..size_of::<Frame>() / 64 {
            prefetch(core::ptr::from_ref(self.frame).wrapping_byte_add(line * 64));
        }
    }

    /// Ends the wait. Not under a waitable's lock.
    #[inline]
    pub fn wake(self) {
        if self.frame.word.wake(self.ticket) == Ok(WakeVerdict::Enqueue) {
            publish(self.frame);
        }
    }

    /// Ends the wait for the waiter itself, who runs and needs no waking.
    pub(crate) fn wake_quietly(self) {
        let _ = self.frame.word.wake(self.ticket);
    }
}

impl core::fmt::Debug for Waker {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            out,
            "wait {} of fiber {}",
            self.ticket.number(),
            self.frame.id.load(Ordering::Relaxed)
        )
    }
}

/// Publishes a frame that has just become runnable, once, by whoever made it so.
#[inline]
pub(crate) fn publish(frame: &'static Frame) {
    if frame.is_thread.load(Ordering::Relaxed) {
        unpark(frame);
    } else {
        worker::enqueue(frame);
    }
}

/// Wakes a waiter that is no fiber.
fn unpark(frame: &'static Frame) {
    if let Some(waker) = frame.last_waker() {
        // What a user wrote: whoever wakes has others to wake, and a worker goes on.
        if let Err(payload) = Sys::catch(|| waker.wake()) {
            core::mem::forget(payload);
            Sys::warn(format_args!("a future's waker panicked"));
        }
        return;
    }
    frame.thread_word.set();
    Sys::unpark(frame.thread_word.bits());
}

/// A defect of the runtime is stopped in checked builds and has no meaning in others.
#[inline]
pub(crate) fn check<T>(result: Result<T, Misuse>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(misuse) => {
            if cfg!(debug_assertions) {
                assert_eq!(Some(misuse), None, "the state word was moved by a stranger");
            }
            None
        }
    }
}

/// The frame of the caller: of its fiber, or of its thread.
#[inline]
pub(crate) fn current_frame() -> &'static Frame {
    match worker::current_fiber() {
        Some(frame) => frame,
        None => foreign_frame(),
    }
}

fn foreign_frame() -> &'static Frame {
    fn make() -> *const () {
        let frame = take_frame();
        frame.is_thread.store(true, Ordering::Relaxed);
        // No future's: a fiber that had the frame may have left its root.
        frame.root.store(core::ptr::null_mut(), Ordering::Relaxed);
        let _ = check(frame.word.start());
        let _ = check(frame.word.dispatch());
        core::ptr::from_ref(frame).cast()
    }
    fn retire(frame: *const ()) {
        // SAFETY: made by `make`.
        let frame = unsafe { crate::frame::frame_at(frame.cast()) };
        let _ = check(frame.word.finish(true));
        let _ = check(frame.word.recycle());
        frame.is_thread.store(false, Ordering::Relaxed);
        give_frame(frame);
    }
    let frame = Sys::foreign(make, retire);
    // SAFETY: made by `make`.
    unsafe { crate::frame::frame_at(frame.cast()) }
}

/// Waits until the outcome is decided. `publish` links the wait under the waitable's lock and says
/// whether it did; if not, nothing is waited for and the result is `None`. `unlink` takes it out
/// again, under the lock, if the outcome does not mean that whoever decided it has done so: until
/// then others look at the wait, which ends with this call.
pub fn wait(
    what: What,
    at: *const (),
    deadline_ns: Option<u64>,
    publish: impl FnOnce(&Wait) -> bool,
    unlink: impl FnOnce(Outcome),
) -> Option<Outcome> {
    let start = Start::new();
    if let Some(wait) = start.begin()
        && !publish(wait)
    {
        let _ = check(wait.waker.frame.word.abort_park());
        return None;
    }
    Some(start.park(what, at, deadline_ns, unlink))
}

/// As [`wait`], for an operation that finds out under the waitable's lock whether it has to wait at
/// all: `attempt` returns what came of it, or begins the wait and links it, under the one lock. An
/// error is the outcome of the wait.
#[inline]
pub fn wait_unless<R>(
    what: What,
    at: *const (),
    deadline_ns: Option<u64>,
    attempt: impl FnOnce(&Start) -> Option<R>,
    unlink: impl FnOnce(Outcome),
) -> Result<R, Outcome> {
    let start = Start::new();
    match attempt(&start) {
        Some(result) => {
            debug_assert!(start.wait().is_none(), "a wait that was begun is waited for");
            Ok(result)
        }
        None => Err(start.park(what, at, deadline_ns, unlink)),
    }
}

/// Where a wait is, once it has begun.
pub struct Start {
    has_begun: Cell<bool>,
    wait: UnsafeCell<MaybeUninit<Wait>>,
}

impl Start {
    #[inline]
    const fn new() -> Self {
        Self { has_begun: Cell::new(false), wait: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    #[inline]
    fn wait(&self) -> Option<&Wait> {
        // SAFETY: written before the flag was set, and not after.
        self.has_begun.get().then(|| unsafe { (*self.wait.get()).assume_init_ref() })
    }

    /// Begins the caller's wait, once, to be linked before the waitable's lock is free; `None` if the
    /// caller has been cancelled: then nothing is to be linked.
    #[inline(never)]
    pub fn begin(&self) -> Option<&Wait> {
        debug_assert!(self.wait().is_none(), "one wait at a time");
        let frame = current_frame();
        if let Some(ParkVerdict::Parking(ticket)) = check(frame.word.begin_park()) {
            let wait = Wait::of(frame, ticket);
            // SAFETY: nobody has a reference yet.
            unsafe { (*self.wait.get()).write(wait) };
            self.has_begun.set(true);
        }
        self.wait()
    }

    /// Waits, if the wait has begun.
    #[inline]
    fn park(
        &self,
        what: What,
        at: *const (),
        deadline_ns: Option<u64>,
        unlink: impl FnOnce(Outcome),
    ) -> Outcome {
        let Some(wait) = self.wait() else { return Outcome::Cancelled };
        let outcome = wait.park(what, at, deadline_ns);
        unlink(outcome);
        outcome
    }
}

impl Wait {
    /// Gives the CPU up until the outcome is decided. The wait is linked.
    #[inline(never)]
    fn park(&self, what: What, at: *const (), deadline_ns: Option<u64>) -> Outcome {
        let frame = self.waker.frame;
        frame.waits_for.store(what as u8, Ordering::Relaxed);
        frame.waits_at.store(at.addr(), Ordering::Relaxed);
        let outcome = if frame.is_thread.load(Ordering::Relaxed) {
            wait_thread(frame, self, deadline_ns)
        } else if Sys::is_panicking() {
            wait_panicking(frame, self, deadline_ns)
        } else {
            wait_fiber(frame, self, deadline_ns)
        };
        frame.waits_for.store(What::Nothing as u8, Ordering::Relaxed);
        outcome
    }
}

/// Waits in a fiber that unwinds, with its thread: the system counts panics by thread, so the fiber has
/// to go on on this one. Another worker takes over meanwhile.
#[cold]
fn wait_panicking(frame: &'static Frame, wait: &Wait, deadline_ns: Option<u64>) -> Outcome {
    crate::fiber::blocking(|| {
        // Whoever ends the wait reads the mark after it has found the fiber parked, which is after
        // this; and this thread goes on after that.
        let root = frame.root.swap(core::ptr::null_mut(), Ordering::Relaxed);
        frame.is_thread.store(true, Ordering::Relaxed);
        let outcome = wait_thread(frame, wait, deadline_ns);
        frame.is_thread.store(false, Ordering::Relaxed);
        frame.root.store(root, Ordering::Relaxed);
        outcome
    })
}

fn wait_fiber(frame: &'static Frame, wait: &Wait, deadline_ns: Option<u64>) -> Outcome {
    match deadline_ns {
        None => frame.suspend(Switch::Park),
        Some(deadline_ns) => {
            // SAFETY: a fiber runs, so its runtime is there.
            let shared = unsafe { &*frame.shared.load(Ordering::Relaxed) };
            let timer = frame.timer;
            // SAFETY: a frame's timer stays where it is.
            let insert = || unsafe { shared.insert_timer(timer, deadline_ns) };
            shared.timers.park_until(timer, wait, insert, || frame.suspend(Switch::Park));
        }
    }
    wait.settle()
}

/// Looks of a thread at its word before it sleeps: about as long as a fiber needs to answer.
const THREAD_SPINS: u32 = 50;

fn wait_thread(frame: &'static Frame, wait: &Wait, mut deadline_ns: Option<u64>) -> Outcome {
    let mut spins = 0;
    frame.thread_word.wait(&frame.word, wait, || {
        if spins < THREAD_SPINS {
            spins += 1;
            core::hint::spin_loop();
            return false;
        }
        if deadline_ns.is_some_and(|deadline| Sys::now_ns() >= deadline) {
            deadline_ns = None;
            return true;
        }
        Sys::park(frame.thread_word.bits(), 0, deadline_ns);
        false
    })
}

/// The worker this thread is, for the modules beside this one.
#[inline]
pub(crate) fn current_worker() -> Option<&'static Worker> {
    worker::current()
}
