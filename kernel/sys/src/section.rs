//! How long the kernel runs without a preemption point, in checked builds.
//!
//! Kernel code is never preempted, so what it does between an entry and the next exit, switch or turn
//! of the idle loop keeps everybody else waiting. Checked builds measure each such section and
//! remember the longest. With `section=N` on the command line a section of more than N ticks of the
//! time-stamp counter stops the machine; in the deterministic lane, where a tick is an instruction,
//! that is a bound on instructions. Other builds measure nothing.

use kernel_arch::time;

/// A section begins on this CPU.
#[inline]
pub fn begin() {
    #[cfg(checked)]
    if crate::system::is_up() {
        measured::begin(crate::system::here(), time::ticks());
    }
}

/// A section ends on this CPU; `at` says where.
#[inline]
pub fn end(at: &'static str) {
    #[cfg(checked)]
    if crate::system::is_up() {
        measured::end(crate::system::here(), time::ticks(), at);
    }
    #[cfg(not(checked))]
    let _ = (at, time::ticks as fn() -> u64);
}

/// Stops the machine at sections of more than so many ticks.
pub fn limit(ticks: u64) {
    #[cfg(checked)]
    measured::limit(ticks);
    #[cfg(not(checked))]
    let _ = ticks;
}

/// The longest section so far, in ticks; `None` if nothing is measured.
pub fn longest() -> Option<u64> {
    #[cfg(checked)]
    return Some(measured::longest());
    #[cfg(not(checked))]
    None
}

#[cfg(checked)]
mod measured {
    use crate::kernel::Cpu;
    use core::sync::atomic::{AtomicU64, Ordering};

    static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);
    static LONGEST: AtomicU64 = AtomicU64::new(0);

    pub fn begin(me: &Cpu, now: u64) {
        me.own.section_began.store(now, Ordering::Relaxed);
    }

    #[allow(clippy::panic, reason = "a checked build that was told to stop here")]
    pub fn end(me: &Cpu, now: u64, at: &'static str) {
        let began = me.own.section_began.load(Ordering::Relaxed);
        me.own.section_began.store(now, Ordering::Relaxed);
        let took = now.saturating_sub(began);
        if began == 0 || took <= LONGEST.load(Ordering::Relaxed) {
            return;
        }
        LONGEST.fetch_max(took, Ordering::Relaxed);
        if took > LIMIT.load(Ordering::Relaxed) {
            panic!("{took} ticks in the kernel up to {at} without a preemption point");
        }
    }

    pub fn limit(ticks: u64) {
        LIMIT.store(ticks, Ordering::Relaxed);
    }

    pub fn longest() -> u64 {
        LONGEST.load(Ordering::Relaxed)
    }
}
