//! Vectors, text and boxes from parts; running out of memory is an error.
#![no_std]
#![feature(allocator_api, vec_push_within_capacity)]

extern crate alloc;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// There is no memory left for this.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfMemory;

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("out of memory")
    }
}

/// A box, or an error.
pub fn try_box<T>(value: T) -> Result<Box<T>, OutOfMemory> {
    Box::try_new(value).map_err(|_| OutOfMemory)
}

/// A vector of what an iterator gives, or an error.
pub fn try_collect<T>(items: impl Iterator<Item = T>) -> Result<Vec<T>, OutOfMemory> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(items.size_hint().0).map_err(|_| OutOfMemory)?;
    for item in items {
        if let Err(item) = vector.push_within_capacity(item) {
            try_push(&mut vector, item)?;
        }
    }
    Ok(vector)
}

/// Adds an item, or leaves the vector as it was.
pub fn try_push<T>(vector: &mut Vec<T>, item: T) -> Result<(), OutOfMemory> {
    vector.try_reserve(1).map_err(|_| OutOfMemory)?;
    vector.push_within_capacity(item).map_err(|_| OutOfMemory)?;
    Ok(())
}

/// A copy of a text, or an error.
pub fn try_string(text: &str) -> Result<String, OutOfMemory> {
    let bytes = try_collect(text.bytes())?;
    String::from_utf8(bytes).map_err(|_| OutOfMemory)
}

/// A box that stays for good, or an error.
pub fn try_leak<T>(value: T) -> Result<&'static mut T, OutOfMemory> {
    Ok(Box::leak(try_box(value)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_iterator_gives_is_collected_whatever_it_said_of_its_length() {
        let lies = core::iter::successors(Some(0_u32), |n| (*n < 9).then_some(n + 1));
        assert_eq!(lies.size_hint(), (1, None));
        assert_eq!(try_collect(lies).unwrap(), (0..10).collect::<Vec<_>>());
        assert_eq!(try_string("capOS").unwrap(), "capOS");
        assert_eq!(*try_leak(7).unwrap(), 7);
    }

    #[test]
    fn what_does_not_fit_is_an_error_and_changes_nothing() {
        assert_eq!(try_collect((0..usize::MAX).map(|n| n as u64)), Err(OutOfMemory));
        let mut units = Vec::new();
        try_push(&mut units, 1_u8).unwrap();
        try_push(&mut units, 2).unwrap();
        assert_eq!(units, [1, 2]);
    }
}
