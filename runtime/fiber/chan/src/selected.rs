//! What a select has chosen, until it is completed.

use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr;

use crate::arm::{Arm, Chosen};
use crate::ends::{Flavor, Receiver, Sender};
use crate::error::{RecvError, SendError};

/// An operation that was chosen; it is completed with the channel it was added with.
///
/// One that is dropped instead is undone: a value goes back to the front of its channel, a place is free
/// again, a receiver that was to get the value goes on waiting.
#[must_use = "a selected operation has to be completed"]
pub struct SelectedOperation<'a> {
    index: usize,
    chosen: ManuallyDrop<Chosen>,
    arm: &'a dyn Arm,
    /// It belongs to the fiber that selected.
    marker: PhantomData<*const ()>,
}

impl<'a> SelectedOperation<'a> {
    #[inline]
    pub(crate) fn new(index: usize, chosen: Chosen, arm: &'a dyn Arm) -> Self {
        Self { index, chosen: ManuallyDrop::new(chosen), arm, marker: PhantomData }
    }
}

impl SelectedOperation<'_> {
    /// The index of the operation.
    pub fn index(&self) -> usize {
        self.index
    }

    #[inline]
    fn complete(self, end: *const ()) -> Chosen {
        assert!(
            ptr::eq(self.arm.address(), end),
            "a selected operation is completed with the channel it was added with"
        );
        let mut this = ManuallyDrop::new(self);
        // SAFETY: taken once: `this` is not dropped.
        unsafe { ManuallyDrop::take(&mut this.chosen) }
    }

    /// Completes a receive.
    ///
    /// # Panics
    /// If `receiver` is not the one that was added.
    #[inline]
    pub fn recv<T>(self, receiver: &Receiver<T>) -> Result<T, RecvError> {
        let value = match (self.complete(receiver.address()), &receiver.flavor) {
            (Chosen::Time(time_ns), Flavor::Timer(source)) => Some(source.value(time_ns)),
            // SAFETY: an end that is where the one was that was added is that one.
            (chosen, Flavor::Chan(chan)) => unsafe { chosen.into_value(chan) },
            _ => None,
        };
        value.ok_or(RecvError::Disconnected)
    }

    /// Completes a send.
    ///
    /// # Panics
    /// If `sender` is not the one that was added.
    #[inline]
    pub fn send<T>(self, sender: &Sender<T>, value: T) -> Result<(), SendError<T>> {
        let Chosen::Pair(pair) = self.complete(sender.address()) else {
            return Err(SendError::Disconnected(value));
        };
        let (sent, wakers) = sender.chan.state.with(|state| match state.is_void(pair) {
            true => (Err(value), state.revoke(pair)),
            false => (Ok(()), state.fulfil(pair, value)),
        });
        wakers.wake();
        sent.map_err(SendError::Disconnected)
    }
}

impl Drop for SelectedOperation<'_> {
    fn drop(&mut self) {
        // SAFETY: not completed, and not used again.
        self.arm.undo(unsafe { ManuallyDrop::take(&mut self.chosen) });
    }
}

impl fmt::Debug for SelectedOperation<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "SelectedOperation {}", self.index)
    }
}
