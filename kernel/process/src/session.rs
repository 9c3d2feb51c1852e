//! Sessions: which processes belong together, and that they end together.
//!
//! A session is named after the process that began it, an entry of the manifest that is granted one; whom it starts
//! belongs to it, and so on. Every process of it, and every capability to it, holds that process's record, so the name
//! is never another's. Decided in ADR 342.

use crate::machine::Machine;
use crate::process::Process;
use abi_sync::atomic::Ordering;
use core_thread::SessionView;
use kernel_ops::capability::ProcessKey;

/// A session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// Whether it is live, and how many processes it has.
    pub view: SessionView,
    /// When it began.
    pub started_ns: u64,
}

/// Takes a hold on the record of the process that began a session, while somebody belongs to that.
fn hold<M: Machine>(m: M, session: ProcessKey) -> Option<&'static Process<M>> {
    let first = m.records().process(session.slot)?;
    let (handles, generation) = (&first.handles, session.generation);
    (handles.hold(generation) || handles.hold_living(generation)).then_some(first)
}

/// A process that has just begun has a session of its own.
pub fn begin<M: Machine>(process: &'static Process<M>) {
    let key = process.key();
    process.session.begin(key.generation);
    process.members.lock().session = Some(key);
}

/// A process that has just begun belongs to the session of who started it, if that has one.
pub(crate) fn inherit<M: Machine>(m: M, process: &'static Process<M>, parent: &'static Process<M>) {
    let Some(session) = parent.members.lock().session else { return };
    // The parent is one of it, and there: its record is held.
    match hold(m, session) {
        Some(first) if first.session.join(session.generation) => {
            process.members.lock().session = Some(session);
        }
        _ => m.defect("a process belongs to a session that is gone"),
    }
}

/// A process is gone: it belongs to no session any more. The record that it held for that, which is to be released; who
/// began a session holds its own by being there.
#[must_use = "a record that is held is not free"]
pub(crate) fn leave<M: Machine>(
    m: M,
    process: &'static Process<M>,
    key: ProcessKey,
) -> Option<ProcessKey> {
    let session = process.members.lock().session.take()?;
    if let Some(first) = m.records().process(session.slot) {
        first.session.leave(session.generation);
    }
    (session != key).then_some(session)
}

/// A capability to the session of a process that has just begun: it holds the record.
pub fn hold_for_capability<M: Machine>(m: M, process: &'static Process<M>) {
    if !process.handles.hold_living(process.key().generation) {
        m.defect("a process that has just begun is gone");
    }
}

/// What a session is; for whoever holds it.
pub fn info<M: Machine>(m: M, session: ProcessKey) -> Option<SessionInfo> {
    let first = m.records().process(session.slot)?;
    let view = first.session.view(session.generation)?;
    Some(SessionInfo { view, started_ns: first.began_ns.load(Ordering::Relaxed) })
}

/// Ends a session; whether it was live. For whoever holds it.
pub fn end<M: Machine>(m: M, session: ProcessKey) -> Option<bool> {
    m.records().process(session.slot)?.session.end(session.generation)
}
