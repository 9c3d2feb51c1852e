//! What a capability names.

use crate::paid::{NoMemory, PaidVec};
use core_cap::{Slot, Table};
use core_endpoint::EndpointKey;
use core_ledger::{CapSlots, Charge, Ledger};

/// The name of a process: where its record is, and which use of the record is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessKey {
    /// The position.
    pub slot: u32,
    /// The generation, odd.
    pub generation: u32,
}

const GENERATION_SHIFT: u32 = 32;

impl ProcessKey {
    /// What the bits of a record's name grow by when a process begins, and when it is gone.
    pub(crate) const ONE_GENERATION: u64 = 1 << GENERATION_SHIFT;

    /// As one word.
    #[inline(always)]
    pub const fn to_bits(self) -> u64 {
        self.slot as u64 | (self.generation as u64) << GENERATION_SHIFT
    }

    /// From that word.
    #[inline(always)]
    pub const fn from_bits(bits: u64) -> Self {
        Self { slot: bits as u32, generation: (bits >> GENERATION_SHIFT) as u32 }
    }

    /// The name of the next process at `slot`, where this was the last name; `None` if there is a process,
    /// or no name is left.
    pub(crate) const fn begun(self, slot: u32) -> Option<Self> {
        if self.generation % 2 == 1 || self.generation > u32::MAX - 2 {
            return None;
        }
        Some(Self { slot, generation: self.generation + 1 })
    }
}

/// An endpoint of some process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FacetOf {
    /// The process that serves it.
    pub process: ProcessKey,
    /// The endpoint there.
    pub endpoint: EndpointKey,
}

/// What a capability names: an object with ring operations of its own, or one of the machine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object<O> {
    /// The right to park and to wake.
    ParkSpace,
    /// The receiving side of an endpoint.
    Endpoint(FacetOf),
    /// A client's side of an endpoint.
    Facet(FacetOf),
    /// An object that the kernel serves, by calls alone.
    Other(O),
}

/// A process's capability table, which its account pays for: the memory, and each slot in use.
pub type CapTable<O> = Table<Object<O>, PaidVec<Slot<Object<O>>>, Charge<'static, CapSlots>>;

/// Slots of a table that are made between two preemption points.
const SLOTS_PER_PREEMPTION_POINT: u32 = 64;

/// An empty table of `limit` slots; `pause` is a preemption point.
pub fn new_table<O: Copy>(
    ledger: &'static Ledger,
    limit: u32,
    pause: impl Fn(),
) -> Result<CapTable<O>, NoMemory> {
    let count = limit.checked_next_power_of_two().ok_or(NoMemory::Machine)?;
    let mut slots = PaidVec::with_room(ledger, count as usize)?;
    for index in 0..count {
        slots.push(Slot::fresh(index, count))?;
        if index % SLOTS_PER_PREEMPTION_POINT == SLOTS_PER_PREEMPTION_POINT - 1 {
            pause();
        }
    }
    let payer = ledger.reserve(CapSlots, 0)?.commit();
    Table::of_fresh(payer, slots, limit).map_err(|_| NoMemory::Machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_free_at_even_generations_until_the_names_run_out() {
        let free = ProcessKey::from_bits(0);
        let first = free.begun(7).unwrap();
        assert_eq!(first, ProcessKey { slot: 7, generation: 1 });
        assert_eq!(first.begun(7), None);
        let gone = ProcessKey::from_bits(first.to_bits() + ProcessKey::ONE_GENERATION);
        assert_eq!(gone.begun(7), Some(ProcessKey { slot: 7, generation: 3 }));
        assert_eq!(ProcessKey { slot: 7, generation: u32::MAX - 1 }.begun(7), None);
    }
}
