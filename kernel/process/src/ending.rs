//! How a process ends, who waits for that, and whose limits it had.

use core_ledger::Loan;
use kernel_ops::capability::ProcessKey;
use kernel_ops::party::Party;

/// Why a process is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It ended itself, or its last thread did.
    Exited,
    /// A fault of one of its threads.
    Faulted,
    /// By a handle to it.
    Killed,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code.
    pub code: i64,
    /// Why.
    pub reason: Reason,
}

/// Who waits for the end of a process, and how it ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    /// The call that waits.
    pub waiter: Option<Party>,
    /// `Some` once nothing of it is left.
    pub ended: Option<Ended>,
}

impl Ending {
    /// Nobody waits, and it has not ended.
    pub const NONE: Self = Self { waiter: None, ended: None };
}

/// The limits of a process that another one lent.
#[derive(Debug)]
pub struct Lent {
    /// What is lent.
    pub(crate) loan: Loan<'static>,
    /// By whom: its record is held as long.
    pub(crate) lender: ProcessKey,
}
