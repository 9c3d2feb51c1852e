//! Gates: meeting points of a fixed number of threads of one process, which wait at a word of its memory.

use crate::Machine;
use crate::sim::Sim;
use core_sched_policy::Policy;
use kernel_ops::machine::Space;

/// Where the words of gates are in the memory of each process that has some.
const WORDS: u64 = 0x10_0000;
/// Bytes of a word.
const WORD_BYTES: u64 = 4;
/// Pages of words: more gates than any workload has.
const PAGES: u64 = 4;

/// A gate, as the threads that share its memory see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gate {
    size: u64,
    missing: u64,
    /// How often it has opened: what the word holds.
    round: u32,
}

/// What one who comes to a gate does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Waits while the word has that value.
    Waits { word: u64, round: u32 },
    /// Was the last: wakes the others.
    Opens { word: u64 },
}

impl<P: Policy + 'static> Machine<P> {
    /// Makes a gate for that many threads of one process; its number.
    pub fn add_gate(&mut self, size: u64) -> usize {
        self.sim.with(|w| {
            w.gates.push(Gate { size, missing: size, round: 0 });
            w.gates.len() - 1
        })
    }
}

impl<P: Policy + 'static> Sim<P> {
    /// A thread of that process comes to a gate.
    pub(crate) fn come(self, process: u32, gate: usize) -> Arrival {
        let word = WORDS + gate as u64 * WORD_BYTES;
        let before = self.with(|w| {
            w.gates[gate].missing -= 1;
            w.gates[gate]
        });
        let space = self.must("finding a gate's memory", self.space_of(process).ok_or("none"));
        if space.load_u32(word) != Ok(before.round) {
            // The first of the process to come to a gate.
            if space.load_u32(word).is_err() {
                space.map(WORDS, PAGES, true);
            }
            space.store_u32(word, before.round);
        }
        if before.missing > 0 {
            return Arrival::Waits { word, round: before.round };
        }
        let round = before.round.wrapping_add(1);
        self.with(|w| w.gates[gate] = Gate { missing: before.size, round, ..before });
        space.store_u32(word, round);
        Arrival::Opens { word }
    }

    /// Whether a gate has opened since that round.
    pub(crate) fn has_opened(self, gate: usize, round: u32) -> bool {
        self.with(|w| w.gates[gate].round != round)
    }
}
