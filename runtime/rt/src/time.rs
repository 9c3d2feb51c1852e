//! The clock, from the time page: no call, no entry.

use abi_types::TimePage;
use abi_types::place::{COUNTER_OFFSET, COUNTER_VADDR, TIME_VADDR};

/// Time since boot in nanoseconds, the clock of the Timer interface.
#[inline]
pub fn now_ns() -> u64 {
    let page = page();
    page.at(if page.source == TimePage::TSC { ticks() } else { counter() })
}

/// The counter in the counter page: its halves, of which the upper did not change around the lower one.
#[cold]
fn counter() -> u64 {
    let half = |offset: u64| {
        let address = (COUNTER_VADDR + COUNTER_OFFSET + offset) as usize;
        // SAFETY: the time page names this counter, so the kernel maps the page it is in.
        u64::from(unsafe { core::ptr::with_exposed_provenance::<u32>(address).read_volatile() })
    };
    let mut upper = half(4);
    loop {
        let lower = half(0);
        let again = half(4);
        if again == upper {
            return upper << 32 | lower;
        }
        upper = again;
    }
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
