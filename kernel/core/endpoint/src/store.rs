//! Storage that comes from outside: records by position.

use abi_sync::mask_below;

/// A fixed number of records, reached by position.
///
/// Slices, arrays and boxes of records are stores; another one can count what is touched.
pub trait Store<T> {
    /// How many there are.
    fn count(&self) -> u32;
    /// All ones if there is one at this position, else zero: see [`mask_below`].
    fn mask(&self, index: u32) -> u64 {
        mask_below(index as usize, self.count() as usize)
    }
    /// The one at this position.
    fn at(&self, index: u32) -> Option<&T>;
    /// The one at this position, to change it.
    fn at_mut(&mut self, index: u32) -> Option<&mut T>;
}

impl<T, S: AsRef<[T]> + AsMut<[T]>> Store<T> for S {
    #[inline]
    fn count(&self) -> u32 {
        u32::try_from(self.as_ref().len()).unwrap_or(u32::MAX)
    }

    #[inline(always)]
    fn mask(&self, index: u32) -> u64 {
        mask_below(index as usize, self.as_ref().len())
    }

    #[inline]
    fn at(&self, index: u32) -> Option<&T> {
        self.as_ref().get(index as usize)
    }

    #[inline]
    fn at_mut(&mut self, index: u32) -> Option<&mut T> {
        self.as_mut().get_mut(index as usize)
    }
}
