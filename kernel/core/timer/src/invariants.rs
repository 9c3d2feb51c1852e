//! What holds between any two operations on a queue.

use crate::timer::NONE;
use crate::{DeadlineQueue, Timer};

impl DeadlineQueue {
    /// Walks the heap; says which rule is broken.
    pub fn check_invariants(&self, timers: &[Timer]) -> Result<(), &'static str> {
        let mut found = 0;
        // Depth first without a stack: down to the left, else to the right, else up.
        let mut from = NONE;
        let mut index = self.root;
        while index != NONE {
            let timer = timers.get(index as usize).ok_or("a link leads out of the table")?;
            let (parent, left, right) = (timer.parent.get(), timer.left.get(), timer.right.get());
            let next = if from == parent {
                found += 1;
                if found > self.len {
                    return Err("more are linked than are armed");
                }
                if timer.queue() != Some(self.number) {
                    return Err("a linked timer does not say that it is armed here");
                }
                for child in [left, right] {
                    if let Some(below) = timers.get(child as usize) {
                        if below.parent.get() != index {
                            return Err("a link does not lead back");
                        }
                        if below.place() < timer.place() {
                            return Err("a nearer deadline lies below");
                        }
                    }
                }
                if left == NONE && right != NONE {
                    return Err("the tree is not complete");
                }
                if left != NONE { left } else { parent }
            } else if from == left && right != NONE {
                right
            } else {
                parent
            };
            from = index;
            index = next;
        }
        if found != self.len {
            return Err("fewer are linked than are armed");
        }
        Ok(())
    }
}
