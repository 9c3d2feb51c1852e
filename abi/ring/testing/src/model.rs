//! A block whose unordered accesses a model finds.
//!
//! Index words are atomics of the model; entries and inline slots are plain data. A planted
//! weakness leaves one order or fence out, so that a model can show that it would notice.

use abi_ring::{INLINE_WORDS, Memory};
use abi_sync::CheckedCell;
use abi_sync::atomic::{AtomicU32, Ordering, fence};
use abi_types::{RingBlock, RingWord};

/// What is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weakness {
    /// Nothing.
    None,
    /// This word is stored without release.
    Unreleased(RingWord),
    /// This word is loaded without acquire.
    Unacquired(RingWord),
    /// Full fences.
    Fences,
    /// Credits: the completion queue always reads as empty.
    Credits,
}

/// A block in a model.
#[derive(Debug)]
pub struct ModelMemory {
    block: RingBlock,
    weakness: Weakness,
    words: [AtomicU32; 7],
    sqes: Vec<CheckedCell<[u64; 8]>>,
    cqes: Vec<CheckedCell<[u64; 4]>>,
    sqe_inline: Vec<CheckedCell<[u64; INLINE_WORDS]>>,
    cqe_inline: Vec<CheckedCell<[u64; INLINE_WORDS]>>,
}

impl ModelMemory {
    /// Zeroed memory of a ring with so many submission entries.
    pub fn new(sq_entries: u32, weakness: Weakness) -> Self {
        let block = RingBlock::new(sq_entries).expect("a power of two within the limit");
        let (sq, cq) = (block.sq_entries(), block.cq_entries());
        Self {
            block,
            weakness,
            words: std::array::from_fn(|_| AtomicU32::new(0)),
            sqes: (0..sq).map(|_| CheckedCell::new([0; 8])).collect(),
            cqes: (0..cq).map(|_| CheckedCell::new([0; 4])).collect(),
            sqe_inline: (0..sq).map(|_| CheckedCell::new([0; INLINE_WORDS])).collect(),
            cqe_inline: (0..cq).map(|_| CheckedCell::new([0; INLINE_WORDS])).collect(),
        }
    }

    fn word(&self, word: RingWord) -> &AtomicU32 {
        let position = match word {
            RingWord::SqTail => 0,
            RingWord::CqHead => 1,
            RingWord::SqHead => 2,
            RingWord::CqTail => 3,
            RingWord::Flags => 4,
            RingWord::SqEntries => 5,
            RingWord::CqEntries => 6,
        };
        &self.words[position]
    }

    fn sq_position(&self, index: u32) -> usize {
        (index & (self.block.sq_entries() - 1)) as usize
    }

    fn cq_position(&self, index: u32) -> usize {
        (index & (self.block.cq_entries() - 1)) as usize
    }
}

impl Memory for ModelMemory {
    fn block(&self) -> RingBlock {
        self.block
    }

    fn load_acquire(&self, word: RingWord) -> u32 {
        if self.weakness == Weakness::Credits && word == RingWord::CqHead {
            return self.word(RingWord::CqTail).load(Ordering::Relaxed);
        }
        let weak = self.weakness == Weakness::Unacquired(word);
        self.word(word).load(if weak { Ordering::Relaxed } else { Ordering::Acquire })
    }

    fn load_relaxed(&self, word: RingWord) -> u32 {
        self.word(word).load(Ordering::Relaxed)
    }

    fn store_release(&self, word: RingWord, value: u32) {
        let weak = self.weakness == Weakness::Unreleased(word);
        self.word(word).store(value, if weak { Ordering::Relaxed } else { Ordering::Release });
    }

    fn store_relaxed(&self, word: RingWord, value: u32) {
        self.word(word).store(value, Ordering::Relaxed);
    }

    fn load_sqe(&self, index: u32) -> [u64; 8] {
        self.sqes[self.sq_position(index)].get()
    }

    fn store_sqe(&self, index: u32, words: [u64; 8]) {
        self.sqes[self.sq_position(index)].update(|entry| *entry = words);
    }

    fn load_cqe(&self, index: u32) -> [u64; 4] {
        self.cqes[self.cq_position(index)].get()
    }

    fn store_cqe(&self, index: u32, words: [u64; 4]) {
        self.cqes[self.cq_position(index)].update(|entry| *entry = words);
    }

    fn load_sqe_inline(&self, slot: u32, word: usize) -> u64 {
        self.sqe_inline[self.sq_position(slot)].get()[word]
    }

    fn store_sqe_inline(&self, slot: u32, word: usize, value: u64) {
        self.sqe_inline[self.sq_position(slot)].update(|slot| slot[word] = value);
    }

    fn load_cqe_inline(&self, index: u32, word: usize) -> u64 {
        self.cqe_inline[self.cq_position(index)].get()[word]
    }

    fn store_cqe_inline(&self, index: u32, word: usize, value: u64) {
        self.cqe_inline[self.cq_position(index)].update(|slot| slot[word] = value);
    }

    fn full_fence(&self) {
        if self.weakness != Weakness::Fences {
            fence(Ordering::SeqCst);
        }
    }
}
