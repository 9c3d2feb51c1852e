//! Vectors, text and boxes from parts; running out of memory is an error.

use crate::OutOfMemory;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

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

/// So many words of zeros, or an error.
pub fn try_zeroed_words(count: usize) -> Result<Box<[u64]>, OutOfMemory> {
    let words = Box::<[u64]>::try_new_zeroed_slice(count).map_err(|_| OutOfMemory)?;
    // SAFETY: zeros are words.
    Ok(unsafe { words.assume_init() })
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
