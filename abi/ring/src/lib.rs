//! The ring between a thread and the kernel: both halves of the protocol.
//!
//! Not in here: what an operation does (`kernel/ops`), when a thread blocks, the memory itself
//! ([`Memory`] is a trait; the real one is `abi_sync::BlockMemory`). Compiles unchanged in the
//! kernel, in user programs and on the host; allocates nothing, contains no `unsafe`.
//!
//! # The contract
//!
//! One thread owns the ring. It [pushes](UserRing::push) SQEs, [publishes](UserRing::publish)
//! them together, enters the kernel, and [pops](UserRing::pop) CQEs.
//!
//! The kernel consumes in [passes](Pass). Each SQE is read once, consumed in order, and
//! completed by exactly one CQE, which carries its `user_data` untouched; the type [`Credit`]
//! stands for the completion that is owed. An SQE is consumed only if the completion queue has
//! a place for its CQE, so completions are never lost and never wait; otherwise it stays and the
//! pass says [`Stop::CqFull`].
//!
//! An SQE's place is the user's again when `sq_head` passes it. The inline slot it names is the
//! kernel's until its completion: a call that waits in an endpoint's queue still has its
//! parameters there, and they are copied once, when it is delivered.
//!
//! The kernel believes nothing it reads from the block. Its own indices are in kernel memory;
//! the shared `sq_head`, `cq_tail` and flags are outputs. The user's indices are clamped to what
//! an honest user could have written, positions are masked, an SQE is copied before it is
//! looked at. A user who breaks the protocol gets its own bytes back in disorder; a pass takes
//! no more than its limit whatever they are.
//!
//! # Who may do what
//!
//! | right | held as | by |
//! |---|---|---|
//! | consume the submission queue | [`Pass`], one at a time | own thread, timer, poller |
//! | own it between passes | [`PollerToken`], generation-checked | a poller |
//! | post completions | [`CqProducer`], inside the ring's CQ lock | anyone in the kernel |
//! | complete one operation | [`Credit`], or the [`CreditCell`] it lies in | who claimed its outcome |
//!
//! # Orders
//!
//! Each index word has one writer, who releases it, and one reader, who acquires it:
//!
//! | word | released by | acquired by | what becomes visible |
//! |---|---|---|---|
//! | `SqTail` | [`UserRing::publish`] | the begin of a [`Pass`] | SQEs, inline payloads |
//! | `SqHead` | [`Pass::take`] | [`UserRing::push`] | that the SQE was read |
//! | `CqTail` | [`KernelRing::post`], [`Batch::publish`] | [`UserRing::pop`] | the CQE, its inline slot |
//! | `CqHead` | dropping a [`Completion`] | credits, [`KernelRing::count`] | that the CQE was read |
//!
//! `Flags` and a poller's sleep pair by full fences: see [`KernelRing::fall_asleep`]. The owner
//! word is acquired where a pass begins and released where it ends, and carries the kernel's
//! own `sq_head` from one consumer to the next. The kernel's `cq_tail` is carried by the CQ lock.
#![no_std]

mod credit;
mod decode;
mod inline;
mod kernel;
mod memory;
mod owner;
mod pass;
mod poll;
mod request;
mod simple;
mod slots;
mod user;

pub use credit::{Credit, CreditCell};
pub use decode::{Bounds, decode};
pub use kernel::{Batch, CqProducer, KernelRing, Outcome, Posted};
pub use memory::{INLINE_WORDS, Memory};
pub use owner::{Ended, PollerId, PollerToken, Refusal, Visitor};
pub use pass::{Accepted, Head, MOST_NOPS, Pass, Sole, Stop};
pub use poll::Sleep;
pub use request::{Call, Park, Payload, Recv, Request, Return, Room, Unpark};
pub use simple::{SimpleAnswer, SimpleCall};
pub use slots::InlineSlots;
pub use user::{Completion, SqFull, UserRing};
