//! The memory a ring lives in, as the protocol sees it.
//!
//! The protocol names what it accesses (a shared word, an entry by index, a word of an inline
//! slot), never an address; the implementation masks the position to its own geometry. So the
//! protocol cannot express an access outside the block, whatever the other side wrote.
//!
//! An entry access is a copy: the kernel decides on the copy and never looks twice.

use abi_sync::BlockMemory;
use abi_sync::atomic::{Ordering, fence};
use abi_types::{INLINE_BYTES, RingBlock, RingWord};

/// Words of an inline slot.
pub const INLINE_WORDS: usize = INLINE_BYTES / 8;

/// A ring block. All accesses are atomic; those without an order in their name are relaxed.
pub trait Memory {
    /// The geometry every position is masked to.
    fn block(&self) -> RingBlock;

    /// Reads a shared word; what the writer did before its release store is visible after.
    fn load_acquire(&self, word: RingWord) -> u32;
    /// Reads a shared word, and orders nothing.
    fn load_relaxed(&self, word: RingWord) -> u32;
    /// Writes a shared word after everything before it.
    fn store_release(&self, word: RingWord, value: u32);
    /// Writes a shared word, and orders nothing.
    fn store_relaxed(&self, word: RingWord, value: u32);

    /// The SQE with this index, each word read once.
    fn load_sqe(&self, index: u32) -> [u64; 8];
    /// Writes the SQE with this index.
    fn store_sqe(&self, index: u32, words: [u64; 8]);
    /// The CQE with this index, each word read once.
    fn load_cqe(&self, index: u32) -> [u64; 4];
    /// Writes the CQE with this index.
    fn store_cqe(&self, index: u32, words: [u64; 4]);

    /// One word of the inline slot SQEs call by this number.
    fn load_sqe_inline(&self, slot: u32, word: usize) -> u64;
    /// Writes one word of the inline slot SQEs call by this number.
    fn store_sqe_inline(&self, slot: u32, word: usize, value: u64);
    /// One word of the inline slot of the CQE with this index.
    fn load_cqe_inline(&self, index: u32, word: usize) -> u64;
    /// Writes one word of the inline slot of the CQE with this index.
    fn store_cqe_inline(&self, index: u32, word: usize, value: u64);

    /// The first byte of the SQE with this index, which says what it asks for.
    #[inline]
    fn first_byte(&self, index: u32) -> u8 {
        let [first, ..] = self.load_sqe(index);
        first as u8
    }

    /// Reads of the SQE with this index, word by word.
    #[inline]
    fn sqe_words(&self, index: u32) -> impl Fn(usize) -> u64 {
        let words = self.load_sqe(index);
        move |word| words.get(word).copied().unwrap_or(0)
    }

    /// Reads of the inline slot SQEs call by this number, word by word: for a copy, which finds the
    /// slot once.
    #[inline]
    fn sqe_slot(&self, slot: u32) -> impl Fn(usize) -> u64 {
        move |word| self.load_sqe_inline(slot, word)
    }

    /// Writes of the inline slot of the CQE with this index, word by word.
    #[inline]
    fn cqe_slot(&self, index: u32) -> impl Fn(usize, u64) {
        move |word, value| self.store_cqe_inline(index, word, value)
    }

    /// Writes of the inline slot SQEs call by this number, word by word.
    #[inline]
    fn sqe_slot_mut(&self, slot: u32) -> impl Fn(usize, u64) {
        move |word, value| self.store_sqe_inline(slot, word, value)
    }

    /// Reads of the inline slot of the CQE with this index, word by word.
    #[inline]
    fn cqe_slot_read(&self, index: u32) -> impl Fn(usize) -> u64 {
        move |word| self.load_cqe_inline(index, word)
    }

    /// A full fence: a store before it is visible to others before a load after it reads.
    #[inline]
    fn full_fence(&self) {
        fence(Ordering::SeqCst);
    }
}

impl Memory for BlockMemory {
    #[inline]
    fn block(&self) -> RingBlock {
        self.block()
    }

    #[inline]
    fn load_acquire(&self, word: RingWord) -> u32 {
        self.word(word).load(core::sync::atomic::Ordering::Acquire)
    }

    #[inline]
    fn load_relaxed(&self, word: RingWord) -> u32 {
        self.word(word).load(RELAXED)
    }

    #[inline]
    fn store_release(&self, word: RingWord, value: u32) {
        self.word(word).store(value, core::sync::atomic::Ordering::Release);
    }

    #[inline]
    fn store_relaxed(&self, word: RingWord, value: u32) {
        self.word(word).store(value, RELAXED);
    }

    #[inline]
    fn load_sqe(&self, index: u32) -> [u64; 8] {
        self.sqe(index).each_ref().map(|word| word.load(RELAXED))
    }

    #[inline]
    fn store_sqe(&self, index: u32, words: [u64; 8]) {
        self.sqe(index).iter().zip(words).for_each(|(place, word)| place.store(word, RELAXED));
    }

    #[inline]
    fn load_cqe(&self, index: u32) -> [u64; 4] {
        self.cqe(index).each_ref().map(|word| word.load(RELAXED))
    }

    #[inline]
    fn store_cqe(&self, index: u32, words: [u64; 4]) {
        self.cqe(index).iter().zip(words).for_each(|(place, word)| place.store(word, RELAXED));
    }

