//! Taking back the loader's memory.

use crate::frames;
use core_paging::layout::STACKS;
use kernel_arch::boot::Handover;
use kernel_arch::cpu::{self, CpuState};

/// Why the loader's memory must stay as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StillInUse {
    /// This CPU runs on a stack in it.
    Stack,
    /// A CPU waits in it, or was not started.
    Cpus,
}

/// Gives the loader's memory to the frame allocator: how many frames. Consumes the handover, so
/// nothing in that memory is read again; refused as long as a CPU depends on it.
pub fn take_back(handover: Handover) -> Result<u64, StillInUse> {
    if !STACKS.contains(cpu::stack_pointer()) {
        return Err(StillInUse::Stack);
    }
    let online = |apic_id: u32| {
        cpu::all().iter().any(|c| c.apic_id() == apic_id && c.state() == CpuState::Online)
    };
    // One that is not used has left it as well.
    let elsewhere = handover.cpus().filter(|start| !online(start.apic_id())).count();
    if elsewhere != cpu::retired_count() {
        return Err(StillInUse::Cpus);
    }
    // SAFETY: every CPU the loader started is in the kernel, which it enters on the kernel's tables
    // and a stack of its own, or without one if it is not used (invariant BOOT-1); this one has left the loader's stack, and its
    // descriptor tables were replaced at entry.
    Ok(unsafe { frames::reclaim(handover) })
}
