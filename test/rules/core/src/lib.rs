//! A counter and a digit sum: the smallest crate that has a use for every kind of test.
#![no_std]

use abi_sync::atomic::{AtomicU32, Ordering};

/// A counter that several threads may add to.
pub struct Counter(AtomicU32);

impl Counter {
    /// A counter at zero.
    pub fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Adds one and returns the new value.
    pub fn add(&self) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The value so far.
    pub fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Adds one in two steps: loses an update if two threads meet. The model finds it.
    pub fn add_in_two_steps(&self) {
        let value = self.0.load(Ordering::Relaxed);
        self.0.store(value + 1, Ordering::Relaxed);
    }
}

impl Default for Counter {
    fn default() -> Self {
        Self::new()
    }
}

/// The sum of the decimal digits in `text`; other bytes count nothing.
pub fn digit_sum(text: &[u8]) -> u64 {
    text.iter().filter(|b| b.is_ascii_digit()).map(|b| u64::from(b - b'0')).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds() {
        let c = Counter::default();
        assert_eq!((c.add(), c.add(), c.get()), (1, 2, 2));
    }
}
