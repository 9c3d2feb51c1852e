//! Whose the trace is, for [`trace`](crate::trace).

use crate::capability::ProcessKey;
use core_ledger::{Charge, KernelBytes};
use smp_lock::{LockClass, TicketLock};

/// Who has the buffers.
pub(crate) struct Owner {
    pub(crate) process: ProcessKey,
    pub(crate) paid: Charge<'static, KernelBytes>,
}

pub(crate) struct State {
    pub(crate) owner: Option<Owner>,
    /// Somebody is making the buffers.
    pub(crate) is_starting: bool,
}

/// Whose the trace is.
pub struct TraceOwner(pub(crate) TicketLock<State>);

impl TraceOwner {
    /// Nobody's.
    pub fn new() -> Self {
        let state = State { owner: None, is_starting: false };
        Self(TicketLock::with_class(LockClass::Global, state))
    }

    /// Bytes that a process pays for.
    pub fn paid_by(&self, process: ProcessKey) -> u32 {
        let state = self.0.lock();
        let its = state.owner.as_ref().filter(|owner| owner.process == process);
        its.map_or(0, |owner| owner.paid.count())
    }
}

impl Default for TraceOwner {
    fn default() -> Self {
        Self::new()
    }
}
