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
//!   decides its outcome under that lock and calls [`Waker::wake`] after it. A future waits the same
//!   way, without blocking: [`PolledWait`].
//! - No address of thread-local storage is kept across a switch: a fiber may go on elsewhere. Every
//!   look goes through a function that is not inlined.
//! - Fibers keep to the same: what belongs to a thread, in a thread-local or a guard of its locks, is not
//!   held across a wait. The types do not say so.
//! - A fiber that unwinds does not switch: the system counts panics by thread. Its waits block the thread,
//!   whose worker is marked blocked.
//! - The floating point control words are not switched: Rust code may not change them.
//! - Frames are never freed, so that a late waker finds a state word that refuses its ticket.
#![cfg_attr(not(loom), no_std)]
#![cfg_attr(target_os = "none", feature(allow_internal_unsafe, linkage, thread_local))]
#![cfg_attr(
    target_os = "none",
    allow(internal_features, reason = "stacks! lets programs without unsafe define a symbol")
)]

extern crate alloc;

mod block_on;
mod condvar;
mod last_waker;
mod list;
mod lock;
mod members;
mod mutex;
mod planted;
mod polled;
mod shield;
mod thread_wait;
mod time;
mod what;

pub use block_on::block_on;
pub use condvar::Condvar;
pub use list::{List, Node};
pub use lock::SpinLock;
#[cfg(loom)]
pub use members::{DropResult, Ended, Linked, Member, Members, wait_for, wait_for_last};
pub use mutex::{Mutex, MutexGuard};
pub use planted::Defect;
pub use planted::is_planted;
#[cfg(loom)]
pub use planted::plant;
pub use polled::PolledWait;
pub use time::{Cancelled, Instant};
#[cfg(loom)]
pub use timer::{Timer, Timers};
pub use what::What;

#[cfg(loom)]
mod model;
#[cfg(loom)]
use model as fiber;
#[cfg(loom)]
use model as wait;
#[cfg(loom)]
pub use model::{
    ModelFiber, Start, Wait, Waker, consume_budget, current_id, poll_budget, random, shield, wait,
    wait_on_thread, wait_timed, wait_unless,
};

#[cfg(not(loom))]
mod deadline;
#[cfg(not(loom))]
mod fiber;
#[cfg(not(loom))]
mod frame;
#[cfg(not(loom))]
mod global_queue;
#[cfg(not(loom))]
mod handle;
#[cfg(not(loom))]
mod idle_worker;
#[cfg(not(loom))]
mod join;
#[cfg(not(loom))]
mod monitor;
#[cfg(not(loom))]
mod observe;
#[cfg(not(loom))]
mod ownership;
#[cfg(not(loom))]
mod packet;
#[cfg(not(loom))]
mod pool;
mod prefetch;
#[cfg(target_os = "none")]
pub mod ring;
#[cfg(not(loom))]
mod root;
#[cfg(not(loom))]
mod runtime;
#[cfg(not(loom))]
mod scope;
#[cfg(not(loom))]
mod sleep;
#[cfg(not(loom))]
mod stack;
mod stacks_macro;
#[cfg(not(loom))]
mod substrate;
#[cfg(not(loom))]
mod thread;
mod timer;
#[cfg(not(loom))]
mod trace;
#[cfg(not(loom))]
mod trace_json;
#[cfg(not(loom))]
mod wait;
mod wheel;
#[cfg(not(loom))]
mod worker;

#[cfg(target_os = "none")]
#[doc(hidden)]
pub mod declare {
    pub use crate::substrate::capos::stacks::Declared;
    pub use capos_rt::stacks as guarded;
}

#[cfg(not(loom))]
pub use {
    deadline::Deadline,
    fiber::{
        blocking, consume_budget, current_id, is_cancelled, name, now, poll_budget, random, shield,
        sleep, sleep_until, yield_now,
    },
    handle::{Handle, JoinError},
    join::Join,
    observe::{Dump, FiberInfo, Stall, Stats, WorkerStats},
    root::{Root, spawn_root},
    runtime::{BuildError, Builder, Runtime},
    scope::{Scope, SpawnError, scope},
    sleep::Sleep,
    substrate::{PanicPayload, SystemError},
    thread::Thread,
    trace::Trace,
    wait::{Start, Wait, Waker, wait, wait_unless},
};
