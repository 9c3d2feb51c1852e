//! The nursery itself.

use core::fmt;
use core::time::Duration;

use fiber_rt::{Deadline, Handle, Instant, Scope, SpinLock, SystemError, scope, spawn_root};

use crate::handle::JoinHandle;

/// Why a fiber was not spawned; the closure comes back.
pub struct SpawnError<F> {
    closure: F,
    /// What the system said; none if the nursery is closing.
    reason: Option<SystemError>,
}

impl<F> SpawnError<F> {
    /// The closure.
    pub fn into_inner(self) -> F {
        self.closure
    }

    /// Whether the nursery is closing; else the system has no stack for the fiber.
    pub fn is_closing(&self) -> bool {
        self.reason.is_none()
    }

    fn of(error: fiber_rt::SpawnError<F>) -> Self {
        match error {
            fiber_rt::SpawnError::Closing(closure) => Self { closure, reason: None },
            fiber_rt::SpawnError::System(closure, reason) => Self { closure, reason: Some(reason) },
        }
    }
}

impl<F> fmt::Display for SpawnError<F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            None => out.write_str("the nursery is closing and takes no new fibers"),
            Some(error) => error.fmt(out),
        }
    }
}

impl<F> fmt::Debug for SpawnError<F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl<F> core::error::Error for SpawnError<F> {}

/// Where the fibers of one block live.
pub struct Nursery<'scope, 'env: 'scope> {
    scope: &'scope Scope<'scope, 'env>,
    deadline: SpinLock<Option<Deadline<'scope>>>,
}

/// Runs `f` with a nursery, and returns when all of its fibers have ended.
///
/// Fibers may borrow whatever lives outside of the call. A panic of `f` cancels them and goes on
/// when they have ended.
///
/// # Panics
/// Where no fiber runs; and with the first panic of a fiber that nobody joined.
pub fn nursery<'env, R>(f: impl for<'scope> FnOnce(&'scope Nursery<'scope, 'env>) -> R) -> R {
    scope(|scope| f(scope.keep(Nursery { scope, deadline: SpinLock::new(None) })))
}

/// Spawns a fiber that `Runtime::run` waits for.
///
/// # Panics
/// Where no fiber runs, or the system has no stack for it.
pub fn spawn<T, F>(f: F) -> JoinHandle<'static, T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    handle_of(spawn_root(f))
}

/// A handle for better or worse: a fiber that was not let in counts as cancelled before it ran.
fn handle_of<T, F>(spawned: Result<Handle<'_, T>, fiber_rt::SpawnError<F>>) -> JoinHandle<'_, T> {
    match spawned {
        Ok(handle) => JoinHandle(handle),
        Err(error) => {
            let error = SpawnError::of(error);
            assert!(error.is_closing(), "no fiber was spawned: {error}");
            JoinHandle(Handle::void())
        }
    }
}

impl<'scope, 'env> Nursery<'scope, 'env> {
    /// Spawns a fiber. If the nursery is closing it does not run, and its join says `Cancelled`.
    ///
    /// # Panics
    /// If the system has no stack for it; the message names the limit.
    #[inline]
    pub fn spawn<T, F>(&'scope self, f: F) -> JoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        handle_of(self.scope.spawn(f))
    }

    /// Spawns a fiber, or gives the closure back.
    pub fn try_spawn<T, F>(&'scope self, f: F) -> Result<JoinHandle<'scope, T>, SpawnError<F>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        self.scope.spawn(f).map(JoinHandle).map_err(SpawnError::of)
    }

    /// Cancels every fiber in the nursery; no new one gets in.
    pub fn cancel(&self) {
        self.scope.cancel();
    }

    /// Cancels it at that time, unless it has ended before. A later call replaces the deadline of an
    /// earlier one, by one that may be sooner or later.
    pub fn cancel_at(&'scope self, deadline: Instant) {
        let deadline = Deadline::new(self.scope, deadline.as_ns());
        let earlier = self.deadline.with(|place| place.replace(deadline));
        // With the lock free: one that expires at this moment is waited for.
        drop(earlier);
    }

    /// Cancels it after that time, as [`cancel_at`](Self::cancel_at).
    pub fn cancel_after(&'scope self, duration: Duration) {
        self.cancel_at(Instant::now() + duration);
    }

    /// Whether it has been cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.scope.is_cancelled()
    }

    /// How many of its fibers have not ended.
    pub fn live(&self) -> usize {
        self.scope.live()
    }
}

impl fmt::Debug for Nursery<'_, '_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "nursery of {} fibers", self.live())
    }
}
