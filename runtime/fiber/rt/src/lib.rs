//! The fiber runtime: workers, stacks, timers, scopes and locks on a substrate.
//!
//! In here: [`Runtime`] and its workers; [`wait`], through which every wait goes, and [`Waker`],
//! through which every wake goes; [`scope`], fibers that may borrow; [`Mutex`] and [`Condvar`];
//! figures, dumps and traces. Not in here: channels (`fiber_chan`), the policy of nurseries
//! (`fiber_nursery`), and the decisions themselves (`fiber_core`).
//!
//! # Contract
//!
//! - A wait is published under its waitable's lock, by the closure given to [`wait`]; whoever ends it
//!   decides its outcome under that lock and calls [`Waker::wake`] after it.
//! - No address of thread-local storage is kept across a switch: a fiber may go on elsewhere. Every
//!   look goes through a function that is not inlined.
//! - The floating point control words are not switched: Rust code may not change them.
//! - Frames are never freed, so that a late waker finds a state word that refuses its ticket.
#![cfg_attr(not(loom), no_std)]

extern crate alloc;

mod condvar;
mod fiber;
mod frame;
mod global_queue;
mod list;
mod lock;
mod monitor;
mod mutex;
mod observe;
mod pool;
mod runtime;
mod scope;
mod stack;
mod substrate;
mod timer;
mod trace;
mod wait;
mod worker;

pub use condvar::Condvar;
pub use fiber::{
    Cancelled, Instant, blocking, consume_budget, current_id, is_cancelled, name, now, random,
    shield, sleep, sleep_until, yield_now,
};
pub use list::{List, Node};
pub use lock::SpinLock;
pub use mutex::{Mutex, MutexGuard};
pub use observe::{Dump, FiberInfo, Stall, Stats, WorkerStats};
pub use runtime::{BuildError, Builder, Runtime};
pub use scope::{Deadline, Handle, JoinError, Root, Scope, SpawnError, scope, spawn_root};
pub use substrate::{PanicPayload, SystemError};
pub use trace::Trace;
pub use wait::{Wait, Waker, What, wait};
