//! Vectors, text and boxes from parts; running out of memory is an error.
//!
//! On the host each of them is a place where memory can be made to run out, see [`injection`].
#![no_std]
#![feature(allocator_api, vec_push_within_capacity)]

extern crate alloc;

#[cfg(not(target_os = "none"))]
pub mod injection;

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

/// The moment before an allocation: on the host it may be told that there is no memory.
#[cfg(not(target_os = "none"))]
#[track_caller]
fn ask() -> Result<(), OutOfMemory> {
    injection::ask(core::panic::Location::caller())
}

#[cfg(target_os = "none")]
#[inline(always)]
#[expect(clippy::unnecessary_wraps, reason = "the host's is told")]
const fn ask() -> Result<(), OutOfMemory> {
    Ok(())
}

/// A box, or an error.
#[cfg_attr(not(target_os = "none"), track_caller)]
pub fn try_box<T>(value: T) -> Result<Box<T>, OutOfMemory> {
    ask()?;
    Box::try_new(value).map_err(|_| OutOfMemory)
}

/// Makes room for so many more items than there are and not for more, or leaves the vector as it was.
#[cfg_attr(not(target_os = "none"), track_caller)]
pub fn try_reserve_exact<T>(vector: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    ask()?;
    vector.try_reserve_exact(more).map_err(|_| OutOfMemory)
}

/// A vector of what an iterator gives, or an error.
#[cfg_attr(not(target_os = "none"), track_caller)]
pub fn try_collect<T>(items: impl Iterator<Item = T>) -> Result<Vec<T>, OutOfMemory> {
    let mut vector = Vec::new();
    try_reserve_exact(&mut vector, items.size_hint().0)?;
    for item in items {
        if let Err(item) = vector.push_within_capacity(item) {
            try_push(&mut vector, item)?;
        }
    }
    Ok(vector)
}

/// Adds an item, or leaves the vector as it was. An item that there is room for needs no memory.
#[cfg_attr(not(target_os = "none"), track_caller)]
pub fn try_push<T>(vector: &mut Vec<T>, item: T) -> Result<(), OutOfMemory> {
    if vector.len() == vector.capacity() {
        ask()?;
        vector.try_reserve(1).map_err(|_| OutOfMemory)?;
    }
    vector.push_within_capacity(item).map_err(|_| OutOfMemory)?;
    Ok(())
}

/// A copy of a text, or an error.
#[cfg_attr(not(target_os = "none"), track_caller)]
pub fn try_string(text: &str) -> Result<String, OutOfMemory> {
    let bytes = try_collect(text.bytes())?;
    String::from_utf8(bytes).map_err(|_| OutOfMemory)
}

/// A box that stays for good, or an error.
#[cfg_attr(not(target_os = "none"), track_caller)]
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
    fn each_place_can_be_told_that_there_is_no_memory() {
        use super::injection::{Answers, install};
        use alloc::sync::Arc;
        use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

        struct Never(AtomicU32);
        impl Answers for Never {
            fn has_memory(&self, at: &'static core::panic::Location<'static>) -> bool {
                assert!(at.file().ends_with("fallible/src/lib.rs"));
                self.0.store(at.line(), Relaxed);
                false
            }
        }
        let mut room = Vec::with_capacity(1);
        let told = Arc::new(Never(AtomicU32::new(0)));
        let before = install(Some(told.clone()));
        assert_eq!(try_box(1), Err(OutOfMemory));
        let line = line!() - 1;
        assert_eq!(told.0.load(Relaxed), line, "the place is the caller's");
        assert_eq!(try_collect([1, 2].into_iter()), Err(OutOfMemory));
        assert_eq!(try_string("capOS"), Err(OutOfMemory));
        assert_eq!(try_reserve_exact(&mut Vec::<u8>::new(), 1), Err(OutOfMemory));
        assert_eq!(try_push(&mut room, 1), Ok(()), "there was room");
        assert_eq!(try_push(&mut room, 2), Err(OutOfMemory));
        assert_eq!(room, [1]);
        assert!(before.is_none() && install(None).is_some());
        assert!(try_box(1).is_ok());
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
