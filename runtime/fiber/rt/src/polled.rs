//! A wait that is polled: of a future, whichever executor runs it.
//!
//! It goes the way every wait goes: announced by the state word, published under the waitable's lock,
//! decided by its outcome. What differs is who is woken, a [`core::task::Waker`], and that nothing
//! blocks: the future commits the park itself and returns. It may see its outcome before whoever
//! decided it has come to wake it; then it claims its frame, and the waker finds its ticket stale.
//!
//! Decided in ADR 181.

use core::marker::PhantomPinned;
use core::pin::Pin;
use core::task::{Context, Poll};

use fiber_core::{CommitVerdict, Outcome, ParkVerdict, State};

#[cfg(not(loom))]
use crate::last_waker::{give_future_frame, take_future_frame};
use crate::planted::{Defect, is_planted};
use crate::wait::{Frame, Wait, check};
#[cfg(loom)]
use crate::wait::{give_future_frame, take_future_frame};

/// The waits of a future, one after the other. Pinned with the future, because others look at the
/// wait that is under way; whoever begins one sees to it that it is over, or given up, before this is
/// dropped.
#[derive(Default)]
pub struct PolledWait {
    frame: Option<&'static Frame>,
    wait: Option<Wait>,
    _pinned: PhantomPinned,
}

impl PolledWait {
    /// No wait.
    pub const fn new() -> Self {
        Self { frame: None, wait: None, _pinned: PhantomPinned }
    }

    /// Whether a wait is under way.
    pub fn is_under_way(&self) -> bool {
        self.wait.is_some()
    }

    /// The timer of the wait that is under way.
    #[cfg(not(loom))]
    pub(crate) fn timer(&self) -> Option<&'static crate::timer::Timer> {
        self.wait.as_ref().map(Wait::timer)
    }

    /// Begins a wait; `publish` is as for [`wait`](crate::wait). Ready if nothing is waited for or the
    /// outcome is decided already; else `context` is told when [`poll`](Self::poll) is to be called.
    pub fn begin(
        self: Pin<&mut Self>,
        context: &Context<'_>,
        publish: impl FnOnce(&Wait) -> bool,
    ) -> Poll<Option<Outcome>> {
        // SAFETY: nothing is moved.
        let this = unsafe { self.get_unchecked_mut() };
        debug_assert!(this.wait.is_none(), "one wait at a time");
        let frame = *this.frame.get_or_insert_with(take_future_frame);
        // Before the wait begins: what a user wrote runs in here, and may panic.
        set_waker(frame, context);
        // Nobody cancels a future's frame: to end a future is to drop it.
        let Some(ParkVerdict::Parking(ticket)) = check(frame.word.begin_park()) else {
            return Poll::Ready(None);
        };
        if !publish(this.wait.insert(Wait::of(frame, ticket))) {
            this.wait = None;
            let _ = check(frame.word.abort_park());
            return Poll::Ready(None);
        }
        match check(frame.word.commit_park()) {
            Some(CommitVerdict::Resume) => Poll::Ready(this.end()),
            _ => Poll::Pending,
        }
    }

    /// Looks at the wait that is under way; `None` if there is none.
    pub fn poll(self: Pin<&mut Self>, context: &Context<'_>) -> Poll<Option<Outcome>> {
        // SAFETY: nothing is moved while others may look at it.
        let this = unsafe { self.get_unchecked_mut() };
        if let (Some(frame), Some(wait)) = (this.frame, &this.wait)
            && wait.is_open()
        {
            if !is_planted(Defect::LooksBeforeItRegisters) {
                set_waker(frame, context);
            }
            // After the waker is set: whoever decides later than this look wakes it.
            if wait.is_open() {
                if is_planted(Defect::LooksBeforeItRegisters) {
                    set_waker(frame, context);
                }
                return Poll::Pending;
            }
        }
        Poll::Ready(this.end())
    }

    /// Gives the wait up, if one is under way: `Cancelled` unless another outcome was decided before.
    /// `unlink` is as for [`wait`](crate::wait).
    pub fn give_up(self: Pin<&mut Self>, unlink: impl FnOnce(Outcome)) -> Option<Outcome> {
        // SAFETY: nothing is moved while others may look at it.
        let this = unsafe { self.get_unchecked_mut() };
        unlink(this.wait.as_ref()?.settle());
        this.end()
    }

    /// Ends a wait that is decided and unlinked.
    fn end(&mut self) -> Option<Outcome> {
        let wait = self.wait.take()?;
        // Whoever decided it may not have woken it yet, and then does not have to.
        wait.waker().wake_quietly();
        if let Some(frame) = self.frame
            && frame.word.load().state() == State::Runnable
        {
            let _ = check(frame.word.dispatch());
        }
        Some(wait.settle())
    }
}

fn set_waker(frame: &'static Frame, context: &Context<'_>) {
    if let Some(waker) = frame.last_waker() {
        waker.set(context.waker());
    }
}

impl Drop for PolledWait {
    fn drop(&mut self) {
        debug_assert!(self.wait.is_none(), "a wait that others look at goes");
        if let Some(frame) = self.frame {
            if let Some(waker) = frame.last_waker() {
                waker.clear();
            }
            give_future_frame(frame);
        }
    }
}

impl core::fmt::Debug for PolledWait {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let waker = self.wait.as_ref().map(Wait::waker);
        out.debug_tuple("PolledWait").field(&waker).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    extern crate std;

    use core::pin::pin;
    use core::ptr;
    use core::task::{RawWaker, RawWakerVTable, Waker};
    use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};

    use super::*;

    /// What a user wrote runs when a waker is kept, and may panic: the wait has not begun then.
    #[test]
    fn a_waker_that_cannot_be_kept_leaves_no_wait() {
        static BOMB: RawWakerVTable =
            RawWakerVTable::new(|_| panic_any("a clone"), |_| {}, |_| {}, |_| {});
        // SAFETY: its functions do nothing with the data.
        let bomb = unsafe { Waker::from_raw(RawWaker::new(ptr::null(), &BOMB)) };
        let mut wait = pin!(PolledWait::new());
        let begun = catch_unwind(AssertUnwindSafe(|| {
            wait.as_mut().begin(&Context::from_waker(&bomb), |_| true)
        }));
        assert!(begun.is_err());
        assert!(!wait.is_under_way());
        let context = Context::from_waker(Waker::noop());
        assert_eq!(wait.as_mut().begin(&context, |_| true), Poll::Pending);
        assert_eq!(wait.as_mut().give_up(|_| {}), Some(Outcome::Cancelled));
    }
}
