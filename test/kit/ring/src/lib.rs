//! Ring operations by hand, for tests of the ring itself.
//!
//! A test borrows its thread's ring with [`raw`] and pushes, enters and pops as it likes; what it
//! finds wrong is collected and told when the ring is given back, because telling needs the ring.
//! [`raw`] also checks that each SQE pushed was answered by one CQE, and none by two.
//!
//! * [`Raw`]: the ring. [`sqe`]: SQEs by what they ask for. [`Random`]: numbers from a seed.
#![no_std]

mod random;
mod raw;
pub mod sqe;

pub use plain_schema::plain;
pub use random::Random;
pub use raw::{Got, Log, Raw, borrow, raw};
