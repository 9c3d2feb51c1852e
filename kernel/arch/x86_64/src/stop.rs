//! One CPU ends the run: it claims the report and stops all others.
//!
//! No lock is taken: any lock may be held by a CPU that is stopped or by the failing code itself.
//!
//! Decided in ADR 23.

use crate::cpu::{self, CpuState};
use crate::trap::TrapFrame;
use crate::{apic, exit};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Whose report it is: CPU index + 1, or 0.
static OWNER: AtomicU32 = AtomicU32::new(0);
/// How many reports the owner has begun.
static DEPTH: AtomicU32 = AtomicU32::new(0);

/// How often the others are looked at before they count as lost. Each look is a pause, so this
/// is some hundred milliseconds; a stopped CPU answers in microseconds.
const STOP_POLLS: u32 = 20_000_000;

/// Whose turn it is to report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// Ours, and the first.
    First,
    /// Ours, and we failed while reporting: the count of failures before this one.
    Again(u32),
    /// Another CPU reports: stop here.
    Other,
}

/// Claims the report for this CPU.
pub fn claim() -> Claim {
    let me = cpu::try_this().map_or(0, |c| c.index()) + 1;
    // AcqRel, pairs with itself on other CPUs: of two that fail at once one sees the other.
    match OWNER.compare_exchange(0, me, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            DEPTH.store(1, Ordering::Relaxed);
            Claim::First
        }
        Err(owner) if owner == me => Claim::Again(DEPTH.fetch_add(1, Ordering::Relaxed)),
        Err(_) => Claim::Other,
    }
}

/// Whether a CPU is about to stop the others. Acquire, pairs with the claim.
pub(crate) fn is_requested() -> bool {
    let owner = OWNER.load(Ordering::Acquire);
    owner != 0 && owner != cpu::this().index() + 1
}

/// Whether the owner has stopped the others: what they hold is held for good.
static ARE_OTHERS_STOPPED: AtomicBool = AtomicBool::new(false);

/// Whether this CPU has stopped all others.
pub(crate) fn is_alone() -> bool {
    ARE_OTHERS_STOPPED.load(Ordering::Relaxed) && !is_requested()
}

/// Stops every other CPU that runs the kernel; how many stopped, of how many. Only after [`claim`].
pub fn stop_others() -> (usize, usize) {
    let Some(me) = cpu::try_this() else { return (0, 0) };
    let others = || cpu::all().iter().filter(|c| c.index() != me.index());
    let running = others().filter(|c| c.state() == CpuState::Online).count();
    for other in others().filter(|c| c.state() == CpuState::Online) {
        apic::send_nmi(other.apic_id());
    }
    for _ in 0..STOP_POLLS {
        if others().all(|c| c.state() != CpuState::Online) {
            break;
        }
        cpu::relax();
    }
    ARE_OTHERS_STOPPED.store(true, Ordering::Relaxed);
    let left = others().filter(|c| c.state() == CpuState::Online).count();
    (running - left, running)
}

/// Stops this CPU for good; its registers stay to be reported.
pub(crate) fn stop_here(frame: &TrapFrame) -> ! {
    let cpu = cpu::this();
    // SAFETY: written by the owning CPU before it says it has stopped; nobody reads it earlier.
    unsafe { *cpu.stopped_at.get() = Some(*frame) };
    cpu.set_state(CpuState::Stopped);
    exit::stop()
}

/// Stops this CPU because another one reports.
pub fn stop_self() -> ! {
    stop_here(&TrapFrame::here())
}
