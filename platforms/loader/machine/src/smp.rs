//! Starting the other processors and leaving them parked on their records.
//!
//! Decided in ADR 13.

use loader_core::acpi::{NmiLine, Processor};
use loader_core::boot::Handover;
use loader_core::memory::Memory;
use loader_core::mp::{RECORD, drop_processor};
use loader_core::refusal::Refusal;
use loader_core::respond::Space;

use crate::apic::LocalApic;
use crate::clock::delay_us;
use crate::mtrr::Mtrrs;
use crate::switch::Switch;

/// What every processor is set up with.
pub struct Crew<'a> {
    /// The local APIC to send from.
    pub local_apic: LocalApic,
    /// Whether x2APIC mode is used.
    pub x2apic: bool,
    /// NMI pins.
    pub nmi_lines: &'a [NmiLine],
    /// The first processor's memory types.
    pub mtrrs: &'a Mtrrs,
}

/// What one started processor sets itself up with.
struct Setup<'a> {
    uid: u32,
    crew: &'a Crew<'a>,
}

/// Runs on a started processor, one to one mapped, on its own stack.
///
/// # Safety
/// Called by the switch code with the address of a [`Setup`] that lives until the processor
/// has parked.
unsafe extern "sysv64" fn set_up_processor(setup: *const Setup<'_>) {
    // SAFETY: by contract the pointer is good; the first processor waits meanwhile.
    let setup = unsafe { &*setup };
    // SAFETY: this processor does nothing else and is of the first one's kind; a processor
    // that was started by an APIC message has an APIC, whose window is mapped one to one.
    unsafe {
        setup.crew.mtrrs.apply();
        if let Ok(apic) = LocalApic::enable(setup.crew.x2apic) {
            apic.settle(setup.uid, setup.crew.nmi_lines);
        }
    }
}

/// Microseconds, about, that a processor has to arrive after each start-up message.
///
/// The first wait is the manual's 200 microseconds and a bit (Intel SDM volume 3, 10.4.4.1).
/// The second only ends for a processor that is dead: an emulator on a busy host, whose port
/// reads take less than a microsecond, may need long to give a living one its turn.
const PATIENCE_US: [u32; 2] = [300, 5_000_000];

/// Starts every processor of the MP response but the first; those that do not come are
/// taken off the list. Gives the number that did not come.
///
/// # Safety
/// The handover must be complete; `processors` is the list it was made with, the processor
/// we run on first; memory below 4 GiB and the loader are mapped one to one by the handover's
/// switch tables.
pub unsafe fn start_all(
    crew: &Crew<'_>,
    processors: &[Processor],
    handover: &mut Handover,
    switch: &Switch,
    space: &mut Space<'_, impl Memory>,
) -> Result<u32, Refusal> {
    let Some(mut layout) = handover.mp else { return Ok(0) };
    let mut missing = 0;
    for (index, processor) in (0u64..).zip(processors).skip(1) {
        let setup = Setup { uid: processor.uid, crew };
        let mut parameters = switch.parameters(handover);
        parameters.stack_top = handover.stack_top + index * handover.stack_size;
        parameters.setup = set_up_processor as *const () as u64;
        parameters.setup_argument = &raw const setup as u64;
        parameters.record = handover.hhdm + layout.records + index * RECORD;
        switch.set(&parameters);
        if !start(crew.local_apic, processor.apic_id, switch) {
            // Back to waiting, so that it cannot wake up with the next one's parameters.
            crew.local_apic.send_init(processor.apic_id);
            drop_processor(space, &mut layout, index - u64::from(missing))?;
            missing += 1;
        }
    }
    handover.mp = Some(layout);
    Ok(missing)
}

/// INIT, start-up, and a second start-up if the first was not heard. 64-bit processors need
/// no pause after INIT.
fn start(apic: LocalApic, apic_id: u32, switch: &Switch) -> bool {
    apic.send_init(apic_id);
    for patience_us in PATIENCE_US {
        apic.send_startup(apic_id, switch.page());
        for _ in 0..patience_us {
            if switch.has_arrived() {
                return true;
            }
            delay_us(1);
        }
    }
    false
}
