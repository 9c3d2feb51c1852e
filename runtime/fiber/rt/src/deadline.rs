//! A deadline for a scope.

use core::marker::PhantomData;

use alloc::boxed::Box;

use crate::runtime::Shared;
use crate::scope::Scope;
use crate::timer::Timer;

/// A deadline that cancels a scope unless it is dropped before.
pub struct Deadline<'scope> {
    timer: Box<Timer>,
    shared: *const Shared,
    marker: PhantomData<&'scope ()>,
}

// SAFETY: the timer is only touched under the wheel's lock, or while it fires.
unsafe impl Send for Deadline<'_> {}

// SAFETY: as for Send.
unsafe impl Sync for Deadline<'_> {}

impl<'scope> Deadline<'scope> {
    /// Cancels `scope` at `deadline_ns`.
    pub fn new(scope: &'scope Scope<'scope, '_>, deadline_ns: u64) -> Self {
        unsafe fn expire(scope: *const ()) {
            // SAFETY: the scope outlives the deadline, whose drop takes the timer out and waits for this.
            unsafe { &*scope.cast::<Scope<'static, 'static>>() }.cancel();
        }
        let timer = Box::new(Timer::call(expire, scope.erased().cast()));
        // SAFETY: the runtime outlives the scope; the timer is boxed and taken out by `drop`.
        unsafe { (*scope.shared).insert_timer(&timer, deadline_ns) };
        Self { timer, shared: scope.shared, marker: PhantomData }
    }
}

impl Drop for Deadline<'_> {
    fn drop(&mut self) {
        // SAFETY: the runtime outlives the scope, which outlives this.
        unsafe { &*self.shared }.timers.remove_and_wait(&self.timer);
    }
}
