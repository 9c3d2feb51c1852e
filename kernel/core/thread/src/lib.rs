//! A thread's identity, its state word, and the rules of its end.
//!
//! In here: [`ThreadKey`], the kernel's name of a thread; [`Word`] and [`StateWord`], the one
//! 64-bit word that names a thread's owner and decides every race about it; [`Want`], how many
//! completions end its wait; [`Lifecycle`], joins, and when the record's charge ends;
//! [`Roster`], when the last thread ends the process; [`Handles`], when a process's record is nobody's; [`Session`],
//! who belongs together; [`Page`], names in their order. Not in here: stacks, queues, registers, the join's completion,
//! anything a CPU does.
//!
//! # Contract
//!
//! - [`StateWord`] is called from any CPU without a lock; each operation names its caller.
//! - [`Lifecycle`] and [`Roster`] are called under the lock of the process's thread table.
//! - An operation returns a verdict, which says what its caller must do next and is done by
//!   nobody else. An error changes nothing.
//! - No operation loops but to retry a lost compare-and-swap.
#![cfg_attr(not(loom), no_std)]

mod handles;
mod key;
mod lifecycle;
mod page;
mod roster;
mod session;
mod state_word;
mod want;
mod word;

pub use handles::{Handles, HandlesVerdict};
pub use key::ThreadKey;
pub use lifecycle::{
    ExitVerdict, JoinError, JoinVerdict, Joiner, Lifecycle, LifecycleError, ReleaseVerdict,
};
pub use page::Page;
pub use roster::{CloseVerdict, LeaveVerdict, Roster, RosterError};
pub use session::{Session, SessionView};
pub use state_word::StateWord;
pub use want::{Due, Want};
pub use word::{
    CommitVerdict, DispatchVerdict, KillVerdict, Misuse, RecycleVerdict, RequeueVerdict,
    ResumeVerdict, Stale, State, Ticket, WaitVerdict, WakeVerdict, Word,
};
