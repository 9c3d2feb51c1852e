//! Operations: what is executed between two entries of the measuring loop.

use std::collections::HashMap;

use crate::log::{Instruction, Visitor};
use crate::program::Program;

/// The instruction that enters the kernel.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// A translated block: whose it is, where its instructions are, whether it ends with the loop's
/// entry.
struct Block {
    program: Option<usize>,
    addresses: Vec<u64>,
    is_entry: bool,
}

/// How often the instruction at an address of a program was executed; `None` is code of nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// The program's position among those given.
    pub program: Option<usize>,
    /// The instruction's address.
    pub address: u64,
    /// How often.
    pub count: u64,
}

/// Follows a log and cuts it into operations.
pub struct Rounds<'p> {
    programs: &'p [Program],
    /// Whose loop it is, and part of the name of the function that has it.
    measuring: &'p str,
    function: &'p str,
    /// All translations, and which of them a key names at the moment.
    blocks: Vec<Block>,
    now: HashMap<u64, usize>,
    /// Blocks of the operation that runs, once the first entry was seen.
    current: Option<Vec<usize>>,
    done: Vec<Vec<usize>>,
}

impl<'p> Rounds<'p> {
    /// Operations of the loop in `function` of the program `measuring`.
    pub fn new(programs: &'p [Program], measuring: &'p str, function: &'p str) -> Self {
        let (blocks, now, done) = (Vec::new(), HashMap::new(), Vec::new());
        Self { programs, measuring, function, blocks, now, current: None, done }
    }

    /// The middle one of all operations by length, an entry for each instruction; `None` if there
    /// was no operation.
    pub fn middle(mut self) -> Option<Vec<Executed>> {
        let blocks = &self.blocks;
        self.done.sort_by_key(|round| -> usize {
            round.iter().filter_map(|block| Some(blocks.get(*block)?.addresses.len())).sum()
        });
        let middle = self.done.get(self.done.len() / 2)?;
        let mut counts: HashMap<(Option<usize>, u64), u64> = HashMap::new();
        for block in middle.iter().filter_map(|block| blocks.get(*block)) {
            for address in &block.addresses {
                *counts.entry((block.program, *address)).or_default() += 1;
            }
        }
        let entry = |((program, address), count)| Executed { program, address, count };
        let mut executed: Vec<Executed> = counts.into_iter().map(entry).collect();
        executed.sort_by_key(|entry| (entry.program, entry.address));
        Some(executed)
    }
}

impl Visitor for Rounds<'_> {
    fn translated(&mut self, key: u64, block: &[Instruction]) {
        let program = self.programs.iter().position(|program| program.has(block));
        let is_entry = match (program.and_then(|index| self.programs.get(index)), block.last()) {
            (Some(program), Some(last)) => {
                last.bytes == SYSCALL
                    && program.name == self.measuring
                    && program.function(last.address).contains(self.function)
            }
            _ => false,
        };
        let addresses = block.iter().map(|instruction| instruction.address).collect();
        self.now.insert(key, self.blocks.len());
        self.blocks.push(Block { program, addresses, is_entry });
    }

    fn executed(&mut self, key: u64) {
        let Some(index) = self.now.get(&key) else { return };
        if let Some(current) = &mut self.current {
            current.push(*index);
        }
        if self.blocks.get(*index).is_some_and(|block| block.is_entry) {
            self.done.extend(self.current.replace(Vec::new()));
        }
    }
}
