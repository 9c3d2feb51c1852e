//! Fibers: very many small threads of control on a few workers. One crate for programs.
//!
//! Re-exports the parts: `fiber_rt` (runtime, sleep, yield, locks), `fiber_nursery` (nurseries and
//! join handles) and `fiber_chan` (channels, select). The book's page on fibers teaches them.
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

/// Locks for fibers and threads.
pub mod sync {
    pub use fiber_rt::{Condvar, Mutex, MutexGuard};
}

/// Calls and other operations of capOS that only the fiber waits for.
#[cfg(target_os = "none")]
pub use fiber_rt::ring;
