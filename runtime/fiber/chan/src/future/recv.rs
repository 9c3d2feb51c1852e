//! A receive as a future.

use core::cell::UnsafeCell;
use core::fmt;
use core::mem::MaybeUninit;
use core::pin::Pin;
use core::ptr;
use core::task::{Context, Poll};

use fiber_core::Outcome;
use fiber_rt::{Defect, Node, PolledWait, Wait, is_planted, poll_budget};

use crate::chan::Chan;
use crate::ends::{Flavor, Receiver};
use crate::error::RecvError;
use crate::state::Got;
use crate::waiter::{Waiter, wake};

/// How far a receive has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Not begun, or over.
    Idle,
    /// Waits for a value or a sender.
    Linked,
    /// A sender that selects has committed itself to this: its value is on its way.
    Promised,
    /// Waits for that value.
    Taking,
}

/// What [`Receiver::recv_async`] returns: waits until there is a value or never will be. Polled after
/// it was ready it receives the next one.
#[must_use = "a future does nothing unless it is polled"]
pub struct RecvFuture<'a, T> {
    receiver: &'a Receiver<T>,
    stage: Stage,
    wait: PolledWait,
    /// Made when it is first polled: it knows where the value goes to.
    node: Option<Node<Waiter>>,
    slot: UnsafeCell<MaybeUninit<T>>,
    #[cfg(not(loom))]
    sleep: Option<fiber_rt::Sleep>,
}

// SAFETY: a value goes with the future, and the node is reached under the channel's lock.
unsafe impl<T: Send> Send for RecvFuture<'_, T> {}

// SAFETY: nothing is reached through a shared reference.
unsafe impl<T: Send> Sync for RecvFuture<'_, T> {}

type Received<T> = Poll<Result<T, RecvError>>;

impl<'a, T> RecvFuture<'a, T> {
    pub(crate) fn new(receiver: &'a Receiver<T>) -> Self {
        Self {
            receiver,
            stage: Stage::Idle,
            wait: PolledWait::new(),
            node: None,
            slot: UnsafeCell::new(MaybeUninit::uninit()),
            #[cfg(not(loom))]
            sleep: None,
        }
    }

