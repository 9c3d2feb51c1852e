//! Run queues of many CPUs: the intrusive tree behind `core_sched`, and the lock around it.
//!
//! - [`Node`]: the part of a thread that queues hold: link, place in the order, scheduling
//!   state, and the CPU it belongs to. It lives as long as the queues do (type-stable memory).
//! - [`Tree`]: the scheduler's only intrusive adapter, a red-black tree of nodes.
//! - [`RunQueue`]: one CPU's queue, its lock, and the hints it publishes.
//!
//! Contract:
//! - a node's scheduling state and link are touched only under the lock of the queue its
//!   `home` names; `home` changes only under the lock of the queue that gives the node away.
//!   Every guard operation checks `home`, so this needs no promise from the caller;
//! - nobody holds two queue locks: a thread is taken out of one queue, then put into another;
//! - a place in the order never changes while the node is linked;
//! - nothing here allocates.
#![no_std]

mod node;
mod queue;
mod tree;

pub use node::{Node, NodeRef};
pub use queue::{Inner, Next, QueueGuard, QueueTurn, RunQueue, lock_home, lock_home_by};
pub use tree::Tree;
