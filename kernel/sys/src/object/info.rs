//! What SystemInfo tells.

use crate::system::cpus;
use crate::under::clock;
use crate::{image, shutdown};
use abi_sync::mask_below;
use kernel_object::system_info::Host;
use schema::system_info::{CpuCounters, Machine};

/// The running system.
pub struct Counted;

impl Host for Counted {
    fn machine(&self) -> Machine {
        let frames = kernel_mm::frames::counts();
        let heap = kernel_mm::heap::usage();
        let (accounts_closed, accounts_not_zero) = shutdown::accounts();
        Machine {
            cpus: cpus().len() as u32,
            profile: image::PROFILE,
            uptime_ns: clock(),
            frames_total: frames.managed,
            frames_free: frames.free,
            heap_bytes: heap.bytes,
            heap_frames: heap.frames,
            heap_allocations: kernel_mm::heap::allocations(),
            accounts_closed,
            accounts_not_zero,
        }
    }

    fn cpu(&self, cpu: u32) -> Option<CpuCounters> {
        let (cpus, at) = (cpus(), cpu as usize);
        if at >= cpus.len() {
            return None;
        }
        // The program chose the number: it stays within the table even where the check is only guessed.
        let cpu = cpus.get(at & mask_below(at, cpus.len()) as usize)?;
        let (counters, queue) = (&cpu.own.counters, &cpu.queue);
        let flushes = kernel_arch::paging::flushes_of(cpu.id().index());
        let (runnable_max, idle_ns) = {
            let mut queue = queue.lock();
            (queue.view().waiting_max(), queue.idle_ns_until(clock()))
        };
        Some(CpuCounters {
            runnable: queue.hint().waiting,
            runnable_max,
            switches: counters.switches.get() + counters.hand_overs.get(),
            preemptions: counters.preemptions.get(),
            steals: counters.steals.get(),
            failed_placements: counters.failed_placements.get(),
            reschedule_sent: counters.reschedule_sent.get(),
            reschedule_skipped: counters.reschedule_skipped.get(),
            tlb_requests: flushes.asked,
            tlb_failures: flushes.refused,
            idle_entries: counters.idle_entries.get(),
            idle_ns,
            timer_interrupts: counters.timer_interrupts.get(),
            one_shots: counters.one_shots.get(),
            handoffs_taken: counters.hand_overs.get() + counters.offers.get(),
            handoffs_missed: counters.handoffs_missed.get(),
            syscalls: counters.syscalls.get(),
            idle_cooperative: counters.idle_cooperative.get(),
            idle_dispatch_timer: counters.idle_dispatch_timer.get(),
            idle_dispatch_block: counters.idle_dispatch_block.get(),
            idle_dispatch_exit: counters.idle_dispatch_exit.get(),
            policy_admissions: counters.policy_admissions.get(),
            policy_denials: counters.policy_denials.get(),
        })
    }
}
