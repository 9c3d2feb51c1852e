//! Endpoint IPC as a state machine: which caller and receiver meet, and how each call ends, once.
//!
//! A [`Service`] is everything one process serves: its endpoints, the calls that wait at them
//! or are being served, and its own threads that wait for calls. In here: matching, queues,
//! reply tokens, limits, deadlines, cancellation, the end of any party. Not in here: copying
//! bytes, posting completions, waking threads, capability transfer, moving CPU time, which thread
//! runs next (`core_sched`); the verdicts say when each is due.
//!
//! # Contract
//!
//! - A service is called under its own lock (class endpoint, outermost). Time comes in as an
//!   argument.
//! - Only threads of the owning process receive and reply; anyone with a facet calls. The
//!   caller of these functions has checked that, by the capability it looked up.
//! - Storage comes from outside and is charged to the owning process, record by record, when
//!   it is made. No operation allocates.
//! - `C` and `R` are what the kernel needs to know of a caller and of a receiver (thread, user
//!   data, buffers); the service hands them back and never looks inside.
//! - Each call that was accepted ends in exactly one verdict or visit that carries its `C`,
//!   whatever is cancelled, closed or dies, and whenever. Each accepted receive likewise
//!   carries its `R` to exactly one delivery or end.
//! - CALL, RECV, RETURN, CANCEL and expiry take a bounded number of steps, independent of how
//!   many wait; a receive also ends each expired call it passes.
//! - An error changes nothing.
//!
//! Decided in ADR 57.
#![no_std]

mod end;
mod endpoint;
mod found;
mod invariants;
mod queue;
mod record;
mod redeliver;
mod service;
mod store;
mod verdict;

pub use endpoint::{Endpoint, EndpointKey, Limits, Load};
pub use found::{FoundCaller, FoundReceiver};
pub use record::{Call, CallKey, Donation, Record, RecvKey};
pub use redeliver::{CallAgain, CallRejected, RecvAgain, RecvRejected};
pub use service::Service;
pub use store::Store;
pub use verdict::{
    CallEnd, CallError, CallVerdict, ClosedEndpoint, CreateError, DrainVerdict, Ended, ExpireError,
    LendError, NotFound, RecvError, RecvVerdict, ReplyThenRecvError, ReplyVerdict, StaleToken,
};
