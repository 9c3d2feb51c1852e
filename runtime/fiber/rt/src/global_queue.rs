//! The global queue: what is spawned or woken from outside, and what a worker's queue cannot hold.

use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::frame::{Frame, frame_at};
use crate::lock::SpinLock;

struct Ends {
    first: *mut Frame,
    last: *mut Frame,
}

// SAFETY: frames are shared by design.
unsafe impl Send for Ends {}

/// First in, first out, of any length.
pub(crate) struct GlobalQueue {
    ends: SpinLock<Ends>,
    length: AtomicUsize,
}

impl GlobalQueue {
    pub const fn new() -> Self {
        Self {
            ends: SpinLock::new(Ends { first: ptr::null_mut(), last: ptr::null_mut() }),
            length: AtomicUsize::new(0),
        }
    }

    pub fn push(&self, frame: &'static Frame) {
        frame.ownership.is_queued(&frame.word);
        frame.link.store(ptr::null_mut(), Ordering::Relaxed);
        self.ends.with(|ends| {
            if ends.last.is_null() {
                ends.first = frame.as_ptr();
            } else {
                // SAFETY: only frames are in the queue.
                unsafe { frame_at(ends.last) }.link.store(frame.as_ptr(), Ordering::Relaxed);
            }
            ends.last = frame.as_ptr();
            let length = self.length.load(Ordering::Relaxed);
            self.length.store(length + 1, Ordering::Relaxed);
        });
    }

    /// How many are queued; old as soon as it is read. Read after the fences of `Idle`, it is not
    /// older than them.
    #[inline]
    pub fn len(&self) -> usize {
        self.length.load(Ordering::Relaxed)
    }

    /// Takes the first, and up to `more` others, which go to `keep` in order.
    pub fn pop(&self, more: usize, mut keep: impl FnMut(&'static Frame)) -> Option<&'static Frame> {
        if self.len() == 0 {
            return None;
        }
        let (first, mut rest, mut left) = self.ends.with(|ends| {
            let length = self.length.load(Ordering::Relaxed);
            // A fair share: half of what is there, no more than asked for.
            let count = length.min((length / 2).min(more) + 1);
            let first = ends.first;
            let mut after = first;
            for _ in 0..count {
                // SAFETY: `count` of them are in the queue.
                after = unsafe { frame_at(after) }.link.load(Ordering::Relaxed);
            }
            ends.first = after;
            if after.is_null() {
                ends.last = ptr::null_mut();
            }
            self.length.store(length - count, Ordering::Relaxed);
            // SAFETY: null or a frame of the queue.
            let first = unsafe { first.as_ref() };
            let rest = first.map_or(ptr::null_mut(), |f| f.link.load(Ordering::Relaxed));
            (first, rest, count.saturating_sub(1))
        });
        while left > 0 {
            // SAFETY: taken above with the first.
            let frame = unsafe { frame_at(rest) };
            rest = frame.link.load(Ordering::Relaxed);
            keep(frame);
            left -= 1;
        }
        first
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use alloc::sync::Arc;

    use super::*;
    use crate::runtime::Runtime;
    use crate::substrate::{Substrate, Sys};
    use crate::worker;

    /// A fiber that was published from outside may end, and its runtime go, before whoever published it
    /// has come back.
    #[test]
    fn a_runtime_stays_for_those_who_publish_from_outside() {
        let shared = Arc::new(Runtime::builder().elastic(false).shared(1, 64 << 10));
        let frame = Frame::runnable(Arc::as_ptr(&shared));
        let count = std::thread::scope(|scope| {
            shared.global.ends.with(|_| {
                scope.spawn(|| worker::enqueue(frame));
                while shared.injected.load(Ordering::Relaxed) == 0 {
                    Sys::relax();
                }
                Arc::strong_count(&shared)
            })
        });
        assert_eq!(count, 2, "the other thread was in what may have gone");
        assert_eq!(Arc::strong_count(&shared), 1);
        let queued = shared.global.pop(0, |_| {});
        assert!(queued.is_some_and(|queued| ptr::eq(queued, frame)));
        frame.end_queued();
    }
}
