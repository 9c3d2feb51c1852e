//! Physical frame allocator core: a binary buddy over bitmaps the caller lends.
//!
//! It decides which frames are handed out; it never touches the memory they name. One bitmap
//! per block size says which blocks are free, one says which frames it manages at all and one which of them are
//! handed out, so that a wrong release (never managed, already free, misaligned) is refused and changes nothing.
//! The lowest free address is handed out first, which keeps runs repeatable.
//!
//! Cost: allocate takes a few word operations per order; release looks at one word for each 64 frames, and at one
//! for each block it is joined with. Setting up costs four bits of bitmap per frame, and adding memory costs one step
//! per maximal block, not per frame.
#![no_std]

mod bits;

use bits::{BitTree, in_a_word, masks};
use core_address::{Frame, FrameRange};

/// A block's size: 2^order frames.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Order(u8);

/// Number of block sizes: 4 KiB to 4 MiB, so that 2 MiB pages and megabyte-sized tables are one block.
const ORDERS: usize = 11;

impl Order {
    /// One frame.
    pub const FRAME: Order = Order(0);
    /// The 512 frames of a 2 MiB page.
    pub const HUGE: Order = Order(9);
    /// The largest block.
    pub const MAX: Order = Order(ORDERS as u8 - 1);

    /// 2^`order` frames, if the allocator has blocks of that size.
    pub const fn new(order: u8) -> Option<Order> {
        if order <= Self::MAX.0 { Some(Order(order)) } else { None }
    }

    /// The smallest block with at least `frames` frames.
    pub fn for_frames(frames: u64) -> Option<Order> {
        let order = frames.max(1).checked_next_power_of_two()?.trailing_zeros();
        u8::try_from(order).ok().and_then(Self::new)
    }

    /// Frames in a block.
    pub const fn frames(self) -> u64 {
        1 << self.0
    }

    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Why memory could not be added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddError {
    /// It lies beyond the span the allocator was made for.
    BeyondSpan,
    /// Some of it is already managed.
    AlreadyManaged,
}

/// Why a block could not be released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReleaseError {
    /// The first frame is no multiple of the block's size.
    Misaligned,
    /// Some frame of it was never given to the allocator.
    NotManaged,
    /// Some frame of it is free.
    AlreadyFree,
}

/// How many frames there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Given to the allocator.
    pub managed: u64,
    /// Of these, free now.
    pub free: u64,
}

impl Counts {
    /// Handed out and not yet released.
    pub const fn used(self) -> u64 {
        self.managed - self.free
    }
}

/// The allocator, for frames `0..span`.
pub struct Frames<'a> {
    span: usize,
    free: [BitTree<'a>; ORDERS],
    managed: &'a mut [u64],
    /// Those handed out and not released.
    taken: &'a mut [u64],
    counts: Counts,
}

/// Whether the bits of a range are all as in `pattern` (all ones or all zeros).
#[inline]
fn all(words: &[u64], start: usize, count: usize, pattern: u64) -> bool {
    let is_so = |(i, m): (usize, u64)| words.get(i).is_some_and(|w| (w ^ pattern) & m == 0);
    match in_a_word(start, count) {
        Some(part) => is_so(part),
        None => masks(start, count).all(is_so),
    }
}

/// Sets the bits of a range, or clears them.
#[inline]
fn set(words: &mut [u64], start: usize, count: usize, value: bool) {
    let mut write = |(index, mask): (usize, u64)| {
        if let Some(word) = words.get_mut(index) {
            *word = if value { *word | mask } else { *word & !mask };
        }
    };
    match in_a_word(start, count) {
        Some(part) => write(part),
        None => masks(start, count).for_each(write),
    }
}

fn blocks_in(span: usize, order: usize) -> usize {
    span >> order
}

impl<'a> Frames<'a> {
    /// Words of storage for an allocator of frames `0..span`.
    pub fn words_needed(span: usize) -> usize {
        let trees: usize = (0..ORDERS).map(|o| BitTree::words_needed(blocks_in(span, o))).sum();
        trees + 2 * span.div_ceil(64)
    }

    /// An allocator that manages nothing yet; `None` if `storage` has fewer words than needed.
    pub fn new(span: usize, storage: &'a mut [u64]) -> Option<Self> {
        let (managed, rest) = storage.split_at_mut_checked(span.div_ceil(64))?;
        let (taken, mut rest) = rest.split_at_mut_checked(span.div_ceil(64))?;
        managed.fill(0);
        taken.fill(0);
        let mut trees = [const { None }; ORDERS];
        for (order, tree) in trees.iter_mut().enumerate() {
            let bits = blocks_in(span, order);
            let (words, tail) = rest.split_at_mut_checked(BitTree::words_needed(bits))?;
            rest = tail;
            *tree = Some(BitTree::new(bits, words)?);
        }
        // Every entry is Some here; `each` only has no fallible form.
        if trees.iter().any(Option::is_none) {
            return None;
        }
        let [a, b, c, d, e, f, g, h, i, j, k] = trees;
        let free = [a?, b?, c?, d?, e?, f?, g?, h?, i?, j?, k?];
        Some(Self { span, free, managed, taken, counts: Counts::default() })
    }

    /// Gives the allocator a range of frames, all free.
    pub fn add(&mut self, range: FrameRange) -> Result<(), AddError> {
        let (start, count) = self.indices(range).ok_or(AddError::BeyondSpan)?;
        if !all(self.managed, start, count, 0) {
            return Err(AddError::AlreadyManaged);
        }
        set(self.managed, start, count, true);
        self.insert_blocks(start, count);
        self.counts.managed += count as u64;
        self.counts.free += count as u64;
        Ok(())
    }

