//! Channels with the names and meanings of crossbeam-channel, for fibers and threads.
//!
//! In here: [`bounded`], [`unbounded`] and their ends; [`after`], [`at`], [`tick`], [`never`];
//! [`Select`], [`select!`] and [`select_biased!`]; [`oneshot`]; [`future`], all of it from async code.
//! Not in here: parking and waking, which is `fiber_rt`'s;
//! no channel touches a run queue or a worker.
//!
//! # Contract
//!
//! - A channel's state is under its one lock: admission, matching, close. Nothing a user wrote runs
//!   under it, neither a drop nor a clone.
//! - Whoever ends a wait moves the value first, decides the outcome, both under the lock, and wakes
//!   after it.
//! - Close keeps what was admitted: buffered values, then those of senders that wait, in order.
//! - The lifetime of a channel has nothing to do with nurseries or their cancellation.
#![cfg_attr(not(loom), no_std)]

extern crate alloc;

mod arm;
mod buffer;
mod chan;
mod commit;
mod ends;
mod error;
pub mod future;
mod in_hand;
pub mod oneshot;
mod select;
mod select_macro;
mod selected;
mod state;
mod timer;
mod waiter;

pub use ends::{IntoIter, Iter, Receiver, Sender, TryIter, bounded, unbounded};
pub use error::{
    ReadyTimeoutError, RecvError, RecvTimeoutError, SelectTimeoutError, SendError,
    SendTimeoutError, TryReadyError, TryRecvError, TrySelectError, TrySendError,
};
pub use select::Select;
pub use selected::SelectedOperation;
#[cfg(loom)]
pub use timer::{Tell, told};
pub use timer::{after, at, never, tick};

/// What `select!` says to a receive arm when the fiber was cancelled.
#[doc(hidden)]
pub fn __recv_cancelled<T>(_: &Receiver<T>) -> Result<T, RecvError> {
    Err(RecvError::Cancelled)
}

/// An index `select!` did not hand out.
#[doc(hidden)]
#[expect(clippy::unreachable, reason = "a selected index is one of the macro's own")]
pub fn __impossible() -> ! {
    unreachable!()
}
