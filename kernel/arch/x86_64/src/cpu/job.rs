//! Work one CPU hands to another: a function in the other's block, and an interrupt.
//!
//! The slot holds a function until it has run, so a CPU has at most one at a time and whoever
//! posted it sees when it is done.

use super::percpu::PerCpu;
use crate::apic;
use core::sync::atomic::Ordering;

impl PerCpu {
    /// Asks the CPU to run a function; `false` if it still has one to run.
    #[must_use]
    pub fn post_job(&self, job: fn()) -> bool {
        let word = job as *mut ();
        // Release, pairs with the acquire in `run_job`: what the poster wrote is seen there.
        let posted = self
            .job
            .compare_exchange(core::ptr::null_mut(), word, Ordering::Release, Ordering::Relaxed)
            .is_ok();
        if posted {
            apic::send_ipi(self.apic_id());
        }
        posted
    }

    /// Whether the CPU has nothing to run. Acquire, pairs with the release in `run_job`: what the
    /// function wrote is seen.
    pub fn is_idle(&self) -> bool {
        self.job.load(Ordering::Acquire).is_null()
    }

    /// Runs what was asked of this CPU, if anything; `false` if nothing was.
    pub fn run_job(&self) -> bool {
        // Acquire, pairs with the release in `post_job`.
        let word = self.job.load(Ordering::Acquire);
        if word.is_null() {
            return false;
        }
        // SAFETY: only `post_job` stores here, and only `fn()` pointers.
        let job = unsafe { core::mem::transmute::<*mut (), fn()>(word) };
        job();
        // Release, pairs with the acquire in `is_idle`.
        self.job.store(core::ptr::null_mut(), Ordering::Release);
        true
    }
}
