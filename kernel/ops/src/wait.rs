//! A thread's own wait: in `cap_enter`, until there are completions or the time is up.

use crate::deadlines;
use crate::machine::{Machine, OwnRing, Record, end, key_of};
use abi_types::NEVER;
use core_thread::{ResumeVerdict, ThreadKey, WaitVerdict};
use kernel_dispatch::{self as dispatch, Record as _};

/// Waits until there are `want` completions or the time is up; how many there are.
#[inline(never)]
pub fn wait<M: Machine>(
    m: M,
    thread: &'static M::Thread,
    ring: &OwnRing<M>,
    want: u32,
    timeout_ns: u64,
) -> u32 {
    let deadline_ns = (timeout_ns != NEVER).then(|| m.clock().saturating_add(timeout_ns));
    loop {
        thread.ops().want.announce(want);
        match thread.state().begin_wait() {
            Ok(WaitVerdict::AboutToWait(_)) => {
                let count = ring.kernel.count();
                let is_late = deadline_ns.is_some_and(|at| at <= m.clock());
                if count >= want || is_late {
                    match thread.state().cancel_wait() {
                        Ok(ResumeVerdict::Resume) => return count,
                        Ok(ResumeVerdict::Die) => end(m, thread),
                        Err(_) => m.defect("a thread that was about to wait is not"),
                    }
                }
            }
            Ok(WaitVerdict::Die) => end(m, thread),
            Err(_) => m.defect("a thread that runs does not run"),
        }
        if let Some(at) = deadline_ns {
            deadlines::start_enter(m, ring, key_of::<M>(thread), at);
        }
        dispatch::block(m, thread);
        if deadline_ns.is_some() {
            deadlines::stop_enter(m, ring);
        }
        let count = ring.kernel.count();
        if count >= want || deadline_ns.is_some_and(|at| at <= m.clock()) {
            return count;
        }
    }
}

/// The time limit of a thread's `cap_enter` has passed, unless it has left it since and is in another: then that
/// one looks at the clock and goes on.
pub fn time_is_up<M: Machine>(m: M, thread: &'static M::Thread, key: ThreadKey) {
    if let Some(due) = thread.ops().want.due(thread.state(), u32::MAX)
        && due.generation == key.generation
    {
        dispatch::wake(m, thread, due.generation, due.ticket, false);
    }
}
