//! Numbers below a limit, each given out to one at a time.

use alloc::vec::Vec;

/// Who has which number is known to whoever has it.
#[derive(Debug)]
pub struct Numbers {
    /// Those that were given back.
    free: Vec<usize>,
    /// The first that was never given out.
    next: usize,
}

impl Numbers {
    /// All numbers are there to be given out.
    pub const fn new() -> Self {
        Self { free: Vec::new(), next: 0 }
    }

    /// A number below `limit`, which is the same at each call: the one given back last, or the next.
    pub fn take(&mut self, limit: usize) -> Option<usize> {
        self.free.pop().or_else(|| {
            let number = self.next;
            if number >= limit {
                return None;
            }
            if number == 0 {
                // All there will ever be: giving back asks for no memory.
                self.free.reserve_exact(limit);
            }
            self.next += 1;
            Some(number)
        })
    }

    /// Takes a number back. By whoever had it, once.
    pub fn give(&mut self, number: usize) {
        self.free.push(number);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_number_is_one_holders_and_all_are_given_out() {
        let mut numbers = Numbers::new();
        let mut held = BTreeSet::new();
        for round in 0..200 {
            while let Some(number) = numbers.take(7) {
                assert!(number < 7 && held.insert(number), "{number} is given out twice");
            }
            assert_eq!(held.len(), 7);
            // Some of them come back, in some order.
            for number in [round % 7, round * 3 % 7, round * 5 % 7] {
                if held.remove(&number) {
                    numbers.give(number);
                }
            }
        }
        assert!(numbers.free.capacity() < 14, "it grew");
    }

    #[test]
    fn of_none_none_is_given_out() {
        assert_eq!(Numbers::new().take(0), None);
    }
}
