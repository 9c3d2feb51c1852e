//! A cell for models: plain data whose every unordered access is found.

use crate::cell::RaceCell;

/// Shared plain data in a model. Safe to use because loom runs one thread at a time and ends
/// the model if a write is not ordered with every other access.
#[derive(Debug, Default)]
pub struct CheckedCell<T>(RaceCell<T>);

// SAFETY: exists only in models, whose threads run one at a time.
unsafe impl<T: Send> Sync for CheckedCell<T> {}

impl<T: Copy> CheckedCell<T> {
    /// A cell that holds `value`.
    pub fn new(value: T) -> Self {
        Self(RaceCell::new(value))
    }

    /// The value; fails the model if a write is concurrent.
    pub fn get(&self) -> T {
        // SAFETY: a model switches to no other thread within the closure; loom has just checked
        // that no write overlaps.
        self.0.with(|value| unsafe { *value })
    }

    /// Changes the value; fails the model if any other access is concurrent.
    pub fn update(&self, f: impl FnOnce(&mut T)) {
        // SAFETY: a model switches to no other thread within the closure as long as `f` touches
        // no other model object; loom has just checked that no access overlaps.
        self.0.with_mut(|value| f(unsafe { &mut *value }))
    }
}
