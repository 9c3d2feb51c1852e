//! What holds between any two operations on a queue.

use crate::{DeadlineQueue, Table};
use core::ptr;

impl DeadlineQueue {
    /// Walks the heap; says which rule is broken.
    pub fn check_invariants(&self, table: &(impl Table + ?Sized)) -> Result<(), &'static str> {
        let mut found = 0;
        // Depth first without a stack: down to the left, else to the right, else up.
        let mut from = ptr::null();
        let mut at = self.root.get();
        while !at.is_null() {
            let timer = table.at(at).ok_or("a link leads out of the table")?;
            let (parent, left, right) = (timer.parent.get(), timer.left.get(), timer.right.get());
            let next = if from == parent {
                found += 1;
                if found > self.len {
                    return Err("more are linked than are armed");
                }
                if !timer.is_in(self.name) {
                    return Err("a linked timer does not say that it is armed here");
                }
                for child in [left, right] {
                    if let Some(below) = table.at(child) {
                        if below.parent.get() != at {
                            return Err("a link does not lead back");
                        }
                        if below.place() < timer.place() {
                            return Err("a nearer deadline lies below");
                        }
                    }
                }
                if left.is_null() && !right.is_null() {
                    return Err("the tree is not complete");
                }
                if left.is_null() { parent } else { left }
            } else if from == left && !right.is_null() {
                right
            } else {
                parent
            };
            from = at;
            at = next;
        }
        if found != self.len {
            return Err("fewer are linked than are armed");
        }
        Ok(())
    }
}
