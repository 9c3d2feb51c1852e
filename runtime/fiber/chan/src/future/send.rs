//! A send as a future.

use core::cell::UnsafeCell;
use core::fmt;
use core::mem::MaybeUninit;
use core::pin::Pin;
use core::task::{Context, Poll};

use fiber_core::Outcome;
use fiber_rt::{Defect, Node, PolledWait, Wait, is_planted, poll_budget};

use crate::ends::Sender;
use crate::error::SendError;
use crate::state::{Sent, State};
use crate::waiter::{Waiter, wake};

/// How far a send has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The value is here, and nobody knows of it.
    New,
    /// The value is here, for whoever completes the wait.
    Linked,
    /// The value is the channel's, or has come back.
    Over,
}

/// What [`Sender::send_async`] returns: waits until there is a place or a receiver.
#[must_use = "a future does nothing unless it is polled"]
pub struct SendFuture<'a, T> {
    sender: &'a Sender<T>,
    stage: Stage,
    wait: PolledWait,
    /// Made when it is first linked: it knows where the value is.
    node: Option<Node<Waiter>>,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the value goes with the future, and the node is reached under the channel's lock.
unsafe impl<T: Send> Send for SendFuture<'_, T> {}

// SAFETY: nothing is reached through a shared reference.
unsafe impl<T: Send> Sync for SendFuture<'_, T> {}

impl<'a, T> SendFuture<'a, T> {
    pub(crate) fn new(sender: &'a Sender<T>, value: T) -> Self {
        let value = UnsafeCell::new(MaybeUninit::new(value));
        Self { sender, stage: Stage::New, wait: PolledWait::new(), node: None, value }
    }

    /// Takes the value out.
    ///
    /// # Safety
    /// It is there, and counts as gone from now on.
    unsafe fn take(&mut self) -> T {
        self.stage = Stage::Over;
        // SAFETY: by the caller.
        unsafe { self.value.get_mut().assume_init_read() }
    }
}

impl<T> Future for SendFuture<'_, T> {
    type Output = Result<(), SendError<T>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: nothing that others may look at is moved.
        let this = unsafe { self.get_unchecked_mut() };
        let chan = &this.sender.chan;
        // SAFETY: pinned with the future.
        let mut wait = unsafe { Pin::new_unchecked(&mut this.wait) };
        let ended = match this.stage {
            Stage::Over => return Poll::Ready(Ok(())),
            Stage::Linked => wait.poll(context),
            Stage::New => {
                if poll_budget(context).is_pending() {
                    return Poll::Pending;
                }
                let slot = this.value.get();
                let node = this.node.insert(Waiter::plain(slot.cast()));
                // SAFETY: the value is there, and is put back if it is not sent.
                let attempt = |state: &mut State<T>| match state
                    .send(unsafe { (*slot).assume_init_read() })
                {
                    Sent::Full(back) => {
                        // SAFETY: the place is empty.
                        unsafe { (*slot).write(back) };
                        None
                    }
                    done => Some(done),
                };
                let mut sent = chan.state.with(attempt);
                let ended = if sent.is_some() {
                    Poll::Ready(None)
                } else {
                    wait.as_mut().begin(context, |wait: &Wait| {
                        wake(chan.state.with(|state| {
                            sent = attempt(state);
                            if sent.is_some() {
                                return None;
                            }
                            // SAFETY: pinned; out of the list before the future goes: taken by
                            // whoever completes the wait, or by `drop`.
                            unsafe { state.link_sender(node, wait) }
                        }));
                        sent.is_none()
                    })
                };
                match sent {
                    Some(Sent::Done(waker)) => {
                        this.stage = Stage::Over;
                        wake(waker);
                        return Poll::Ready(Ok(()));
                    }
                    Some(Sent::Closed(value) | Sent::Full(value)) => {
                        this.stage = Stage::Over;
                        return Poll::Ready(Err(SendError::Disconnected(value)));
                    }
                    None => {
                        this.stage = Stage::Linked;
                        ended
                    }
                }
            }
        };
        match ended {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Outcome::Data(_))) => {
                this.stage = Stage::Over;
                Poll::Ready(Ok(()))
            }
            // SAFETY: nobody took the value.
            Poll::Ready(_) => Poll::Ready(Err(SendError::Disconnected(unsafe { this.take() }))),
        }
    }
}

impl<T> Drop for SendFuture<'_, T> {
    fn drop(&mut self) {
        // SAFETY: pinned with the future, if it was ever polled.
        let wait = unsafe { Pin::new_unchecked(&mut self.wait) };
        let outcome = wait.give_up(|outcome| {
            if let (false, Some(node)) = (outcome == Outcome::Data(0), &self.node) {
                // SAFETY: if it is linked, then as a sender here.
                self.sender.chan.state.with(|state| unsafe { state.unlink_sender(node) }).wake();
            }
        });
        let is_ours = self.stage == Stage::New
            || self.stage == Stage::Linked && !matches!(outcome, Some(Outcome::Data(_)));
        if is_ours || is_planted(Defect::DropsWhatWasTaken) {
            // SAFETY: nobody took the value.
            drop(unsafe { self.take() });
        }
    }
}

impl<T> fmt::Debug for SendFuture<'_, T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "SendFuture {{ {:?} }}", self.stage)
    }
}
