//! What the CPUs have against speculation: read, decided once for all, set on each, and told.
//!
//! `core_speculation` decides. The boot CPU asks it as soon as the command line is known, and sets itself;
//! the others set themselves as they come up. A checked image can be told to decide as on another CPU
//! (`cpuid=`): then the registers are pretended as well, because this CPU need not have them.
//!
//! Decided in ADR 260.

use super::features;
use super::percpu::{self, PerCpu};
use crate::paging::WAY_BARRIER;
use core::sync::atomic::{AtomicU64, Ordering};
use core_speculation::{Facts, Mitigations, Plan, Refused, Words, decide};
use raw_cpuid::cpuid;
use spin::Once;
use x86_64::registers::control::Efer;
use x86_64::registers::model_specific::Msr;

const IA32_SPEC_CTRL: u32 = 0x48;
const IA32_PRED_CMD: u32 = 0x49;
const IA32_ARCH_CAPABILITIES: u32 = 0x10a;
/// IA32_PRED_CMD: forget what indirect branches have learned.
const IBPB: u64 = 1;
/// EFER: automatic IBRS (AMD APM vol. 2, 3.1.7).
const EFER_AUTOMATIC_IBRS: u64 = 1 << 21;
/// Leaf 7, EDX: the CPU has IA32_ARCH_CAPABILITIES.
const EDX7_ARCH_CAPABILITIES: u32 = 1 << 29;
/// Leaf 1, ECX: there is a hypervisor, and its leaves.
const ECX1_HYPERVISOR: u32 = 1 << 31;

/// The decision, and whether it is about a CPU that is only pretended.
#[derive(Clone, Copy)]
struct Decided {
    plan: Plan,
    is_planted: bool,
}

static DECIDED: Once<Decided> = Once::new();

/// Whose branches a CPU has learned, and how often it forgot.
pub(crate) struct Predictions {
    /// The identity of the last address space that was entered.
    of: AtomicU64,
    barriers: AtomicU64,
    /// What was set, read back.
    spec_ctrl: AtomicU64,
    efer: AtomicU64,
}

/// What a CPU has set, for reports and tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Set {
    /// IA32_SPEC_CTRL, as read back; zero if it was not set.
    pub spec_ctrl: u64,
    /// Whether EFER has the bit of automatic IBRS.
    pub automatic_ibrs: bool,
    /// How often predictions were forgotten.
    pub barriers: u64,
}

impl Predictions {
    pub(crate) const fn new() -> Self {
        Self {
            of: AtomicU64::new(0),
            barriers: AtomicU64::new(0),
            spec_ctrl: AtomicU64::new(0),
            efer: AtomicU64::new(0),
        }
    }

    /// The CPU is about to run code of the address space with that identity: what it has learned from another
    /// is forgotten. An idle CPU that goes back to where it was forgets nothing.
    pub(crate) fn belong_to(&self, identity: u64) {
        // Relaxed: the CPU's own.
        if self.of.load(Ordering::Relaxed) == identity {
            return;
        }
        self.of.store(identity, Ordering::Relaxed);
        self.barriers.store(self.barriers.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if DECIDED.get().is_some_and(|decided| !decided.is_planted) {
            // SAFETY: the plan has a barrier only if the CPU has the register; writing it changes no memory.
            unsafe { Msr::new(IA32_PRED_CMD).write(IBPB) };
        }
    }
}

/// The words of the CPU this runs on.
fn words() -> Words {
    let (zero, one) = (cpuid!(0), cpuid!(1));
    let letters = |b: u32, c: u32, d: u32| {
        let mut letters = [0; 12];
        for (to, from) in letters.chunks_exact_mut(4).zip([b, c, d]) {
            to.copy_from_slice(&from.to_le_bytes());
        }
        letters
    };
    let most = cpuid!(0x8000_0000).eax;
    let edx7 = if zero.eax >= 7 { cpuid!(7, 0).edx } else { 0 };
    let hypervisor = (one.ecx & ECX1_HYPERVISOR != 0).then(|| cpuid!(0x4000_0000));
    let capabilities = if edx7 & EDX7_ARCH_CAPABILITIES != 0 {
        // SAFETY: the CPU has the register; reading it has no effect.
        unsafe { Msr::new(IA32_ARCH_CAPABILITIES).read() }
    } else {
        0
    };
    Words {
        vendor: letters(zero.ebx, zero.edx, zero.ecx),
        signature: one.eax,
        hypervisor: hypervisor.map_or([0; 12], |leaf| letters(leaf.ebx, leaf.ecx, leaf.edx)),
        edx7,
        ebx8: if most >= 0x8000_0008 { cpuid!(0x8000_0008).ebx } else { 0 },
        eax21: if most >= 0x8000_0021 { cpuid!(0x8000_0021).eax } else { 0 },
        capabilities,
        has_siblings: features::topology_shifts().thread_bits > 0,
    }
}

/// Decides for this machine, once, and sets the boot CPU. `planted` stands for what the CPU says.
pub fn init(mitigations: Mitigations, planted: Option<Words>) -> Result<Plan, Refused> {
    let facts = Facts::of(&planted.unwrap_or_else(words));
    let plan = decide(&facts, mitigations)?;
    let decided = DECIDED.call_once(|| Decided { plan, is_planted: planted.is_some() });
    apply_to(percpu::this());
    Ok(decided.plan)
}

/// Sets what was decided, on the CPU this runs on, whose block it is. Nothing before the decision.
pub(super) fn apply_to(cpu: &PerCpu) {
    let Some(Decided { plan, is_planted }) = DECIDED.get().copied() else { return };
    let set = &cpu.predictions;
    if plan.has_barrier {
        cpu.entry_way.fetch_or(WAY_BARRIER, Ordering::Relaxed);
    }
    if let Some(bits) = plan.spec_ctrl() {
        set.spec_ctrl
            .store(if is_planted { bits } else { write_spec_ctrl(bits) }, Ordering::Relaxed);
    }
    if plan.has_automatic_ibrs() {
        let efer = if is_planted { EFER_AUTOMATIC_IBRS } else { set_automatic_ibrs() };
        set.efer.store(efer, Ordering::Relaxed);
    }
}

/// Sets IA32_SPEC_CTRL; what it then is.
fn write_spec_ctrl(bits: u64) -> u64 {
    let mut register = Msr::new(IA32_SPEC_CTRL);
    // SAFETY: the plan has bits only if the CPU has the register and them; they restrict predictions.
    unsafe {
        register.write(bits);
        register.read()
    }
}

/// Sets the bit of EFER; what EFER then is.
fn set_automatic_ibrs() -> u64 {
    // SAFETY: the plan asks for it only if the CPU has the bit; it restricts predictions of the kernel.
    unsafe { Efer::write_raw(Efer::read_raw() | EFER_AUTOMATIC_IBRS) };
    Efer::read_raw()
}

impl PerCpu {
    /// What the CPU has set against speculation.
    pub fn speculation(&self) -> Set {
        let set = &self.predictions;
        Set {
            spec_ctrl: set.spec_ctrl.load(Ordering::Relaxed),
            automatic_ibrs: set.efer.load(Ordering::Relaxed) & EFER_AUTOMATIC_IBRS != 0,
            barriers: set.barriers.load(Ordering::Relaxed),
        }
    }
}
