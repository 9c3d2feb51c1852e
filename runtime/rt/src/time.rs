//! The clock, from the time page: no call, no entry.

use abi_types::TimePage;
use abi_types::place::TIME_VADDR;

/// Time since boot in nanoseconds, the clock of the Timer interface.
#[inline]
pub fn now_ns() -> u64 {
    page().at(ticks())
}

/// The time stamp counter.
#[inline(always)]
pub fn ticks() -> u64 {
    // SAFETY: every CPU the kernel runs on has the counter, and CR4.TSD is clear.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[inline]
fn page() -> &'static TimePage {
    let page = core::ptr::with_exposed_provenance::<TimePage>(TIME_VADDR as usize);
    // SAFETY: the kernel maps it read-only into every process before its first instruction, and
    // has written it before that.
    unsafe { &*page }
}
