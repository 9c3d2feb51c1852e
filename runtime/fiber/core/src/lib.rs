//! The decisions of the fiber runtime, without stacks, threads or clocks.
//!
//! In here: [`Word`] and [`StateWord`], the one 64-bit word that decides every race about a fiber;
//! [`OutcomeCell`], the word that decides how a wait ended; [`RunQueue`] and [`LifoSlot`], a worker's
//! runnable fibers; [`Idle`], who sleeps and who searches, and [`Watch`], whether anybody watches them; [`scaling`], when a worker is added or let
//! go, and the figures that explain it; [`Names`], by which a completion finds who waits for it. Not
//! in here: anything that runs, blocks or allocates.
//!
//! # Contract
//!
//! - Everything is called from any thread unless it says who may call it.
//! - An operation returns a verdict, which says what its caller must do next and is done by nobody
//!   else.
//! - No operation loops but to retry a lost compare-and-swap.
#![cfg_attr(not(loom), no_std)]

#[cfg(all(test, not(loom)))]
extern crate std;

mod idle;
mod lifo_slot;
mod names;
mod outcome;
mod planted;
mod run_queue;
pub mod scaling;
mod state_word;
mod wake_word;
mod watch;
mod word;

pub use idle::{Idle, MAX_WORKERS, Withdrawal};
pub use lifo_slot::LifoSlot;
pub use names::{MAX_NAMES, Names};
pub use outcome::{Outcome, OutcomeCell};
#[cfg(loom)]
pub use planted::{Defect, plant};
pub use run_queue::RunQueue;
pub use state_word::StateWord;
pub use wake_word::WakeWord;
pub use watch::Watch;
pub use word::{
    CancelVerdict, CommitVerdict, Misuse, ParkVerdict, Stale, State, Ticket, WakeVerdict, Word,
};
