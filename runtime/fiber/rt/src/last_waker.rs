//! Whom a future's wait wakes, and the frames such waits have.
//!
//! These frames are futures' for ever: whoever ended a wait may come to wake its future when that has
//! gone on already, and another one has the frame. It wakes that one then, which looks, and waits on.

use core::task::Waker;

#[cfg(not(loom))]
use {
    crate::frame::{Frame, take_frame},
    crate::wait::check,
    alloc::boxed::Box,
    core::ptr,
    core::sync::atomic::Ordering,
};

use crate::lock::SpinLock;

/// The waker a future was polled with last.
#[derive(Debug, Default)]
pub(crate) struct LastWaker(SpinLock<Option<Waker>>);

impl LastWaker {
    /// Has the future polled, if that is not under way.
    pub fn wake(&self) {
        if let Some(waker) = self.0.with(Option::take) {
            waker.wake();
        }
    }

    /// Says whom to wake from now on.
    pub fn set(&self, waker: &Waker) {
        let is_set = self.0.with(|set| set.as_ref().is_some_and(|set| set.will_wake(waker)));
        if !is_set {
            // What a user wrote runs outside of the lock, the clone as well as the drop.
            let waker = waker.clone();
            drop(self.0.with(|set| set.replace(waker)));
        }
    }

    /// Says that nobody is to be woken.
    pub fn clear(&self) {
        drop(self.0.with(Option::take));
    }
}

#[cfg(not(loom))]
struct Free(*mut Frame);

// SAFETY: frames are shared by design; the list is under its lock.
#[cfg(not(loom))]
unsafe impl Send for Free {}

/// Futures' frames that no future has.
#[cfg(not(loom))]
static FREE: SpinLock<Free> = SpinLock::new(Free(ptr::null_mut()));

/// A frame for a future: it counts as running between two waits.
#[cfg(not(loom))]
pub(crate) fn take_future_frame() -> &'static Frame {
    let free = FREE.with(|free| {
        // SAFETY: only frames are on the list.
        let frame = unsafe { free.0.as_ref() }?;
        free.0 = frame.link.load(Ordering::Relaxed);
        Some(frame)
    });
    free.unwrap_or_else(|| {
        let frame = take_frame();
        frame.is_thread.store(true, Ordering::Relaxed);
        let waker: &'static LastWaker = Box::leak(Box::new(LastWaker::default()));
        frame.root.store(ptr::from_ref(waker).cast_mut().cast(), Ordering::Relaxed);
        let _ = check(frame.word.start());
        let _ = check(frame.word.dispatch());
        frame
    })
}

/// Gives a future's frame back.
#[cfg(not(loom))]
pub(crate) fn give_future_frame(frame: &'static Frame) {
    FREE.with(|free| {
        frame.link.store(free.0, Ordering::Relaxed);
        free.0 = frame.as_ptr();
    });
}

#[cfg(not(loom))]
impl Frame {
    /// The waker of a frame that is a future's; none for a thread's.
    #[inline]
    pub fn last_waker(&self) -> Option<&'static LastWaker> {
        // SAFETY: null for a thread, else what `take_future_frame` put there, which is never freed.
        unsafe { self.root.load(Ordering::Relaxed).cast::<LastWaker>().as_ref() }
    }
}
