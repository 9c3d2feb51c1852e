//! The other CPUs: starting them, giving them work, letting them sleep.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use core_sched::MAX_CPUS;
use core_topology::{Enlist, Muster};
use kernel_arch::boot::Handover;
use kernel_arch::cpu::{self, CpuState, PerCpu};
use kernel_arch::{apic, time};
use kernel_mm::OutOfMemory;
use kernel_mm::fallible::{try_leak, try_push};

/// How long the CPUs have to report in, in ticks of the counter, whose rate is not known yet: more
/// than two seconds on any CPU. They need microseconds; an emulator on a busy host more.
const START_TIMEOUT_TICKS: u64 = 20_000_000_000;

/// The CPUs the kernel has after the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Started {
    /// Those that were released and did not report in.
    pub missing: usize,
    /// Those that are used and those that are not, with the reason.
    pub muster: Muster,
}

/// Sends the CPUs the loader parked into the kernel, at most `limit` with the boot CPU, and waits until
/// each has reported in. Those beyond are halted for good.
pub(crate) fn start_all(
    handover: &Handover,
    boot: &'static PerCpu,
    limit: Option<usize>,
) -> Result<Started, OutOfMemory> {
    let limit = limit.map_or(MAX_CPUS, |limit| limit.min(MAX_CPUS));
    let mut muster = Muster::new(limit, apic::mode() == apic::Mode::X2Apic);
    let mut blocks: Vec<&'static PerCpu> = Vec::new();
    try_push(&mut blocks, boot)?;
    for start in handover.cpus().filter(|c| !c.is_boot_cpu) {
        if muster.consider(start.apic_id()) == Enlist::Use {
            let index = u32::try_from(blocks.len()).map_err(|_| OutOfMemory)?;
            try_push(&mut blocks, kernel_mm::cpu::new_block(index, start.apic_id())?)?;
        }
    }
    // Known to all before any of them runs: a CPU that fails at once is stopped by its index.
    let blocks: &'static [&'static PerCpu] = try_leak(blocks)?.as_slice();
    cpu::publish(blocks);
    let mut used = 0;
    for start in handover.cpus().filter(|c| !c.is_boot_cpu) {
        match blocks.iter().find(|b| b.apic_id() == start.apic_id()) {
            Some(block) => {
                start.release(block);
                used += 1;
            }
            None => start.retire(),
        }
    }
    debug_assert_eq!(used + 1, muster.used());
    let absent = || blocks.iter().filter(|c| c.state() == CpuState::Absent).count();
    let retiring = || muster.left_out() - cpu::retired_count().min(muster.left_out());
    wait_for(|| absent() == 0 && retiring() == 0);
    if retiring() == 0 {
        let is_used = |id: u32| blocks.iter().any(|b| b.apic_id() == id);
        handover.cpus().filter(|c| !is_used(c.apic_id())).for_each(|c| c.reset());
    }
    Ok(Started { missing: absent(), muster })
}

fn wait_for(is_done: impl Fn() -> bool) {
    let began = time::ticks();
    while !is_done() && time::ticks().wrapping_sub(began) < START_TIMEOUT_TICKS {
        cpu::relax();
    }
}

/// Whether CPUs without work look for threads.
static SCHEDULING: AtomicBool = AtomicBool::new(false);

/// Lets every CPU run threads from now on.
pub(crate) fn release_to_scheduler() {
    // Release, pairs with the acquire in `other_cpu`: the tables are made.
    SCHEDULING.store(true, Ordering::Release);
    let me = cpu::this().index();
    for other in cpu::all().iter().filter(|c| c.index() != me) {
        apic::send_ipi(other.apic_id());
    }
}

/// What every CPU but the first does: sleep until there is work.
pub(crate) fn other_cpu(cpu: &'static PerCpu) -> ! {
    loop {
        if SCHEDULING.load(Ordering::Acquire) {
            crate::under::idle();
        }
        // Interrupts are off here and in the job. An interrupt sent after the look is pending
        // when `wait_for_interrupt` turns them on, so no work is slept over.
        if !cpu.run_job() {
            cpu::wait_for_interrupt();
        }
    }
}

/// Runs a function on another CPU and waits until it is done; `false` if the CPU is not there.
pub fn run_on(index: usize, job: fn()) -> bool {
    let Some(target) = cpu::all().get(index) else { return false };
    if target.index() == cpu::this().index() {
        job();
        return true;
    }
    if target.state() != CpuState::Online {
        return false;
    }
    while !target.post_job(job) {
        cpu::relax();
    }
    while !target.is_idle() {
        cpu::relax();
    }
    true
}

/// Runs a function on every other CPU at once, then waits for all.
pub fn run_on_others(job: fn()) {
    let me = cpu::this().index();
    let others = || cpu::all().iter().filter(|c| c.index() != me && c.state() == CpuState::Online);
    for other in others() {
        while !other.post_job(job) {
            cpu::relax();
        }
    }
    while !others().all(|c| c.is_idle()) {
        cpu::relax();
    }
}

/// Asks a CPU to run a function and does not wait; `false` if it is busy or not there.
pub fn start_on(index: usize, job: fn()) -> bool {
    cpu::all().get(index).is_some_and(|c| {
        c.state() == CpuState::Online && c.index() != cpu::this().index() && c.post_job(job)
    })
}
