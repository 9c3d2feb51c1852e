//! The two ends of a channel.

use core::fmt;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr;
use core::time::Duration;

use alloc::sync::Arc;

use abi_sync::atomic::{AtomicUsize, Ordering};
use fiber_core::Outcome;
use fiber_rt::{Defect, Instant, SpinLock, Wait, What, consume_budget, is_planted, shield, wait};

use crate::error::{
    RecvError, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError,
};
use crate::state::{Got, Sent, State, Waiter};
use crate::timer::Source;

pub(crate) struct Chan<T> {
    pub state: SpinLock<State<T>>,
    senders: AtomicUsize,
    receivers: AtomicUsize,
    capacity: Option<usize>,
}

/// Why a wait at a channel ended without success.
pub(crate) enum Ended {
    Timeout,
    Disconnected,
    Cancelled,
}

/// A channel that holds up to `capacity` values; with 0 a send meets a receive.
pub fn bounded<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    channel(Some(capacity))
}

/// A channel that holds any number of values.
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    channel(None)
}

fn channel<T>(capacity: Option<usize>) -> (Sender<T>, Receiver<T>) {
    let chan = Arc::new(Chan {
        state: SpinLock::new(State::new(capacity)),
        senders: AtomicUsize::new(1),
        receivers: AtomicUsize::new(1),
        capacity,
    });
    (Sender { chan: chan.clone() }, Receiver { flavor: Flavor::Chan(chan) })
}

impl<T> Chan<T> {
    fn address(&self) -> *const () {
        ptr::from_ref(self).cast()
    }

    #[inline]
    fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
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
    fn send(&self, value: T, deadline_ns: Option<u64>) -> Result<(), (T, Ended)> {
        consume_budget();
        match self.try_send(value) {
            Ok(()) => Ok(()),
            Err(TrySendError::Disconnected(value)) => Err((value, Ended::Disconnected)),
            Err(TrySendError::Full(value)) => self.send_waiting(value, deadline_ns),
        }
    }

    fn send_waiting(&self, value: T, deadline_ns: Option<u64>) -> Result<(), (T, Ended)> {
        let mut value = ManuallyDrop::new(value);
        let node = Waiter::plain(ptr::from_mut(&mut value).cast());
        let mut done = None;
        let slot = ptr::from_mut(&mut value);
        let publish = |wait: &Wait| {
            self.state.with(|state| {
                // SAFETY: the value moves into the channel, or comes back.
                match state.send(unsafe { ManuallyDrop::take(&mut *slot) }) {
                    Sent::Full(back) => {
                        // SAFETY: the slot's value has been moved out.
                        unsafe { slot.write(ManuallyDrop::new(back)) };
                        // SAFETY: out of the list before this function ends: taken by whoever
                        // completes the wait, or below.
                        unsafe { state.link_sender(&node, wait) };
                        return true;
                    }
                    Sent::Done(waker) => done = Some(Ok(waker)),
                    Sent::Closed(back) => done = Some(Err(back)),
                }
                false
            })
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
        // Nobody took the value.
        Err((ManuallyDrop::into_inner(value), ended))
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
    fn recv(&self, deadline_ns: Option<u64>) -> Result<T, Ended> {
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
                self.state.with(|state| {
                    if !is_planted(Defect::LinksWithoutLooking) {
                        got = state.recv(me);
                    }
                    let is_linked = matches!(got, Got::Empty);
                    if is_linked {
                        // SAFETY: out of the list before this function ends: taken by whoever
                        // completes the wait, or below.
                        unsafe { state.link_receiver(&node, wait) };
                    }
                    is_linked
                })
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

    fn try_recv(&self) -> Result<T, TryRecvError> {
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

    fn close(&self) -> bool {
        let (is_first, wakers) = self.state.with(State::close);
        wakers.wake();
        is_first
    }

    fn abandon(&self) {
        let (buffer, wakers) = self.state.with(State::abandon);
        wakers.wake();
        drop(buffer);
    }
}

/// The end that sends. Clones share the channel; the last one gone closes it.
pub struct Sender<T> {
    pub(crate) chan: Arc<Chan<T>>,
}

/// The end that receives. Clones share the channel: each value goes to one of them.
pub struct Receiver<T> {
    pub(crate) flavor: Flavor<T>,
}

pub(crate) enum Flavor<T> {
    Chan(Arc<Chan<T>>),
    Timer(Arc<dyn Source<T>>),
    Never,
}

macro_rules! common {
    () => {
        /// How many values it can hold; `None` if any number.
        pub fn capacity(&self) -> Option<usize> {
            self.chan().map_or(Some(1), |chan| chan.capacity)
        }

        /// Closes the channel: sends fail from now on, what was admitted is still received. True
        /// for the call that closed it.
        pub fn close(&self) -> bool {
            self.chan().is_some_and(|chan| chan.close())
        }

        /// Whether it is closed to sends.
        pub fn is_closed(&self) -> bool {
            self.chan().is_some_and(|chan| chan.state.with(|state| state.is_closed()))
        }
    };
}

impl<T> Sender<T> {
    common!();

    fn chan(&self) -> Option<&Chan<T>> {
        Some(&self.chan)
    }

    /// Sends, and waits until there is a place or a receiver.
    #[inline]
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.chan.send(value, None).map_err(|(value, ended)| match ended {
            Ended::Cancelled => SendError::Cancelled(value),
            _ => SendError::Disconnected(value),
        })
    }

    /// Sends if that needs no wait.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        consume_budget();
        self.chan.try_send(value)
    }

    /// As `send`, for no longer than `timeout`.
    pub fn send_timeout(&self, value: T, timeout: Duration) -> Result<(), SendTimeoutError<T>> {
        self.send_deadline(value, Instant::now() + timeout)
    }

    /// As `send`, until `deadline`.
    pub fn send_deadline(&self, value: T, deadline: Instant) -> Result<(), SendTimeoutError<T>> {
        self.chan.send(value, Some(deadline.as_ns())).map_err(|(value, ended)| match ended {
            Ended::Timeout => SendTimeoutError::Timeout(value),
            Ended::Disconnected => SendTimeoutError::Disconnected(value),
            Ended::Cancelled => SendTimeoutError::Cancelled(value),
        })
    }

    /// How many values it holds.
    pub fn len(&self) -> usize {
        self.chan.state.with(|state| state.len())
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it holds as many as it can.
    pub fn is_full(&self) -> bool {
        self.chan.state.with(|state| state.is_full())
    }

    /// Whether both are ends of one channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chan, &other.chan)
    }
}

impl<T> Receiver<T> {
    common!();

    pub(crate) fn chan(&self) -> Option<&Chan<T>> {
        match &self.flavor {
            Flavor::Chan(chan) => Some(chan),
            Flavor::Timer(_) | Flavor::Never => None,
        }
    }

    #[inline]
    fn recv_until(&self, deadline_ns: Option<u64>) -> Result<T, Ended> {
        match &self.flavor {
            Flavor::Chan(chan) => chan.recv(deadline_ns),
            Flavor::Timer(source) => crate::timer::recv(Some(&**source), deadline_ns),
            Flavor::Never => crate::timer::recv(None, deadline_ns),
        }
    }

    /// Receives, and waits until there is a value or never will be.
    #[inline]
    pub fn recv(&self) -> Result<T, RecvError> {
        self.recv_until(None).map_err(|ended| match ended {
            Ended::Cancelled => RecvError::Cancelled,
            _ => RecvError::Disconnected,
        })
    }

    /// Receives if that needs no wait.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        consume_budget();
        match &self.flavor {
            Flavor::Chan(chan) => chan.try_recv(),
            Flavor::Timer(source) => crate::timer::try_recv(&**source).ok_or(TryRecvError::Empty),
            Flavor::Never => Err(TryRecvError::Empty),
        }
    }

    /// As `recv`, for no longer than `timeout`.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        self.recv_deadline(Instant::now() + timeout)
    }

