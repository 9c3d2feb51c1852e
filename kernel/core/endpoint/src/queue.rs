//! First-in first-out queues linked through the records: every operation is O(1).

use crate::record::{NO_RECORD, Record};
use crate::store::Store;

/// The ends of a queue of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queue {
    pub(crate) head: u32,
    pub(crate) tail: u32,
    pub(crate) length: u32,
}

impl Queue {
    pub(crate) const EMPTY: Self = Self { head: NO_RECORD, tail: NO_RECORD, length: 0 };

    #[inline]
    pub(crate) fn push_back<C, R>(&mut self, records: &mut impl Store<Record<C, R>>, index: u32) {
        if let Some(record) = records.at_mut(index) {
            (record.previous, record.next) = (self.tail, NO_RECORD);
        }
        self.back_is(records, index);
    }

    /// The record at `index`, which names the tail as the one before it, is the new tail.
    #[inline]
    pub(crate) fn back_is<C, R>(&mut self, records: &mut impl Store<Record<C, R>>, index: u32) {
        if self.length == 0 {
            self.head = index;
        } else if let Some(record) = records.at_mut(self.tail) {
            record.next = index;
        }
        self.tail = index;
        self.length = self.length.wrapping_add(1);
    }

    pub(crate) fn push_front<C, R>(&mut self, records: &mut impl Store<Record<C, R>>, index: u32) {
        let first = self.head;
        if let Some(record) = records.at_mut(index) {
            (record.previous, record.next) = (NO_RECORD, first);
        }
        match records.at_mut(first) {
            Some(record) => record.previous = index,
            None => self.tail = index,
        }
        self.head = index;
        self.length = self.length.wrapping_add(1);
    }

    #[inline]
    pub(crate) fn pop_front<C, R>(
        &mut self,
        records: &mut impl Store<Record<C, R>>,
    ) -> Option<u32> {
        let first = self.head;
        let record = records.at_mut(first)?;
        let next = core::mem::replace(&mut record.next, NO_RECORD);
        self.front_is(records, next);
        Some(first)
    }

    /// The head was taken out, and `next`, which it named, follows it.
    #[inline]
    pub(crate) fn front_is<C, R>(&mut self, records: &mut impl Store<Record<C, R>>, next: u32) {
        self.head = next;
        self.length = self.length.wrapping_sub(1);
        if self.length == 0 {
            self.tail = NO_RECORD;
        } else if let Some(record) = records.at_mut(next) {
            record.previous = NO_RECORD;
        }
    }

    /// Takes out the record at `index`, which is in this queue.
    #[inline]
    pub(crate) fn unlink<C, R>(&mut self, records: &mut impl Store<Record<C, R>>, index: u32) {
        let Some(record) = records.at_mut(index) else { return };
        let (previous, next) = (record.previous, record.next);
        (record.previous, record.next) = (NO_RECORD, NO_RECORD);
        match records.at_mut(previous) {
            Some(record) => record.next = next,
            None => self.head = next,
        }
        match records.at_mut(next) {
            Some(record) => record.previous = previous,
            None => self.tail = previous,
        }
        self.length = self.length.wrapping_sub(1);
    }
}
