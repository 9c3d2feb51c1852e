//! Channels from async code: futures that wait in the lists in which fibers and threads wait, in turn
//! with them, on whichever executor polls them.
//!
//! # What a drop means
//!
//! - A send that is dropped before it is ready has not sent, and its value is dropped; unless it was
//!   taken before that, which is what a sender that is late to look cannot know.
//! - A receive that is dropped loses nothing: a value that was handed to it goes back to the front of
//!   the channel, to the first receiver that waits or else before all that is buffered.
//!
//! Cancellation is a fiber's. A future is ended by dropping it, and never says `Cancelled`.

mod recv;
mod send;

pub use recv::RecvFuture;
pub use send::SendFuture;