    /// As `recv`, until `deadline`.
    pub fn recv_deadline(&self, deadline: Instant) -> Result<T, RecvTimeoutError> {
        self.recv_until(Some(deadline.as_ns())).map_err(|ended| match ended {
            Ended::Timeout => RecvTimeoutError::Timeout,
            Ended::Disconnected => RecvTimeoutError::Disconnected,
            Ended::Cancelled => RecvTimeoutError::Cancelled,
        })
    }

    /// How many values it holds.
    pub fn len(&self) -> usize {
        match &self.flavor {
            Flavor::Chan(chan) => chan.state.with(|state| state.len()),
            Flavor::Timer(source) => usize::from(source.is_due(Instant::now().as_ns())),
            Flavor::Never => 0,
        }
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it holds as many as it can.
    pub fn is_full(&self) -> bool {
        match &self.flavor {
            Flavor::Chan(chan) => chan.state.with(|state| state.is_full()),
            Flavor::Timer(_) => !self.is_empty(),
            Flavor::Never => false,
        }
    }

    /// Whether both are ends of one channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        match (&self.flavor, &other.flavor) {
            (Flavor::Chan(one), Flavor::Chan(two)) => Arc::ptr_eq(one, two),
            (Flavor::Timer(one), Flavor::Timer(two)) => Arc::ptr_eq(one, two),
            (Flavor::Never, Flavor::Never) => true,
            _ => false,
        }
    }

    /// Whether a sender waits: for models, which have to know that it was admitted.
    #[cfg(loom)]
    pub fn has_parked_sender(&self) -> bool {
        self.chan().is_some_and(|chan| chan.state.with(|state| !state.senders.is_empty()))
    }

    /// Values as they come, until there will be no more or the fiber is cancelled.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter(self)
    }

    /// Values that are there now.
    pub fn try_iter(&self) -> TryIter<'_, T> {
        TryIter(self)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.chan.senders.fetch_add(1, Ordering::Relaxed);
        Self { chan: self.chan.clone() }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // AcqRel: the last one comes after what the others did.
        if self.chan.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.chan.close();
        }
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        let flavor = match &self.flavor {
            Flavor::Chan(chan) => {
                chan.receivers.fetch_add(1, Ordering::Relaxed);
                Flavor::Chan(chan.clone())
            }
            Flavor::Timer(source) => Flavor::Timer(source.clone()),
            Flavor::Never => Flavor::Never,
        };
        Self { flavor }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        // AcqRel: as for senders.
        if let Flavor::Chan(chan) = &self.flavor
            && chan.receivers.fetch_sub(1, Ordering::AcqRel) == 1
        {
            chan.abandon();
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Sender { .. }")
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Receiver { .. }")
    }
}

/// Values as they come.
#[derive(Debug)]
pub struct Iter<'a, T>(&'a Receiver<T>);

/// Values that are there now.
#[derive(Debug)]
pub struct TryIter<'a, T>(&'a Receiver<T>);

/// Values as they come, of an end that is owned.
#[derive(Debug)]
pub struct IntoIter<T>(Receiver<T>);

impl<T> Iterator for Iter<'_, T> {
    type Item = T;
    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<T> Iterator for TryIter<'_, T> {
    type Item = T;
    fn next(&mut self) -> Option<T> {
        self.0.try_recv().ok()
    }
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;
    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<'a, T> IntoIterator for &'a Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;
    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;
    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self)
    }
}
