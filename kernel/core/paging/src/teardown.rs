//! A tree that no CPU uses any more is taken apart, in steps of bounded length.
//!
//! Entries are not emptied: what is below the position is freed, and nothing reads it again. Frames that lie one
//! after the other are told as one run, so that whoever takes them back can do it block by block.

use crate::entry::{Level, Meaning};
use crate::tree::TableStore;
use core_address::Frame;

/// Entries of the root that are the space's own, not the kernel's.
const LOWER_HALF: usize = 256;
/// Levels of tables.
const LEVELS: usize = 4;

// What the parts of a step cost.
/// A run of frames, given back.
pub const COST_OF_A_RUN: u64 = 8;
/// Entries in use, or frames of one run, that cost as much as one.
const USED_PER_COST: u64 = 2;
/// Entries not in use that do.
const UNUSED_PER_COST: u64 = 16;

/// How far the lower half of a tree has been taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Teardown {
    /// The next entry to be looked at, in the table of each level that is being freed.
    next: [usize; LEVELS],
}

/// What a step gave back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Freed {
    /// Frames of pages.
    pub pages: u64,
    /// Tables, the root among them.
    pub tables: u64,
    /// Whether nothing is left.
    pub is_done: bool,
}

impl Teardown {
    /// At the beginning.
    pub const fn new() -> Self {
        Self { next: [0; LEVELS] }
    }

    /// Frees as much as costs about `budget`, tables and pages that are the space's own, by calls of `free` with
    /// the first frame of a run and how many there are. Once it says that nothing is left the tree is gone.
    pub fn step(
        &mut self,
        store: &impl TableStore,
        root: Frame,
        budget: u64,
        free: impl FnMut(Frame, u64),
    ) -> Freed {
        let (first, freed) = (Frame::default(), Freed::default());
        let mut step = Step { store, next: &mut self.next, free, first, count: 0, freed, budget };
        step.freed.is_done = step.table(root, Level::L4);
        step.end_run();
        step.freed
    }
}

/// A step on its way.
struct Step<'s, S, F> {
    store: &'s S,
    next: &'s mut [usize; LEVELS],
    free: F,
    /// The run that is being gathered.
    first: Frame,
    count: u64,
    freed: Freed,
    budget: u64,
}

impl<S: TableStore, F: FnMut(Frame, u64)> Step<'_, S, F> {
    /// Frees a table with everything below it; `false` if the budget ended before.
    fn table(&mut self, table: Frame, level: Level) -> bool {
        let is_done = match level.below() {
            Some(below) => self.upper_entries(table, level, below),
            None => self.lowest_entries(table),
        };
        if is_done {
            self.set_next(level, 0);
            self.freed.tables += 1;
            self.add(table, 1);
        }
        is_done
    }

    fn next(&self, level: Level) -> usize {
        self.next.get(level as usize).copied().unwrap_or(0)
    }

    fn set_next(&mut self, level: Level, index: usize) {
        if let Some(next) = self.next.get_mut(level as usize) {
            *next = index;
        }
    }

    /// The next entry in use of a table, from `from` on.
    #[inline]
    fn next_used(&mut self, table: Frame, from: usize, end: usize) -> Option<usize> {
        let found = self.store.next_used(table, from, end);
        let seen = found.unwrap_or(end).saturating_sub(from) as u64;
        self.budget = self.budget.saturating_sub(seen / UNUSED_PER_COST);
        found
    }

    fn upper_entries(&mut self, table: Frame, level: Level, below: Level) -> bool {
        let end = if level == Level::L4 { LOWER_HALF } else { 512 };
        // Before each look, which may go over a whole table; the next step begins where this one ended.
        while self.budget > 0 {
            let Some(index) = self.next_used(table, self.next(level), end) else { return true };
            self.set_next(level, index);
            match self.store.read(table, index).meaning(level) {
                Meaning::Table(lower) => {
                    if !self.table(lower, below) {
                        return false;
                    }
                }
                Meaning::Page(frame, rights) if !rights.shared => {
                    let frames = level.pages_per_entry();
                    self.freed.pages += frames;
                    self.add(frame, frames);
                }
                Meaning::Page(..) | Meaning::Empty => {}
            }
            self.set_next(level, index + 1);
        }
        false
    }

    fn lowest_entries(&mut self, table: Frame) -> bool {
        let mut index = self.next(Level::L1);
        let is_done = loop {
            if self.budget == 0 {
                break false;
            }
            let Some(used) = self.next_used(table, index, 512) else { break true };
            let Some(frame) = self.store.read(table, used).own_page() else {
                index = used + 1;
                continue;
            };
            let most = (self.budget * USED_PER_COST).min((512 - used) as u64) as usize;
            let pages = self.store.own_run(table, used, used + most, frame) as u64;
            index = used + pages as usize;
            self.freed.pages += pages;
            self.budget = self.budget.saturating_sub(pages / USED_PER_COST);
            self.add(frame, pages);
        };
        self.set_next(Level::L1, index);
        is_done
    }

    /// Frames are to be freed: more of the run that is gathered, or the beginning of the next.
    fn add(&mut self, frame: Frame, frames: u64) {
        if self.count > 0 && self.first.checked_add(self.count) == Some(frame) {
            self.count += frames;
        } else {
            self.end_run();
            (self.first, self.count) = (frame, frames);
        }
    }

    /// Gives back what is gathered.
    fn end_run(&mut self) {
        if self.count > 0 {
            self.budget = self.budget.saturating_sub(COST_OF_A_RUN);
            (self.free)(self.first, self.count);
            self.count = 0;
        }
    }
}
