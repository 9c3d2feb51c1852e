//! The two ends of a channel.

use core::fmt;
use core::iter::FusedIterator;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::time::Duration;

use alloc::sync::Arc;

use abi_sync::atomic::{AtomicUsize, Ordering};
use fiber_rt::{Instant, SpinLock, consume_budget};

use crate::chan::{Chan, Ended};
use crate::error::{
    RecvError, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError,
};
use crate::future::{RecvFuture, SendFuture};
use crate::state::State;
use crate::timer::Source;

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

    /// How many values it can hold; `None` if any number.
    pub fn capacity(&self) -> Option<usize> {
        self.chan.capacity
    }

    /// Sends, and waits until there is a place or a receiver.
    #[inline]
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.chan.send(value, None).map_err(|(value, ended)| match ended {
            Ended::Cancelled => SendError::Cancelled(value),
            _ => SendError::Disconnected(value),
        })
    }

    /// Sends as a future does, on any executor: waits in turn with fibers and threads. Dropped before
    /// it is ready, it has not sent, and the value is dropped, unless it had been taken already.
    pub fn send_async(&self, value: T) -> SendFuture<'_, T> {
        SendFuture::new(self, value)
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

    /// How many values it can hold; `None` if any number.
    pub fn capacity(&self) -> Option<usize> {
        match &self.flavor {
            Flavor::Chan(chan) => chan.capacity,
            Flavor::Timer(_) => Some(1),
            Flavor::Never => Some(0),
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

    /// Receives as a future does, on any executor: waits in turn with fibers and threads. Dropped
    /// before it is ready it loses no value: what was handed to it goes back to the front.
    ///
    /// On a timer's receiver the future has the timers of the runtime it is first polled in, and panics
    /// where there is none.
    pub fn recv_async(&self) -> RecvFuture<'_, T> {
        RecvFuture::new(self)
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
            // It holds the none it can.
            Flavor::Never => true,
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
        Iter { receiver: self, is_over: false }
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

/// Values as they come. It is over at the first that does not come.
#[derive(Debug)]
pub struct Iter<'a, T> {
    receiver: &'a Receiver<T>,
    is_over: bool,
}

/// Values that are there now.
#[derive(Debug)]
pub struct TryIter<'a, T>(&'a Receiver<T>);

/// Values as they come, of an end that is owned. It is over at the first that does not come.
#[derive(Debug)]
pub struct IntoIter<T> {
    receiver: Receiver<T>,
    is_over: bool,
}

/// The next value, unless it is over.
#[inline]
fn next<T>(receiver: &Receiver<T>, is_over: &mut bool) -> Option<T> {
    if *is_over {
        return None;
    }
    match receiver.recv() {
        Ok(value) => Some(value),
        Err(_) => {
            *is_over = true;
            None
        }
    }
}

impl<T> Iterator for Iter<'_, T> {
    type Item = T;
    #[inline]
    fn next(&mut self) -> Option<T> {
        next(self.receiver, &mut self.is_over)
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
    #[inline]
    fn next(&mut self) -> Option<T> {
        next(&self.receiver, &mut self.is_over)
    }
}

impl<T> FusedIterator for Iter<'_, T> {}
impl<T> FusedIterator for IntoIter<T> {}

// Nothing a user wrote runs while a channel is being changed: a panic leaves it as it was.
impl<T> UnwindSafe for Sender<T> {}
impl<T> RefUnwindSafe for Sender<T> {}
impl<T> UnwindSafe for Receiver<T> {}
impl<T> RefUnwindSafe for Receiver<T> {}

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
        IntoIter { receiver: self, is_over: false }
    }
}
