//! A block made of checked 32-bit words.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use abi_ring::{INLINE_WORDS, Memory};
use abi_sync::BlockMemory;
use abi_types::{RingBlock, RingWord};

/// The words of a block, by byte offset; an offset outside fails the test.
pub trait Words {
    /// Reads the word at `offset`.
    fn load(&self, offset: usize) -> u32;
    /// Writes the word at `offset`.
    fn store(&self, offset: usize, value: u32);
}

/// A ring block over [`Words`].
#[derive(Debug)]
pub struct WordMemory<W> {
    block: RingBlock,
    words: W,
}

impl<W: Words> WordMemory<W> {
    /// The block laid out as `block`.
    pub fn new(block: RingBlock, words: W) -> Self {
        Self { block, words }
    }

    /// The words.
    pub fn words(&self) -> &W {
        &self.words
    }

    fn load_u64(&self, offset: usize) -> u64 {
        u64::from(self.words.load(offset)) | u64::from(self.words.load(offset + 4)) << 32
    }

    fn store_u64(&self, offset: usize, value: u64) {
        self.words.store(offset, value as u32);
        self.words.store(offset + 4, (value >> 32) as u32);
    }

    fn inline_offset(slot: usize, word: usize) -> usize {
        assert!(word < INLINE_WORDS, "word {word} is outside its inline slot");
        slot + 8 * word
    }
}

/// The real block, in memory of its own that is never given back.
pub fn real_block(sq_entries: u32) -> BlockMemory {
    let block = RingBlock::new(sq_entries).expect("a power of two within the limit");
    // A line more, to begin at a line.
    let words: Vec<AtomicU64> = (0..block.size() / 8 + 8).map(|_| AtomicU64::new(0)).collect();
    let words: &'static [AtomicU64] = words.leak();
    let skipped = words.as_ptr().align_offset(64);
    BlockMemory::over(&words[skipped..], block).expect("long enough and aligned")
}

/// Memory that does what it is told.
pub type PlainMemory = WordMemory<Vec<AtomicU32>>;

impl PlainMemory {
    /// Zeroed memory of a ring with so many submission entries.
    pub fn zeroed(sq_entries: u32) -> Self {
        let block = RingBlock::new(sq_entries).expect("a power of two within the limit");
        let words = (0..block.size() / 4).map(|_| AtomicU32::new(0)).collect();
        Self::new(block, words)
    }
}

impl Words for Vec<AtomicU32> {
    fn load(&self, offset: usize) -> u32 {
        self[aligned(offset)].load(Ordering::Acquire)
    }

    fn store(&self, offset: usize, value: u32) {
        self[aligned(offset)].store(value, Ordering::Release);
    }
}

fn aligned(offset: usize) -> usize {
    assert!(offset.is_multiple_of(4), "offset {offset} is not a word's");
    offset / 4
}

impl<W: Words> Memory for WordMemory<W> {
    fn block(&self) -> RingBlock {
        self.block
    }

    fn load_acquire(&self, word: RingWord) -> u32 {
        self.words.load(word.offset())
    }

    fn load_relaxed(&self, word: RingWord) -> u32 {
        self.words.load(word.offset())
    }

    fn store_release(&self, word: RingWord, value: u32) {
        self.words.store(word.offset(), value);
    }

    fn store_relaxed(&self, word: RingWord, value: u32) {
        self.words.store(word.offset(), value);
    }

    fn load_sqe(&self, index: u32) -> [u64; 8] {
        std::array::from_fn(|word| self.load_u64(self.block.sqe(index) + 8 * word))
    }

    fn store_sqe(&self, index: u32, words: [u64; 8]) {
        for (word, value) in words.into_iter().enumerate() {
            self.store_u64(self.block.sqe(index) + 8 * word, value);
        }
    }

    fn load_cqe(&self, index: u32) -> [u64; 4] {
        std::array::from_fn(|word| self.load_u64(self.block.cqe(index) + 8 * word))
    }

    fn store_cqe(&self, index: u32, words: [u64; 4]) {
        for (word, value) in words.into_iter().enumerate() {
            self.store_u64(self.block.cqe(index) + 8 * word, value);
        }
    }

    fn load_sqe_inline(&self, slot: u32, word: usize) -> u64 {
        self.load_u64(Self::inline_offset(self.block.sqe_inline(slot), word))
    }

    fn store_sqe_inline(&self, slot: u32, word: usize, value: u64) {
        self.store_u64(Self::inline_offset(self.block.sqe_inline(slot), word), value);
    }

    fn load_cqe_inline(&self, index: u32, word: usize) -> u64 {
        self.load_u64(Self::inline_offset(self.block.cqe_inline(index), word))
    }

    fn store_cqe_inline(&self, index: u32, word: usize, value: u64) {
        self.store_u64(Self::inline_offset(self.block.cqe_inline(index), word), value);
    }
}
