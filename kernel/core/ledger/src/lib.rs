//! A process's account: what it may use, what it uses, and what it has lent to its children.
//!
//! In here: [`Profile`], the limits of a process; [`Ledger`], the account over them;
//! [`Reservation`] and [`Charge`], the two values by which anything is ever counted; [`Pool`], charges
//! that are kept together; [`Loan`], what a spawner gives a child out of its own account. Not in here: what a slot, a record or a
//! page is, where it comes from, and where ledgers are kept.
//!
//! # Contract
//!
//! - An allocation for a process is reserved first, then made, then committed, and only then
//!   visible. A reservation that is dropped on the way leaves no trace; so several of them
//!   taken one after the other with `?` are all or nothing.
//! - A charge is kept beside what it pays for and released after that was given back. It knows
//!   its ledger, its line and its amount, cannot be copied, and is consumed by its release:
//!   charging without reserving, releasing twice, releasing more than was charged or to
//!   another account are programs that do not compile.
//! - A dropped charge is a released charge. `core::mem::forget` is the one way to leak one.
//! - A ledger needs no lock: each line is one word, changed by one atomic operation, on any CPU.
//! - At exit a ledger is closed, which no new charge survives; then it only falls, and
//!   [`Ledger::is_zero`], once true, stays true. Its record may serve another process when what
//!   it lent has come back as well ([`Ledger::reopen`]).
//!
//! Decided in ADR 130.
#![cfg_attr(not(loom), no_std)]

mod charge;
mod ledger;
mod line;
mod loan;
mod pool;
mod profile;
mod word;

pub use charge::{Charge, OtherAccount, Reservation};
pub use ledger::{ChargeError, Ledger, Unsettled};
pub use line::{
    CapSlots, Counted, Frames, KernelBytes, KernelStackPages, Line, RegisteredBuffers,
    SleepWaiters, Threads,
};
pub use loan::{LendError, Loan};
pub use pool::Pool;
pub use profile::{Limit, Profile};
pub use word::{MAX_LIMIT, Reading};
