//! What holds between any two operations on a bucket.

use crate::waiter::NONE;
use crate::{Bucket, Waiter};

impl Bucket {
    /// Walks the bucket; says which rule is broken.
    pub fn check_invariants(&self, waiters: &[Waiter]) -> Result<(), &'static str> {
        let mut waiting = 0u32;
        let mut first = self.first_key;
        let mut before_key = NONE;
        while first != NONE {
            let head = waiters.get(first as usize).ok_or("a chain leads out of the table")?;
            if head.before_key.get() != before_key {
                return Err("a chain does not lead back");
            }
            let mut index = first;
            loop {
                let waiter = waiters.get(index as usize).ok_or("a ring leads out of the table")?;
                let next = waiters.get(waiter.next.get() as usize).ok_or("a ring is open")?;
                if next.before.get() != index {
                    return Err("a ring does not lead back");
                }
                if !waiter.is_waiting() || waiter.bucket() != self.number as usize {
                    return Err("a linked waiter does not say that it waits here");
                }
                if waiter.key() != head.key() {
                    return Err("a ring mixes keys");
                }
                if waiter.is_first() != (index == first) {
                    return Err("a ring has no first or two");
                }
                waiting += 1;
                if waiting > self.waiting {
                    return Err("more are linked than wait");
                }
                index = waiter.next.get();
                if index == first {
                    break;
                }
            }
            before_key = first;
            first = head.next_key.get();
            let mut other = first;
            while let Some(waiter) = waiters.get(other as usize) {
                if waiter.key() == head.key() {
                    return Err("a key has two rings");
                }
                other = waiter.next_key.get();
            }
        }
        if waiting != self.waiting {
            return Err("fewer are linked than wait");
        }
        Ok(())
    }
}
