//! Vectors, text and boxes from parts; running out of memory is an error.

use crate::OutOfMemory;
use alloc::boxed::Box;
pub use core_fallible::{try_box, try_collect, try_leak, try_push, try_string};

/// So many words of zeros, or an error.
pub fn try_zeroed_words(count: usize) -> Result<Box<[u64]>, OutOfMemory> {
    let words = Box::<[u64]>::try_new_zeroed_slice(count).map_err(|_| OutOfMemory)?;
    // SAFETY: zeros are words.
    Ok(unsafe { words.assume_init() })
}
