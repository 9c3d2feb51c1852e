//! The MP response: one record a processor, which its parked processor polls.

use crate::acpi::Processor;
use crate::memory::Memory;
use crate::refusal::Refusal;
use crate::respond::Heap;
use crate::respond::Space;

/// Bytes of a processor's record.
pub const RECORD: u64 = 32;

/// Offset of the address a parked processor jumps to once it is not null.
pub const GOTO_OFFSET: u64 = 16;

/// Where the MP response lies (physical addresses).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpLayout {
    /// The response.
    pub response: u64,
    /// The array of pointers.
    pub pointers: u64,
    /// The records, one after the other, in the order of the processor list.
    pub records: u64,
    /// Records in use.
    pub count: u64,
}

/// Writes response, pointers and records for `processors`.
pub fn build(
    space: &mut Space<'_, impl Memory>,
    heap: &mut Heap,
    processors: &[Processor],
    bsp_apic_id: u32,
    x2apic: bool,
) -> Result<MpLayout, Refusal> {
    let count = processors.len() as u64;
    let records = heap.take(space, count * RECORD, 16)?;
    let pointers = heap.take(space, count * 8, 8)?;
    for (index, processor) in (0u64..).zip(processors) {
        let record = records + index * RECORD;
        let ids = u64::from(processor.uid) | u64::from(processor.apic_id) << 32;
        space.put(record, &[ids, 0, 0, 0])?;
        space.put(pointers + index * 8, &[space.virt(record)])?;
    }
    let flags = u64::from(x2apic) | u64::from(bsp_apic_id) << 32;
    let words = [0, flags, count, space.virt(pointers)];
    let response = heap.words(space, &words)?;
    Ok(MpLayout { response, pointers, records, count })
}

/// Takes the processor at `index` of the pointer array off the list: it did not start.
pub fn drop_processor(
    space: &mut Space<'_, impl Memory>,
    layout: &mut MpLayout,
    index: u64,
) -> Result<(), Refusal> {
    for later in index + 1..layout.count {
        let pointer = space.get(layout.pointers + later * 8)?;
        space.put(layout.pointers + (later - 1) * 8, &[pointer])?;
    }
    layout.count -= 1;
    space.put(layout.response + 16, &[layout.count])
}
