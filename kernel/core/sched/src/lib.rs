//! Scheduling decisions: what a CPU's queue does with threads, and which CPU a thread goes to.
//!
//! Pure: no clock, no lock, no memory of its own. Time, CPU and identity come in as
//! arguments; an operation answers with a verdict that says what must happen on the machine.
//!
//! What is here:
//! - [`Entity`], the scheduling state of one thread, changed by its queue alone;
//! - [`Queue`], one CPU's queue: order, current thread, direct hand-over slot, accounts. It is
//!   generic over [`Ordered`], the sorted set that holds the waiting threads (an intrusive tree
//!   in `kernel/smp/rq`), and over the ordering policy of `core_sched_policy`;
//! - [`place`]: where a woken or new thread goes; [`balance`]: which CPU an idle one takes work
//!   from, and when a busy one gives some away.
//!
//! Contract:
//! - every call on a queue is made under that queue's lock, and never under two of them. An
//!   entity belongs to the queue of its home CPU and is changed only under that lock; to move
//!   it, it leaves one queue ([`Queue::depart`]) before it joins another;
//! - an error leaves queue and entity as they were;
//! - an entity has one owner: it is in the order, or in the direct slot, or current, or none of
//!   these, and [`Activity`] says which. A queue refuses an entity that another place owns;
//! - every interval of running is charged once, in full, when the thread stops, to the
//!   [`Authority`] it ran under; a CPU's running and idle time add up to all of its time;
//! - whether a thread may run is asked of the caller through one function ([`MayRun`]), so a
//!   budget, a CPU mask or a pending death can veto a choice.
#![no_std]

mod account;
pub mod balance;
mod cpu;
mod direct;
mod entity;
mod error;
mod invariants;
mod ordered;
pub mod place;
mod queue;
mod stop;
mod turn;
mod verdict;

pub use account::Hint;
pub use cpu::{CpuId, CpuSet, MAX_CPUS};
pub use entity::{Activity, Authority, Entity, Snapshot};
pub use error::Error;
pub use ordered::{Entry, Ordered};
pub use queue::Queue;
pub use turn::Turn;
pub use verdict::{
    Blocked, Charge, Departed, DirectOffer, Enqueued, HandedOff, MayRun, Pick, Refusal, Requeue,
    Requeued, Started, YieldedTo,
};
