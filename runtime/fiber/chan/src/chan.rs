//! A channel: its state under its lock, and the waits at it.

use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr;

use abi_sync::atomic::AtomicUsize;
use fiber_core::Outcome;
use fiber_rt::{Defect, SpinLock, Wait, What, consume_budget, is_planted, shield, wait};

use crate::error::{TryRecvError, TrySendError};
use crate::state::{Got, Sent, State};
use crate::waiter::Waiter;

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
                if let Some(waker) = waker {
                    waker.wake();
                }
                Ok(())
            }
            Sent::Full(value) => Err(TrySendError::Full(value)),
            Sent::Closed(value) => Err(TrySendError::Disconnected(value)),
        }
    }

    #[inline]
    pub fn send(&self, value: T, deadline_ns: Option<u64>) -> Result<(), (T, Ended)> {
        consume_budget();
        match self.try_send(value) {
            Ok(()) => Ok(()),
            Err(TrySendError::Disconnected(value)) => Err((value, Ended::Disconnected)),
            Err(TrySendError::Full(value)) => self.send_waiting(value, deadline_ns),
        }
    }

    fn send_waiting(&self, value: T, deadline_ns: Option<u64>) -> Result<(), (T, Ended)> {
        let mut value = ManuallyDrop::new(value);
        // From here on the value is reached by this pointer alone, here and by others.
        let slot = &raw mut value;
        let node = Waiter::plain(slot.cast());
        let mut done = None;
        let publish = |wait: &Wait| {
            let told = self.state.with(|state| {
                // SAFETY: the value moves into the channel, or comes back.
                match state.send(ManuallyDrop::into_inner(unsafe { slot.read() })) {
                    Sent::Full(back) => {
                        // SAFETY: the slot's value has been moved out.
                        unsafe { slot.write(ManuallyDrop::new(back)) };
                        // SAFETY: out of the list before this function ends: taken by whoever
                        // completes the wait, or below.
                        return unsafe { state.link_sender(&node, wait) };
                    }
                    Sent::Done(waker) => done = Some(Ok(waker)),
                    Sent::Closed(back) => done = Some(Err(back)),
                }
                None
            });
            if let Some(waker) = told {
                waker.wake();
            }
            done.is_none()
        };
        let unlink = |outcome| {
            if outcome != Outcome::Data(0) {
                // SAFETY: if it is linked, then as a sender here.
                self.state.with(|state| unsafe { state.unlink_sender(&node) }).wake();
            }
        };
        let outcome = wait(What::Send, self.address(), deadline_ns, publish, unlink);
        let ended = match outcome {
            None => {
                return match done {
                    Some(Err(value)) => Err((value, Ended::Disconnected)),
                    Some(Ok(waker)) => {
                        if let Some(waker) = waker {
                            waker.wake();
                        }
                        Ok(())
                    }
                    None => Ok(()),
                };
            }
            Some(Outcome::Data(_)) => return Ok(()),
            Some(Outcome::Closed(_)) => Ended::Disconnected,
            Some(Outcome::Timeout) => Ended::Timeout,
            Some(Outcome::Cancelled) => Ended::Cancelled,
        };
        // SAFETY: nobody took the value.
        Err((ManuallyDrop::into_inner(unsafe { slot.read() }), ended))
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
                        // SAFETY: whoever completes the wait takes it out, and within a shield
                        // nothing else ends it.
                        unsafe { state.takers.push(&node) };
                    }
                    taken.is_none()
                })
            };
            shield(|| wait(What::Receive, self.address(), None, publish, |_| {}));
            if let Some(taken) = taken {
                return taken;
            }
        }
    }

    #[inline]
    pub fn recv(&self, deadline_ns: Option<u64>) -> Result<T, Ended> {
        consume_budget();
        let me = 0u8;
        match self.state.with(|state| state.recv(ptr::from_ref(&me).addr())) {
            Got::Value(value, waker) => {
                if let Some(waker) = waker {
                    waker.wake();
                }
                Ok(value)
            }
            Got::Closed => Err(Ended::Disconnected),
            Got::Empty => self.recv_waiting(deadline_ns),
            Got::Promised(waker) => {
                waker.wake();
                match self.take_committed(ptr::from_ref(&me).addr()) {
                    Some(value) => Ok(value),
                    None => self.recv_waiting(deadline_ns),
                }
            }
        }
    }

    fn recv_waiting(&self, deadline_ns: Option<u64>) -> Result<T, Ended> {
        let mut slot = MaybeUninit::<T>::uninit();
        let node = Waiter::plain(ptr::from_mut(&mut slot).cast());
        let me = node.value.id();
        loop {
            let mut got = Got::Empty;
            let publish = |wait: &Wait| {
                let told = self.state.with(|state| {
                    if !is_planted(Defect::LinksWithoutLooking) {
                        got = state.recv(me);
                    }
                    if !matches!(got, Got::Empty) {
                        return None;
                    }
                    // SAFETY: out of the list before this function ends: taken by whoever
                    // completes the wait, or below.
                    unsafe { state.link_receiver(&node, wait) }
                });
                if let Some(waker) = told {
                    waker.wake();
                }
                matches!(got, Got::Empty)
            };
            let unlink = |outcome| {
                if matches!(outcome, Outcome::Timeout | Outcome::Cancelled) {
                    // SAFETY: if it is linked, then as a receiver here.
                    self.state.with(|state| unsafe { state.unlink_receiver(&node) });
                }
            };
            let outcome = wait(What::Receive, self.address(), deadline_ns, publish, unlink);
            let ended = match outcome {
                Some(Outcome::Data(_)) if node.value.is_filled.get() => {
                    // SAFETY: filled before the outcome was decided.
                    return Ok(unsafe { slot.assume_init_read() });
                }
                Some(Outcome::Data(_)) => match self.take_committed(me) {
                    Some(value) => return Ok(value),
                    None => continue,
                },
                None => match got {
                    Got::Value(value, waker) => {
                        if let Some(waker) = waker {
                            waker.wake();
                        }
                        return Ok(value);
                    }
                    Got::Promised(waker) => {
                        waker.wake();
                        match self.take_committed(me) {
                            Some(value) => return Ok(value),
                            None => continue,
                        }
                    }
                    Got::Closed | Got::Empty => return Err(Ended::Disconnected),
                },
                Some(Outcome::Closed(_)) => return Err(Ended::Disconnected),
                Some(Outcome::Timeout) => Ended::Timeout,
                Some(Outcome::Cancelled) => Ended::Cancelled,
            };
            return Err(ended);
        }
    }

    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        loop {
            let me = 0u8;
            let me = ptr::from_ref(&me).addr();
            return match self.state.with(|state| state.recv(me)) {
                Got::Value(value, waker) => {
                    if let Some(waker) = waker {
                        waker.wake();
                    }
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
