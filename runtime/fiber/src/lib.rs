//! Fibers: very many small threads of control on a few workers. One crate for programs.
//!
//! Re-exports the parts: `fiber_rt` (runtime, sleep, yield, locks), `fiber_nursery` (nurseries and
//! join handles) and `fiber_chan` (channels, select). The book's page on fibers teaches them.
//!
//! # Contract
//!
//! A fiber may be on another thread after a wait. What belongs to a thread is not held across one: no
//! reference into a thread-local, no `Rc` that one shares, no guard of a `std` lock. The compiler does not
//! see it: what is not `Send` may live on a fiber's stack.
#![no_std]

pub use fiber_chan::{select, select_biased};
pub use fiber_nursery::{JoinError, JoinHandle, Nursery, SpawnError, nursery, spawn};
pub use fiber_rt::{
    BuildError, Builder, Cancelled, Dump, FiberInfo, Instant, Runtime, Stall, Stats, Thread, Trace,
    WorkerStats, blocking, is_cancelled, name, shield, sleep, sleep_until, stacks, yield_now,
};

/// Channels, with the names of crossbeam-channel.
pub mod channel {
    pub use fiber_chan::{
        IntoIter, Iter, ReadyTimeoutError, Receiver, RecvError, RecvTimeoutError, Select,
        SelectTimeoutError, SelectedOperation, SendError, SendTimeoutError, Sender, TryIter,
        TryReadyError, TryRecvError, TrySelectError, TrySendError, after, at, bounded, never,
        select, select_biased, tick, unbounded,
    };
}

/// One value, once.
pub use fiber_chan::oneshot;

/// Futures: run by fibers, and channels, fibers' ends and time as futures for any executor.
///
/// They wait in the lists in which fibers and threads wait, in turn with them. Channels have
/// [`send_async`](channel::Sender::send_async) and [`recv_async`](channel::Receiver::recv_async), a
/// [`oneshot`] has `recv_async`, a [`JoinHandle`] is awaited as it is.
pub mod future {
    pub use fiber_chan::future::{RecvFuture, SendFuture};
    pub use fiber_rt::{Join, Sleep, block_on};

    use core::time::Duration;

    use crate::Instant;

    /// Sleeps at least so long, by the timers of the runtime this is called or first polled in; for
    /// other executors there is [`Runtime::sleep`](crate::Runtime::sleep).
    pub fn sleep(duration: Duration) -> Sleep {
        sleep_until(Instant::now() + duration)
    }

    /// As [`sleep`], until then.
    pub fn sleep_until(until: Instant) -> Sleep {
        Sleep::new(until)
    }
}

/// Locks for fibers and threads.
pub mod sync {
    pub use fiber_rt::{Condvar, Mutex, MutexGuard};
}

/// Calls and other operations of capOS that only the fiber waits for.
#[cfg(target_os = "none")]
pub use fiber_rt::ring;