    #[inline]
    fn load_sqe_inline(&self, slot: u32, word: usize) -> u64 {
        self.sqe_inline(slot).get(word % INLINE_WORDS).map_or(0, |place| place.load(RELAXED))
    }

    #[inline]
    fn store_sqe_inline(&self, slot: u32, word: usize, value: u64) {
        if let Some(place) = self.sqe_inline(slot).get(word % INLINE_WORDS) {
            place.store(value, RELAXED);
        }
    }

    #[inline]
    fn load_cqe_inline(&self, index: u32, word: usize) -> u64 {
        self.cqe_inline(index).get(word % INLINE_WORDS).map_or(0, |place| place.load(RELAXED))
    }

    #[inline]
    fn store_cqe_inline(&self, index: u32, word: usize, value: u64) {
        if let Some(place) = self.cqe_inline(index).get(word % INLINE_WORDS) {
            place.store(value, RELAXED);
        }
    }

    #[inline]
    fn first_byte(&self, index: u32) -> u8 {
        let [first, ..] = self.sqe(index);
        first.load(RELAXED) as u8
    }

    #[inline]
    fn sqe_words(&self, index: u32) -> impl Fn(usize) -> u64 {
        let words = self.sqe(index);
        move |word| words.get(word).map_or(0, |place| place.load(RELAXED))
    }

    #[inline]
    fn sqe_slot(&self, slot: u32) -> impl Fn(usize) -> u64 {
        let words = self.sqe_inline(slot);
        move |word| words.get(word % INLINE_WORDS).map_or(0, |place| place.load(RELAXED))
    }

    #[inline]
    fn cqe_slot(&self, index: u32) -> impl Fn(usize, u64) {
        let words = self.cqe_inline(index);
        move |word, value| {
            if let Some(place) = words.get(word % INLINE_WORDS) {
                place.store(value, RELAXED);
            }
        }
    }

    #[inline]
    fn sqe_slot_mut(&self, slot: u32) -> impl Fn(usize, u64) {
        let words = self.sqe_inline(slot);
        move |word, value| {
            if let Some(place) = words.get(word % INLINE_WORDS) {
                place.store(value, RELAXED);
            }
        }
    }

    #[inline]
    fn cqe_slot_read(&self, index: u32) -> impl Fn(usize) -> u64 {
        let words = self.cqe_inline(index);
        move |word| words.get(word % INLINE_WORDS).map_or(0, |place| place.load(RELAXED))
    }
}

const RELAXED: core::sync::atomic::Ordering = core::sync::atomic::Ordering::Relaxed;

impl<M: Memory> Memory for &M {
    #[inline]
    fn block(&self) -> RingBlock {
        (**self).block()
    }

    #[inline]
    fn load_acquire(&self, word: RingWord) -> u32 {
        (**self).load_acquire(word)
    }

    #[inline]
    fn load_relaxed(&self, word: RingWord) -> u32 {
        (**self).load_relaxed(word)
    }

    #[inline]
    fn store_release(&self, word: RingWord, value: u32) {
        (**self).store_release(word, value);
    }

    #[inline]
    fn store_relaxed(&self, word: RingWord, value: u32) {
        (**self).store_relaxed(word, value);
    }

    #[inline]
    fn load_sqe(&self, index: u32) -> [u64; 8] {
        (**self).load_sqe(index)
    }

    #[inline]
    fn store_sqe(&self, index: u32, words: [u64; 8]) {
        (**self).store_sqe(index, words);
    }

    #[inline]
    fn load_cqe(&self, index: u32) -> [u64; 4] {
        (**self).load_cqe(index)
    }

    #[inline]
    fn store_cqe(&self, index: u32, words: [u64; 4]) {
        (**self).store_cqe(index, words);
    }

    #[inline]
    fn load_sqe_inline(&self, slot: u32, word: usize) -> u64 {
        (**self).load_sqe_inline(slot, word)
    }

    #[inline]
    fn store_sqe_inline(&self, slot: u32, word: usize, value: u64) {
        (**self).store_sqe_inline(slot, word, value);
    }

    #[inline]
    fn load_cqe_inline(&self, index: u32, word: usize) -> u64 {
        (**self).load_cqe_inline(index, word)
    }

    #[inline]
    fn store_cqe_inline(&self, index: u32, word: usize, value: u64) {
        (**self).store_cqe_inline(index, word, value);
    }

    #[inline]
    fn first_byte(&self, index: u32) -> u8 {
        (**self).first_byte(index)
    }

    #[inline]
    fn sqe_slot(&self, slot: u32) -> impl Fn(usize) -> u64 {
        (**self).sqe_slot(slot)
    }

    #[inline]
    fn cqe_slot(&self, index: u32) -> impl Fn(usize, u64) {
        (**self).cqe_slot(index)
    }

    #[inline]
    fn sqe_slot_mut(&self, slot: u32) -> impl Fn(usize, u64) {
        (**self).sqe_slot_mut(slot)
    }

    #[inline]
    fn cqe_slot_read(&self, index: u32) -> impl Fn(usize) -> u64 {
        (**self).cqe_slot_read(index)
    }

    #[inline]
    fn full_fence(&self) {
        (**self).full_fence();
    }
}

static_assertions::const_assert!(INLINE_WORDS.is_power_of_two());
