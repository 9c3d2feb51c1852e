//! A worker's queue of runnable fibers: bounded, first in first out, half of it stolen at once.
//!
//! One owner pushes at the tail; owner and thieves take at the head. Head and tail only grow, as
//! 64-bit numbers, so a compare-and-swap on the head never mistakes a later round for an earlier.
//!
//! # Orders
//!
//! - The owner writes a slot, then the tail (release); a thief reads the tail (acquire), then the
//!   slot: a counted slot is a written one, and the fiber behind it is complete.
//! - A taker reads slots, then moves the head (release); the owner reads the head (acquire) before it
//!   writes a slot again: no slot is overwritten before it has been read. A thief that read slots
//!   which the owner overwrote meanwhile fails its swap, because the head had moved.
//!
//! Decided in ADR 101.

use core::ptr;

use abi_sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::planted::{Defect, is_planted, order};

/// The queue, of at most `N` pointers, `N` a power of two.
#[derive(Debug)]
pub struct RunQueue<T, const N: usize> {
    head: Line<AtomicU64>,
    tail: Line<AtomicU64>,
    slots: [AtomicPtr<T>; N],
}

/// Alone on its cache line: thieves write the head, the owner writes the tail.
#[derive(Debug)]
#[repr(align(64))]
struct Line<T>(T);

impl<T, const N: usize> Default for RunQueue<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> RunQueue<T, N> {
    const MASK: u64 = {
        assert!(N.is_power_of_two());
        N as u64 - 1
    };

    /// An empty queue.
    pub fn new() -> Self {
        Self {
            head: Line(AtomicU64::new(0)),
            tail: Line(AtomicU64::new(0)),
            slots: core::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        }
    }

    #[inline]
    fn slot(&self, index: u64) -> Option<&AtomicPtr<T>> {
        self.slots.get((index & Self::MASK) as usize)
    }

    #[inline]
    fn read(&self, index: u64) -> *mut T {
        self.slot(index).map_or(ptr::null_mut(), |slot| slot.load(Ordering::Relaxed))
    }

    /// How many are queued; old as soon as it is read, but by the owner never too few.
    #[inline]
    pub fn len(&self) -> usize {
        let head = self.head.0.load(Ordering::Acquire);
        let tail = self.tail.0.load(Ordering::Acquire);
        tail.saturating_sub(head) as usize
    }

    /// Whether nothing is queued; old as soon as it is read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Queues `item`. By the owner. A full queue gives it back.
    #[inline]
    pub fn push(&self, item: *mut T) -> Result<(), *mut T> {
        // Acquire: pairs with the takers' release, before the slot is written again.
        let head = self.head.0.load(Ordering::Acquire);
        let tail = self.tail.0.load(Ordering::Relaxed);
        if tail.wrapping_sub(head) >= N as u64 {
            return Err(item);
        }
        if let Some(slot) = self.slot(tail) {
            slot.store(item, Ordering::Relaxed);
        }
        // Release: pairs with the acquire in `take`.
        self.tail.0.store(tail + 1, order(Defect::PushRelaxed, Ordering::Release));
        Ok(())
    }

    /// Takes the oldest. By the owner.
    #[inline]
    pub fn pop(&self) -> Option<*mut T> {
        let tail = self.tail.0.load(Ordering::Relaxed);
        // Acquire: pairs with the release of other takers.
        let mut head = self.head.0.load(Ordering::Acquire);
        while head != tail {
            let item = self.read(head);
            if is_planted(Defect::PopStores) {
                self.head.0.store(head + 1, Ordering::Release);
                return Some(item);
            }
            // Release: the slot has been read before the owner may see it free.
            match self.head.0.compare_exchange_weak(
                head,
                head + 1,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Some(item),
                Err(other) => head = other,
            }
        }
        None
    }

    /// Takes the older half, at least one, and gives each to `keep` in order. By anyone. `keep` sees
    /// nothing unless all are the caller's: they are read into a buffer first.
    pub fn take_half(&self, mut keep: impl FnMut(*mut T)) -> usize {
        // Acquire: pairs with the release of other takers.
        let mut head = self.head.0.load(Ordering::Acquire);
        loop {
            // Acquire: pairs with the release in `push`.
            let tail = self.tail.0.load(order(Defect::StealRelaxed, Ordering::Acquire));
            let count = tail.saturating_sub(head);
            let count = count - count / 2;
            if count == 0 {
                return 0;
            }
            let mut taken = [ptr::null_mut(); N];
            if count <= N as u64 {
                let read = |taken: &mut [*mut T; N]| {
                    for (index, item) in (head..head + count).zip(taken) {
                        *item = self.read(index);
                    }
                };
                read(&mut taken);
                if is_planted(Defect::StealStores) {
                    self.head.0.store(head, Ordering::Release);
                }
                // Release: the slots have been read before the owner may see them free.
                match self.head.0.compare_exchange(
                    head,
                    head + count,
                    Ordering::AcqRel,
                    Ordering::Acquire,
                ) {
                    Ok(_) => {
                        if is_planted(Defect::StealReadsLate) {
                            read(&mut taken);
                        }
                        taken.into_iter().take(count as usize).for_each(&mut keep);
                        return count as usize;
                    }
                    Err(other) => head = other,
                }
            } else {
                // The head was older than the tail by more than a round: look again.
                head = self.head.0.load(Ordering::Acquire);
            }
        }
    }
}