    /// By what a value that comes later is kept for this future.
    fn id(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// One step; `None` if another is to follow at once.
    fn step(&mut self, chan: &Chan<T>, context: &Context<'_>) -> Option<Received<T>> {
        let me = self.id();
        let slot = self.slot.get();
        let node = self.node.get_or_insert_with(|| Waiter::future(me, slot.cast()));
        // SAFETY: pinned with the future.
        let wait = unsafe { Pin::new_unchecked(&mut self.wait) };
        let (outcome, got) = match self.stage {
            Stage::Linked | Stage::Taking => (wait.poll(context), Got::Empty),
            Stage::Idle => {
                let mut got = chan.state.with(|state| state.recv_by_future(me));
                let outcome = if matches!(got, Got::Empty) {
                    wait.begin(context, |wait: &Wait| {
                        wake(chan.state.with(|state| {
                            got = state.recv_by_future(me);
                            if !matches!(got, Got::Empty) {
                                return None;
                            }
                            // SAFETY: pinned; out of the list before the future goes: taken by
                            // whoever completes the wait, or by `drop`.
                            unsafe { state.link_receiver(node, wait) }
                        }));
                        matches!(got, Got::Empty)
                    })
                } else {
                    Poll::Ready(None)
                };
                (outcome, got)
            }
            Stage::Promised => {
                let mut taken = None;
                let outcome = wait.begin(context, |wait: &Wait| {
                    chan.state.with(|state| {
                        taken = state.take(me);
                        if taken.is_none() {
                            node.value.wait.set(wait);
                            // SAFETY: as above.
                            unsafe { state.takers.push(node) };
                        }
                        taken.is_none()
                    })
                });
                match taken {
                    None => (outcome, Got::Empty),
                    Some(taken) => {
                        self.stage = Stage::Idle;
                        chan.state.with(|state| state.take_from_hand()).wake();
                        // A sender that took its promise back leaves it to begin anew.
                        return taken.map(|value| Poll::Ready(Ok(value)));
                    }
                }
            }
        };
        match (outcome, self.stage) {
            (Poll::Pending, Stage::Idle) => self.stage = Stage::Linked,
            (Poll::Pending, Stage::Promised) => self.stage = Stage::Taking,
            (Poll::Pending, _) => {}
            (Poll::Ready(_), Stage::Promised | Stage::Taking) => {
                self.stage = Stage::Promised;
                return None;
            }
            (Poll::Ready(None), _) => return self.got(got),
            (Poll::Ready(Some(Outcome::Data(_))), _) if node.value.is_filled.get() => {
                self.stage = Stage::Idle;
                chan.state.with(|state| state.take_from_hand()).wake();
                // SAFETY: filled before the outcome was decided.
                return Some(Poll::Ready(Ok(unsafe { (*slot).assume_init_read() })));
            }
            (Poll::Ready(Some(Outcome::Data(_))), _) => {
                self.stage = Stage::Promised;
                return None;
            }
            (Poll::Ready(Some(_)), _) => {
                self.stage = Stage::Idle;
                return Some(Poll::Ready(Err(RecvError::Disconnected)));
            }
        }
        Some(Poll::Pending)
    }

    /// What was received without a wait.
    fn got(&mut self, got: Got<T>) -> Option<Received<T>> {
        self.stage = Stage::Idle;
        match got {
            Got::Value(value, waker) => {
                wake(waker);
                Some(Poll::Ready(Ok(value)))
            }
            Got::Promised(waker) => {
                waker.wake();
                self.stage = Stage::Promised;
                None
            }
            Got::Closed | Got::Empty => Some(Poll::Ready(Err(RecvError::Disconnected))),
        }
    }
}

impl<T> Future for RecvFuture<'_, T> {
    type Output = Result<T, RecvError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: nothing that others may look at is moved.
        let this = unsafe { self.get_unchecked_mut() };
        if this.stage == Stage::Idle && poll_budget(context).is_pending() {
            return Poll::Pending;
        }
        match &this.receiver.flavor {
            Flavor::Chan(chan) => loop {
                if let Some(received) = this.step(chan, context) {
                    return received;
                }
            },
            #[cfg(not(loom))]
            Flavor::Timer(source) => {
                // SAFETY: pinned with the future.
                let sleep = unsafe { Pin::new_unchecked(&mut this.sleep) };
                crate::timer::poll_recv(&**source, sleep, context)
            }
            #[cfg(loom)]
            Flavor::Timer(_) => Poll::Pending,
            Flavor::Never => Poll::Pending,
        }
    }
}

impl<T> Drop for RecvFuture<'_, T> {
    fn drop(&mut self) {
        let (Some(chan), Some(node)) = (self.receiver.chan(), &self.node) else { return };
        let me = node.value.select;
        let (stage, slot) = (self.stage, self.slot.get());
        // SAFETY: pinned with the future, if it was ever polled.
        let wait = unsafe { Pin::new_unchecked(&mut self.wait) };
        let outcome = wait.give_up(|outcome| {
            if outcome == Outcome::Cancelled {
                chan.state.with(|state| match stage {
                    // SAFETY: if it is linked, then where the stage says.
                    Stage::Taking => unsafe { state.takers.remove(node) },
                    // SAFETY: as above.
                    _ => unsafe { state.unlink_receiver(node) },
                });
            }
        });
        let is_handed = stage == Stage::Linked && matches!(outcome, Some(Outcome::Data(_)));
        if is_handed && node.value.is_filled.get() {
            // SAFETY: filled before the outcome was decided, and not taken.
            let value = unsafe { (*slot).assume_init_read() };
            if !is_planted(Defect::DropsWhatItHolds) {
                chan.state.with(|state| state.give_back(value)).wake();
            }
        } else if (is_handed || matches!(stage, Stage::Promised | Stage::Taking))
            && !is_planted(Defect::KeepsItsPromise)
        {
            chan.state.with(|state| state.renounce(me)).wake();
        }
    }
}

impl<T> fmt::Debug for RecvFuture<'_, T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "RecvFuture {{ {:?} }}", self.stage)
    }
}
