//! Operations: what is executed between two entries of the measuring loop.

use std::collections::HashMap;

use crate::log::{Instruction, Visitor};
use crate::program::Program;

/// The instruction that enters the kernel.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// Where instructions were executed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The program's name.
    pub program: String,
    /// The function's.
    pub function: String,
}

/// Instructions by place, in the order the places were first come to.
pub type Counts = Vec<(usize, u64)>;

/// A translated block: its instructions by place, and whether it ends with the loop's entry.
struct Block {
    parts: Counts,
    is_entry: bool,
}

/// Follows a log and cuts it into operations.
pub struct Rounds<'p> {
    programs: &'p [Program],
    /// Whose loop it is, and part of the name of the function that has it.
    measuring: &'p str,
    function: &'p str,
    blocks: HashMap<u64, Block>,
    places: Vec<Place>,
    /// The operation that runs, once the first entry was seen.
    current: Option<Counts>,
    done: Vec<Counts>,
}

impl<'p> Rounds<'p> {
    /// Operations of the loop in `function` of the program `measuring`.
    pub fn new(programs: &'p [Program], measuring: &'p str, function: &'p str) -> Self {
        Self {
            programs,
            measuring,
            function,
            blocks: HashMap::new(),
            places: Vec::new(),
            current: None,
            done: Vec::new(),
        }
    }

    fn place(&mut self, program: &str, function: &str) -> usize {
        let is_it = |place: &Place| place.program == program && place.function == function;
        self.places.iter().position(is_it).unwrap_or_else(|| {
            let place = Place { program: program.to_owned(), function: function.to_owned() };
            self.places.push(place);
            self.places.len() - 1
        })
    }

    /// The middle one of all operations by length: its places with their instructions. `None` if
    /// there was none.
    pub fn middle(mut self) -> Option<Vec<(Place, u64)>> {
        self.done.sort_by_key(total);
        let middle = self.done.get(self.done.len() / 2)?;
        let named =
            |(place, count): &(usize, u64)| Some((self.places.get(*place)?.clone(), *count));
        middle.iter().map(named).collect()
    }
}

fn total(counts: &Counts) -> u64 {
    counts.iter().map(|(_, count)| count).sum()
}

fn add(counts: &mut Counts, place: usize, more: u64) {
    match counts.iter_mut().find(|(other, _)| *other == place) {
        Some((_, count)) => *count += more,
        None => counts.push((place, more)),
    }
}

impl Visitor for Rounds<'_> {
    fn translated(&mut self, key: u64, block: &[Instruction]) {
        let programs = self.programs;
        let program = programs.iter().find(|program| program.has(block));
        let mut parts = Counts::new();
        for instruction in block {
            let place = match program {
                Some(program) => self.place(&program.name, program.function(instruction.address)),
                None => self.place("?", "?"),
            };
            add(&mut parts, place, 1);
        }
        let is_entry = block.last().is_some_and(|last| {
            last.bytes == SYSCALL
                && program.is_some_and(|program| {
                    program.name == self.measuring
                        && program.function(last.address).contains(self.function)
                })
        });
        self.blocks.insert(key, Block { parts, is_entry });
    }

    fn executed(&mut self, key: u64) {
        let Some(block) = self.blocks.get(&key) else { return };
        if let Some(current) = &mut self.current {
            for (place, count) in &block.parts {
                add(current, *place, *count);
            }
        }
        if block.is_entry {
            self.done.extend(self.current.replace(Counts::new()));
        }
    }
}
