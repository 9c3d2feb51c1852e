//! A channel: its state under its lock, and the waits at it.

use core::mem::MaybeUninit;
use core::ptr;

use abi_sync::atomic::AtomicUsize;
use fiber_core::Outcome;
use fiber_rt::{
    Defect, SpinLock, Start, Wait, What, consume_budget, is_planted, shield, wait, wait_unless,
};

use crate::error::{TryRecvError, TrySendError};
use crate::state::{Got, Sent, State};
use crate::waiter::{LazyNode, Waiter, wake};

pub(crate) struct Chan<T> {
    pub state: SpinLock<State<T>>,
    pub senders: AtomicUsize,
    pub receivers: AtomicUsize,
    pub capacity: Option<usize>,
}

/// Why a wait at a channel ended without success.
pub(crate) enum Ended {
    Timeout,
    Disconnected,
    Cancelled,
}

impl<T> Chan<T> {
    fn address(&self) -> *const () {
        ptr::from_ref(self).cast()
    }

    #[inline]
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        match self.state.with(|state| state.send(value)) {
            Sent::Done(waker) => {
                wake(waker);
                Ok(())
            }
            Sent::Full(value) => Err(TrySendError::Full(value)),
            Sent::Closed(value) => Err(TrySendError::Disconnected(value)),
        }
    }

    /// Sends; waits for a place or a receiver, if there is none.
    #[inline]
    pub fn send(&self, value: T, deadline_ns: Option<u64>) -> Result<(), (T, Ended)> {
        consume_budget();
        let mut value = MaybeUninit::new(value);
        // From here on the value is reached by this pointer alone, here and by others.
        let slot = value.as_mut_ptr();
        let node = LazyNode::new();
        let attempt = |start: &Start| {
            let mut told = None;
            let sent = self.state.with(|state| {
                // SAFETY: the value moves into the channel, or comes back.
                match state.send(unsafe { slot.read() }) {
                    Sent::Done(waker) => Some(Ok(waker)),
                    Sent::Closed(back) => Some(Err(back)),
                    Sent::Full(back) => {
                        // SAFETY: the slot's value has been moved out.
                        unsafe { slot.write(back) };
                        if let Some(wait) = start.begin() {
                            // SAFETY: out of the list before this function ends: taken by whoever
                            // completes the wait, or by `unlink`.
                            told = unsafe { state.link_sender(node.fill(slot.cast()), wait) };
                        }
                        None
                    }
                }
            });
            wake(told);
            sent
        };
        let unlink = |outcome| {
            if outcome != Outcome::Data(0) {
                // SAFETY: it was linked, as a sender here.
                self.state.with(|state| unsafe { state.unlink_sender(node.get()) }).wake();
            }
        };
        let ended = match wait_unless(What::Send, self.address(), deadline_ns, attempt, unlink) {
            Ok(Ok(waker)) => {
                wake(waker);
                return Ok(());
            }
            Ok(Err(back)) => return Err((back, Ended::Disconnected)),
            Err(Outcome::Data(_)) => return Ok(()),
            Err(Outcome::Closed(_)) => Ended::Disconnected,
            Err(Outcome::Timeout) => Ended::Timeout,
            Err(Outcome::Cancelled) => Ended::Cancelled,
        };
        // SAFETY: nobody took the value.
        Err((unsafe { slot.read() }, ended))
    }

    /// The value that was committed to the receiver `me`, as soon as it is there; `None` if it was
    /// taken back.
    pub fn take_committed(&self, me: usize) -> Option<T> {
        loop {
            if let Some(taken) = self.state.with(|state| state.take(me)) {
                return taken;
            }
            let node = Waiter::select(me, 0);
            let mut taken = None;
            // The other side has committed itself too: it is on its way.
            let publish = |wait: &Wait| {
                self.state.with(|state| {
                    taken = state.take(me);
                    if taken.is_none() {
                        node.value.wait.set(wait);
                        // SAFETY: out of the list before this turn ends: taken by whoever completes
                        // the wait, or by `unlink`.
                        unsafe { state.takers.push(&node) };
                    }
                    taken.is_none()
                })
            };
            let unlink = |outcome| {
                if outcome != Outcome::Data(0) {
                    // SAFETY: if it is linked, then here.
                    self.state.with(|state| unsafe { state.takers.remove(&node) });
                }
            };
            shield(|| wait(What::Receive, self.address(), None, publish, unlink));
            if let Some(taken) = taken {
                return taken;
            }
        }
    }

    /// Receives; waits for a value, if there is none.
    #[inline]
    pub fn recv(&self, deadline_ns: Option<u64>) -> Result<T, Ended> {
        consume_budget();
        let mut value = MaybeUninit::<T>::uninit();
        let slot = value.as_mut_ptr();
        let node = LazyNode::new();
        let me = node.id();
        loop {
            let attempt = |start: &Start| {
                let mut told = None;
                // A defect: the look and the link under two locks.
                let seen = is_planted(Defect::LinksWithoutLooking)
                    .then(|| self.state.with(|state| state.recv(me)));
                let got = self.state.with(|state| {
                    match seen.unwrap_or_else(|| state.recv(me)) {
                        Got::Empty => {
                            if let Some(wait) = start.begin() {
                                // SAFETY: out of the list before this function ends: taken by
                                // whoever completes the wait, or by `unlink`.
                                told = unsafe { state.link_receiver(node.fill(slot.cast()), wait) };
                            }
                            None
                        }
                        got => Some(got),
                    }
                });
                wake(told);
                got
            };
            let unlink = |outcome| {
                if matches!(outcome, Outcome::Timeout | Outcome::Cancelled) {
                    // SAFETY: it was linked, as a receiver here.
                    self.state.with(|state| unsafe { state.unlink_receiver(node.get()) });
                }
            };
            let what = What::Receive;
            let promise = match wait_unless(what, self.address(), deadline_ns, attempt, unlink) {
                Ok(Got::Value(value, waker)) => {
                    wake(waker);
                    return Ok(value);
                }
                Ok(Got::Promised(waker)) => Some(waker),
                Ok(Got::Closed | Got::Empty) | Err(Outcome::Closed(_)) => {
                    return Err(Ended::Disconnected);
                }
                // SAFETY: it was linked, or nobody would have decided so; a filled slot was filled
                // before that.
                Err(Outcome::Data(_)) => match unsafe { node.get() }.value.is_filled.get() {
                    // SAFETY: as above.
                    true => return Ok(unsafe { slot.read() }),
                    false => None,
                },
                Err(Outcome::Timeout) => return Err(Ended::Timeout),
                Err(Outcome::Cancelled) => return Err(Ended::Cancelled),
            };
            wake(promise);
            if let Some(value) = self.take_committed(me) {
                return Ok(value);
            }
        }
    }

    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        loop {
            // Aligned: an id is even.
            let me = 0_usize;
            let me = ptr::from_ref(&me).addr();
            return match self.state.with(|state| state.recv(me)) {
                Got::Value(value, waker) => {
                    wake(waker);
                    Ok(value)
                }
                Got::Closed => Err(TryRecvError::Disconnected),
                Got::Empty => Err(TryRecvError::Empty),
                Got::Promised(waker) => {
                    waker.wake();
                    match self.take_committed(me) {
                        Some(value) => Ok(value),
                        None => continue,
                    }
                }
            };
        }
    }

    pub fn close(&self) -> bool {
        let (is_first, wakers) = self.state.with(State::close);
        wakers.wake();
        is_first
    }

    pub fn abandon(&self) {
        let (buffer, wakers) = self.state.with(State::abandon);
        wakers.wake();
        drop(buffer);
    }
}
