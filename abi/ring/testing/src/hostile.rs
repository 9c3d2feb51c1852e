//! Memory that changes between any two reads, as a script of bytes says.
//!
//! At each read of a word the script decides: the true value, one near it, an extreme one, or
//! any. When it has run out, reads are true. Every write must be to what the kernel writes.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use abi_types::{RingBlock, RingWord};

use crate::words::{WordMemory, Words};

/// A block whose user is an enemy.
pub type HostileMemory = WordMemory<HostileWords>;

/// The words of such a block.
#[derive(Debug)]
pub struct HostileWords {
    block: RingBlock,
    words: RefCell<Vec<u32>>,
    script: RefCell<VecDeque<u8>>,
    armed: Cell<bool>,
}

impl HostileMemory {
    /// A ring with so many submission entries, whose reads follow `script` once it is armed.
    pub fn scripted(sq_entries: u32, script: &[u8]) -> Self {
        let block = RingBlock::new(sq_entries).expect("a power of two within the limit");
        let words = HostileWords {
            block,
            words: RefCell::new(vec![0; block.size() / 4]),
            script: RefCell::new(script.iter().copied().collect()),
            armed: Cell::new(false),
        };
        Self::new(block, words)
    }
}

impl HostileWords {
    /// From now on the memory is the enemy's.
    pub fn arm(&self) {
        self.armed.set(true);
    }

    /// The next byte of the script; `None` at its end.
    pub fn next(&self) -> Option<u8> {
        self.script.borrow_mut().pop_front()
    }

    /// The next four bytes of the script, zeros past its end.
    pub fn next_word(&self) -> u32 {
        u32::from_le_bytes(std::array::from_fn(|_| self.next().unwrap_or(0)))
    }

    /// The enemy writes a word somewhere, as the script says.
    pub fn scribble(&self) {
        let position = self.next_word() as usize % (self.block.size() / 4);
        let value = self.next_word();
        self.words.borrow_mut()[position] = value;
    }

    fn lie(&self, truth: u32) -> u32 {
        match self.next() {
            None | Some(0..=127) => truth,
            Some(near @ 128..=191) => truth.wrapping_add(u32::from(near & 63)).wrapping_sub(32),
            Some(extreme @ 192..=223) => (u32::MAX >> (extreme & 31)).wrapping_add(truth & 1),
            Some(224..=255) => self.next_word(),
        }
    }

    fn kernel_writes(&self, offset: usize) -> bool {
        let block = self.block;
        let outputs = [RingWord::SqHead, RingWord::CqTail, RingWord::Flags].map(RingWord::offset);
        outputs.contains(&offset)
            || (block.cqe(0)..block.sqe_inline(0)).contains(&offset)
            || (block.cqe_inline(0)..block.size()).contains(&offset)
    }
}

impl Words for HostileWords {
    fn load(&self, offset: usize) -> u32 {
        let truth = self.words.borrow()[offset / 4];
        if !self.armed.get() {
            return truth;
        }
        let lie = self.lie(truth);
        self.words.borrow_mut()[offset / 4] = lie;
        lie
    }

    fn store(&self, offset: usize, value: u32) {
        assert!(
            !self.armed.get() || self.kernel_writes(offset),
            "the kernel wrote to offset {offset}, which is the user's"
        );
        self.words.borrow_mut()[offset / 4] = value;
    }
}
