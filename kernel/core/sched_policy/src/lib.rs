//! The arithmetic of fair scheduling: how much service is owed, and in which order.
//!
//! Nothing here knows threads, CPUs or queues. A queue keeps one [`Policy`] value (its virtual
//! time) and gives it the [`Share`] of each entity that joins, runs or leaves; the policy answers
//! with the place on the virtual time line where the entity's next service starts and ends.
//!
//! Two policies: [`Wfq`], where the earliest virtual finish runs, and [`Eevdf`], where it has to
//! be eligible first. [`AnyPolicy`] is the one of them that was chosen when the machine started.
//!
//! Contract:
//! - a queue has its own virtual time; a value of one queue means nothing in another. What
//!   travels is a [`Lag`]: how much service an entity is owed (or owes), bounded by one
//!   request of its share, so neither credit nor debt can be banked;
//! - no division after a [`Share`] is made: weights are kept as their inverse;
//! - virtual time wraps and is compared by distance, so there is no uptime at which it
//!   overflows; the distance between any two live values is far below half its range
//!   ([`MAX_REQUEST_VIRTUAL_NS`] bounds what a live entity can be ahead);
//! - fractions of a virtual nanosecond are carried by the caller, so that many short
//!   intervals cost exactly what one long interval costs.
#![no_std]

mod any;
mod class;
mod eevdf;
mod policy;
mod reciprocal;
mod share;
mod vtime;
mod weight;
mod wfq;

pub use any::{AnyPolicy, PolicyKind};
pub use class::LatencyClass;
pub use eevdf::Eevdf;
pub use policy::{Policy, Tag};
pub use share::{MAX_REQUEST_VIRTUAL_NS, Share, VirtualStep};
pub use vtime::{Lag, VirtualTime};
pub use weight::{Weight, WeightOutOfRange};
pub use wfq::Wfq;

/// The slice: how long a thread runs while another waits, in ns.
///
/// Long enough that switches cost well under a per mille, short enough that a person does not
/// notice waiting for one.
pub const QUANTUM_NS: u64 = 10_000_000;
