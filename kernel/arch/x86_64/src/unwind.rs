//! Walking the chain of frame pointers.
//!
//! All kernel code keeps frame pointers. Each step is checked against the page tables before memory
//! is read, so a broken chain ends the walk and never faults.

use crate::paging::peek;

/// The most frames a report shows: an overflowed stack has thousands of the same.
pub const MAX_FRAMES: usize = 48;

/// The return addresses above a frame pointer, innermost first.
pub fn backtrace(frame_pointer: u64) -> impl Iterator<Item = u64> {
    let mut rbp = frame_pointer;
    core::iter::from_fn(move || {
        // A frame holds the caller's frame pointer and above it the return address.
        let caller = peek(rbp)?;
        let address = peek(rbp.checked_add(8)?)?;
        if address == 0 {
            return None;
        }
        // Stacks grow down, so callers lie above; anything else is no chain.
        rbp = if caller > rbp { caller } else { 0 };
        Some(address)
    })
    .take(MAX_FRAMES)
}
