//! A cell whose accesses a model can check for races.

/// `UnsafeCell` with the accesses as closures, so that loom sees where each begins and ends.
///
/// Outside a model it compiles to a plain `UnsafeCell`.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct RaceCell<T>(Inner<T>);

#[cfg(any(not(loom), shuttle))]
type Inner<T> = core::cell::UnsafeCell<T>;
#[cfg(all(loom, not(shuttle)))]
type Inner<T> = loom::cell::UnsafeCell<T>;

impl<T> RaceCell<T> {
    /// A cell that holds `value`.
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Self {
        Self(Inner::new(value))
    }

    /// A cell that holds `value`.
    #[cfg(loom)]
    pub fn new(value: T) -> Self {
        Self(Inner::new(value))
    }

    /// Runs `f` with a pointer to read from; a model fails if a write overlaps.
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        #[cfg(any(not(loom), shuttle))]
        return f(self.0.get());
        #[cfg(all(loom, not(shuttle)))]
        return self.0.with(f);
    }

    /// Runs `f` with a pointer to write through; a model fails if any other access overlaps.
    #[inline]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        #[cfg(any(not(loom), shuttle))]
        return f(self.0.get());
        #[cfg(all(loom, not(shuttle)))]
        return self.0.with_mut(f);
    }
}
