//! The handle of a fiber.

use fiber_rt::{Cancelled, Handle, Join, JoinError};

/// A spawned fiber. Dropping the handle leaves it to its nursery.
#[derive(Debug)]
pub struct JoinHandle<'scope, T>(pub(crate) Handle<'scope, T>);

impl<T> JoinHandle<'_, T> {
    /// Waits for the fiber's end and takes its result. If the caller is cancelled while it waits, the
    /// handle is gone: the fiber is its nursery's, and its result is dropped.
    pub fn join(self) -> Result<T, JoinError> {
        self.0.join()
    }

    /// Waits for the fiber's end and keeps its result, for `join` to take without waiting. If the caller
    /// is cancelled while it waits, the handle is as good as before, within a `shield` for instance.
    pub fn wait(&mut self) -> Result<(), Cancelled> {
        self.0.wait()
    }

    /// Whether it has ended: then `join` does not wait.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    /// Cancels this fiber: its waits end, unless they are shielded.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

/// `handle.await`, on any executor; dropping that future leaves the fiber to its nursery.
impl<'scope, T> IntoFuture for JoinHandle<'scope, T> {
    type Output = Result<T, JoinError>;
    type IntoFuture = Join<'scope, T>;

    fn into_future(self) -> Join<'scope, T> {
        self.0.into_future()
    }
}
