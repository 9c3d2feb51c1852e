//! The last stretch, the same for both front ends: quiet the machine, start the other
//! processors, leave.

use arrayvec::ArrayVec;
use core::convert::Infallible;
use loader_core::acpi::{MAX_PROCESSORS, Madt, Processor};
use loader_core::boot::{Handover, Performance, Prepared};
use loader_core::memory::{Frames, Memory};
use loader_core::protocol::Feature;
use loader_core::refusal::{Name, Refusal};
use loader_core::respond::Space;

use crate::apic::{self, LocalApic};
use crate::cpu::{self, Features};
use crate::mtrr::Mtrrs;
use crate::switch::{Parameters, Switch};
use crate::{clock, iommu, legacy, smp};

/// The processors and their interrupt controllers, quiet.
#[derive(Debug)]
pub struct Quiet {
    features: Features,
    madt: Madt,
    local_apic: Option<LocalApic>,
    /// The processors, the one we run on first.
    pub processors: ArrayVec<Processor, MAX_PROCESSORS>,
    /// Whether the local APICs are in x2APIC mode.
    pub x2apic: bool,
}

/// Masks every interrupt source, switches IOMMUs off unless the kernel keeps them, and puts
/// this processor's local APIC into the protocol's state.
///
/// # Safety
/// Interrupts are off and firmware no longer uses the machine; the windows of the interrupt
/// controllers and IOMMUs that ACPI names are mapped one to one.
pub unsafe fn quiet(
    memory: &impl Memory,
    rsdp: Option<u64>,
    prepared: &Prepared,
    features: Features,
) -> Result<Quiet, Refusal> {
    legacy::mask_pics();
    let madt = rsdp.and_then(|rsdp| Madt::read(memory, rsdp)).unwrap_or_default();
    if madt.overflow {
        return Err(Refusal::Firmware(Name::new("the MADT lists more than 1024 processors")));
    }
    for base in &madt.io_apics {
        // SAFETY: the caller vouches for the windows.
        unsafe { legacy::mask_io_apic(*base) };
    }
    if let Some(rsdp) = rsdp.filter(|_| !prepared.wants(Feature::KeepIommu)) {
        // SAFETY: the caller vouches for the windows.
        if unsafe { iommu::disable(memory, rsdp) } > 0 {
            return Err(Refusal::Firmware(Name::new("an IOMMU cannot be switched off")));
        }
    }
    let x2apic = prepared.mp_flags.unwrap_or(0) & 1 == 1 && features.x2apic;
    let mut processors = ArrayVec::new();
    let own = madt.processors.iter().find(|p| p.apic_id == features.apic_id).copied();
    let own = own.unwrap_or(Processor { uid: 0, apic_id: features.apic_id });
    processors.push(own);
    // Without x2APIC a message can name 8-bit identifiers only.
    let others = madt
        .processors
        .iter()
        .filter(|p| p.apic_id != own.apic_id && (x2apic || p.apic_id < 0xff) && features.apic);
    processors.extend(others.copied().take(MAX_PROCESSORS - 1));
    // SAFETY: the caller vouches for the window.
    let local_apic = unsafe { apic::take(&features, x2apic, own.uid, &madt.nmi_lines)? };
    Ok(Quiet { features, madt, local_apic, processors, x2apic })
}

/// Time stamp counter frequency and time stamps, as far as the kernel wants them and they can
/// be had: the frequency as the processor states it, else measured. A counter whose rate
/// may change has no frequency to report, but is good enough for the time stamps.
pub fn times(
    prepared: &Prepared,
    features: &Features,
    started: u64,
) -> (Option<u64>, Option<Performance>) {
    if !prepared.wants(Feature::TscFrequency) && !prepared.wants(Feature::Performance) {
        return (None, None);
    }
    let stated = cpu::stated_tsc_hz();
    let Some(hz) = stated.or_else(clock::measure_tsc_hz) else { return (None, None) };
    let us = |ticks: u64| (u128::from(ticks) * 1_000_000 / u128::from(hz.max(1))) as u64;
    let performance =
        Performance { reset_us: 0, init_us: us(started), exec_us: us(cpu::timestamp()) };
    (stated.or(features.invariant_tsc.then_some(hz)), Some(performance))
}

/// Starts the other processors and enters the kernel. `adjust` sees the parameters last;
/// only conformance tests use it to plant faults.
///
/// # Safety
/// `handover` was made by `finish` with this `quiet`'s processors; memory below 4 GiB and the
/// loader are mapped one to one, now and by the handover's switch tables.
pub unsafe fn depart(
    mut handover: Handover,
    quiet: &Quiet,
    memory: &mut impl Memory,
    frames: &mut Frames,
    adjust: impl FnOnce(&mut Parameters),
) -> Result<Infallible, Refusal> {
    // SAFETY: `finish` allocated the page for this.
    let switch = unsafe { Switch::install(handover.trampoline) };
    if let Some(local_apic) = quiet.local_apic {
        let crew = smp::Crew {
            local_apic,
            x2apic: quiet.x2apic,
            nmi_lines: &quiet.madt.nmi_lines,
            mtrrs: &Mtrrs::read(&quiet.features),
        };
        let mut space = Space { memory, frames, hhdm: handover.hhdm };
        // SAFETY: the caller vouches for list, handover and mapping.
        unsafe { smp::start_all(&crew, &quiet.processors, &mut handover, &switch, &mut space)? };
    }
    let mut parameters = switch.parameters(&handover);
    parameters.entry = handover.entry;
    adjust(&mut parameters);
    // SAFETY: everything is in place and interrupts are off.
    unsafe { switch.enter(&parameters) }
}