    /// Hands out a block, the lowest that fits best; `None` when there is none.
    pub fn allocate(&mut self, order: Order) -> Option<Frame> {
        let (at, found) = (order.index()..ORDERS)
            .find_map(|o| self.free.get(o).and_then(BitTree::first).map(|block| (block << o, o)))?;
        self.remove(at, found);
        for half in (order.index()..found).rev() {
            self.insert(at + (1 << half), half);
        }
        set(self.taken, at, 1 << order.index(), true);
        self.counts.free -= order.frames();
        Frame::new(at as u64)
    }

    /// Takes a block back. A larger block may come back in parts.
    pub fn release(&mut self, frame: Frame, order: Order) -> Result<(), ReleaseError> {
        let end = frame.checked_add(order.frames()).ok_or(ReleaseError::NotManaged)?;
        let range = FrameRange::new(frame, end).ok_or(ReleaseError::NotManaged)?;
        let (start, count) = self.indices(range).ok_or(ReleaseError::NotManaged)?;
        if start % count != 0 {
            return Err(ReleaseError::Misaligned);
        }
        self.give_back(start, count)?;
        self.insert_merged(start, order.index());
        Ok(())
    }

    /// Takes frames back that lie one after the other, each handed out by itself or as part of a block.
    pub fn release_run(&mut self, first: Frame, count: u64) -> Result<(), ReleaseError> {
        let end = first.checked_add(count).ok_or(ReleaseError::NotManaged)?;
        let range = FrameRange::new(first, end).ok_or(ReleaseError::NotManaged)?;
        let (start, count) = self.indices(range).ok_or(ReleaseError::NotManaged)?;
        self.give_back(start, count)?;
        self.insert_blocks(start, count);
        Ok(())
    }

    /// How many frames are managed and free.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Compares the bitmaps with each other and with the counts; says what does not hold.
    pub fn check_invariants(&self) -> Result<(), &'static str> {
        let managed: u64 = self.managed.iter().map(|w| u64::from(w.count_ones())).sum();
        if managed != self.counts.managed {
            return Err("the managed count differs from the managed bits");
        }
        let mut free = 0;
        for (order, tree) in self.free.iter().enumerate() {
            free += (tree.count() as u64) << order;
            if !tree.summaries_hold() {
                return Err("a summary bit differs from the words below it");
            }
        }
        if free != self.counts.free {
            return Err("the free count differs from the free blocks");
        }
        let taken: u64 = self.taken.iter().map(|w| u64::from(w.count_ones())).sum();
        if taken != self.counts.used() {
            return Err("the count of frames handed out differs from their bits");
        }
        for (order, tree) in self.free.iter().enumerate() {
            for block in tree.members() {
                if !all(self.managed, block << order, 1 << order, u64::MAX) {
                    return Err("a free block is not managed");
                }
                if !all(self.taken, block << order, 1 << order, 0) {
                    return Err("a frame of a free block is handed out");
                }
                if (order + 1..ORDERS).any(|o| self.is_free(block >> (o - order), o)) {
                    return Err("a free block lies inside another");
                }
                if order + 1 < ORDERS && self.is_free(block ^ 1, order) {
                    return Err("two free buddies are not merged");
                }
            }
        }
        Ok(())
    }

    /// Notes that frames are no longer handed out, all of which are.
    #[inline]
    fn give_back(&mut self, start: usize, count: usize) -> Result<(), ReleaseError> {
        let is_taken = all(self.taken, start, count, u64::MAX);
        if !is_taken {
            let is_managed = all(self.managed, start, count, u64::MAX);
            return Err(if is_managed {
                ReleaseError::AlreadyFree
            } else {
                ReleaseError::NotManaged
            });
        }
        set(self.taken, start, count, false);
        self.counts.free += count as u64;
        Ok(())
    }

    fn indices(&self, range: FrameRange) -> Option<(usize, usize)> {
        let start = usize::try_from(range.start().number()).ok()?;
        let end = usize::try_from(range.end().number()).ok()?;
        (end <= self.span).then_some((start, end - start))
    }

    fn is_free(&self, block: usize, order: usize) -> bool {
        self.free.get(order).is_some_and(|tree| tree.contains(block))
    }

    fn insert(&mut self, at: usize, order: usize) {
        if let Some(tree) = self.free.get_mut(order) {
            tree.insert(at >> order);
        }
    }

    fn remove(&mut self, at: usize, order: usize) {
        if let Some(tree) = self.free.get_mut(order) {
            tree.remove(at >> order);
        }
    }

    /// Makes frames free, in the largest blocks they make.
    fn insert_blocks(&mut self, start: usize, count: usize) {
        let mut at = start;
        while at < start + count {
            // The largest block that is aligned here and does not reach past the end.
            let fits = (start + count - at).ilog2() as usize;
            let order = (at.trailing_zeros() as usize).min(fits).min(ORDERS - 1);
            self.insert_merged(at, order);
            at += 1 << order;
        }
    }

    /// Makes a block free, joined with its buddy for as long as that one is free too.
    fn insert_merged(&mut self, at: usize, order: usize) {
        let (mut at, mut order) = (at, order);
        while order + 1 < ORDERS && self.is_free((at >> order) ^ 1, order) {
            self.remove(at ^ (1 << order), order);
            at &= !(1 << order);
            order += 1;
        }
        self.insert(at, order);
    }
}
