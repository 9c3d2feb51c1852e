//! What a fiber can do to itself: yield, sleep, shield, block.

use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Context, Poll};
use core::time::Duration;

use fiber_core::Outcome;

pub use crate::time::{Cancelled, Instant};

use crate::frame::{Frame, Switch};
use crate::shield::shield_at;
use crate::substrate::{Substrate, Sys};
use crate::wait::{current_frame, current_worker, wait};
use crate::what::What;
use crate::worker::current_fiber;

/// This moment.
pub fn now() -> Instant {
    Instant::now()
}

/// Lets others run. Says whether the fiber has been cancelled.
pub fn yield_now() -> Result<(), Cancelled> {
    let Some(frame) = current_fiber() else {
        Sys::relax();
        return Ok(());
    };
    // With nobody else to run there is nothing to switch to. A fiber that unwinds stays on its thread,
    // which counts its panic.
    if current_worker().is_some_and(|worker| worker.has_others()) && !Sys::is_panicking() {
        frame.suspend(Switch::Yield);
    }
    if frame.word.load().sees_cancel() { Err(Cancelled) } else { Ok(()) }
}

/// A number that no other fiber or thread has while the caller lives.
pub fn current_id() -> usize {
    core::ptr::from_ref(current_frame()).addr()
}

/// A number nobody should rely on, for fair choices.
pub fn random() -> u64 {
    match current_worker() {
        Some(worker) => worker.random(),
        None => random_of_threads(),
    }
}

/// SplitMix64, for all threads that are no workers. Not their clock: what is done at a steady pace would
/// draw numbers at a steady distance.
fn random_of_threads() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut x = NEXT.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Counts a channel operation of the caller, and lets others run when it has done many in a row.
#[inline]
pub fn consume_budget() {
    if let Some(worker) = current_worker()
        && worker.spend()
    {
        spent();
    }
}

/// As [`consume_budget`], for a future: pending, to be polled again soon, when its fiber has done many
/// in a row. A poll switches to no other fiber, because whoever polls may be in the middle of something
/// that is of its thread.
pub fn poll_budget(context: &Context<'_>) -> Poll<()> {
    if current_worker().is_some_and(|worker| worker.spend()) {
        context.waker().wake_by_ref();
        return Poll::Pending;
    }
    Poll::Ready(())
}

#[cold]
fn spent() {
    if let Some(frame) = current_fiber().filter(|_| !Sys::is_panicking()) {
        frame.suspend(Switch::Yield);
    }
}

/// Sleeps at least so long.
pub fn sleep(duration: Duration) -> Result<(), Cancelled> {
    sleep_until(Instant::now() + duration)
}

/// Sleeps at least until then.
pub fn sleep_until(deadline: Instant) -> Result<(), Cancelled> {
    match wait(What::Timer, core::ptr::null(), Some(deadline.as_ns()), |_| true, |_| {}) {
        Some(Outcome::Cancelled) => Err(Cancelled),
        _ => Ok(()),
    }
}

/// Whether the fiber has been cancelled, also within a shield.
pub fn is_cancelled() -> bool {
    current_fiber().is_some_and(|frame| frame.word.load().is_cancelled())
}

/// Runs `f` with waits that do not see a cancellation.
pub fn shield<R>(f: impl FnOnce() -> R) -> R {
    shield_at(current_fiber().map(|frame| &frame.word), f)
}

/// Runs `f`, which blocks its thread: another worker takes over what this one has queued, and what
/// becomes runnable by what `f` does. Where `f` waits as a fiber does, the worker is not blocked.
pub fn blocking<R>(f: impl FnOnce() -> R) -> R {
    struct Unblock;
    impl Drop for Unblock {
        fn drop(&mut self) {
            if let (Some(frame), Some(worker)) = (current_fiber(), current_worker()) {
                set_blocking(frame, false);
                worker.shared().unblock(worker);
            }
        }
    }
    let (Some(frame), Some(worker)) = (current_fiber(), current_worker()) else { return f() };
    if set_blocking(frame, true) {
        return f();
    }
    worker.shared().block(worker);
    let _unblock = Unblock;
    f()
}

/// Notes whether the fiber is in a blocking region, and says whether it was. By the fiber itself.
fn set_blocking(frame: &Frame, is_blocking: bool) -> bool {
    // SAFETY: the fiber runs, so this is its owner.
    core::mem::replace(unsafe { &mut (*frame.own.get()).is_blocking }, is_blocking)
}

/// Names the fiber for dumps and traces.
pub fn name(text: &'static str) {
    if let Some(frame) = current_fiber() {
        frame.name.with(|name| *name = text);
        frame.is_named.store(true, Ordering::Relaxed);
        if let Some(worker) = current_worker() {
            worker.shared().names.note(frame.id.load(Ordering::Relaxed), text);
        }
    }
}
