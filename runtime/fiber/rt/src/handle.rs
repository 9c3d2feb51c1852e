//! The handle of a fiber: waits for its end, takes its result, or leaves it to its scope.

use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::Ordering;

use alloc::sync::Arc;

use fiber_core::CancelVerdict;

use crate::frame::Frame;
use crate::packet::{Packet, drop_packet, take_packet};
use crate::root::Root;
use crate::scope::{Scope, recycle};
use crate::substrate::PanicPayload;
use crate::time::Cancelled;
use crate::wait::publish;

/// Why a join gave no value.
#[derive(Debug)]
pub enum JoinError {
    /// The fiber panicked with this.
    Panicked(PanicPayload),
    /// It was cancelled before its first run.
    Cancelled,
    /// The fiber that waits has been cancelled itself; the other one goes on, and its result is lost.
    /// [`Handle::wait`] loses none.
    Interrupted,
}

impl core::fmt::Display for JoinError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::Panicked(_) => "the fiber panicked",
            Self::Cancelled => "the fiber was cancelled before it ran",
            Self::Interrupted => "the fiber that joins was cancelled",
        })
    }
}

impl core::error::Error for JoinError {}

/// A fiber's handle; its join gives the fiber's result.
pub struct Handle<'scope, T> {
    pub(crate) frame: &'static Frame,
    pub(crate) scope: *const Scope<'static, 'static>,
    /// Keeps scope and runtime alive for a handle that may leave its `run`.
    pub(crate) root: Option<Arc<Root>>,
    /// For a fiber that never was: the scope was closing.
    pub(crate) is_void: bool,
    pub(crate) marker: PhantomData<&'scope T>,
}

// SAFETY: the handle gives one `T` away, once.
unsafe impl<T: Send> Send for Handle<'_, T> {}

// SAFETY: a shared handle gives nothing away.
unsafe impl<T: Send> Sync for Handle<'_, T> {}

impl<T> Handle<'_, T> {
    /// The handle of a fiber that never was, because its scope was closing.
    pub fn void() -> Self {
        Self {
            frame: crate::wait::current_frame(),
            scope: ptr::null(),
            root: None,
            is_void: true,
            marker: PhantomData,
        }
    }

    pub(crate) fn scope(&self) -> &Scope<'static, 'static> {
        // SAFETY: 'scope, or the root that is kept alive. Never asked of a void handle.
        unsafe { &*self.scope }
    }

    /// Waits for the fiber's end and takes its result.
    pub fn join(self) -> Result<T, JoinError> {
        if self.is_void {
            return Err(JoinError::Cancelled);
        }
        if !self.scope().wait_for(self.frame) {
            // The handle's drop leaves the fiber to its scope.
            return Err(JoinError::Interrupted);
        }
        // SAFETY: the fiber has ended, and the frame is the handle's.
        unsafe { self.take_result() }
    }

    /// Waits for the fiber's end and leaves its result where it is: `join` does not wait then.
    pub fn wait(&mut self) -> Result<(), Cancelled> {
        if self.is_void {
            return Ok(());
        }
        let scope = self.scope();
        if !scope.wait_for(self.frame) {
            return Err(Cancelled);
        }
        scope.members.with(|members| members.put_back(self.frame));
        Ok(())
    }

    /// # Safety
    /// The fiber has ended, and its frame is in no scope any more.
    pub(crate) unsafe fn take_result(self) -> Result<T, JoinError> {
        // SAFETY: by the caller the frame is the handle's.
        let packet = unsafe { take_packet::<T>(self.frame) };
        recycle(self.frame);
        let mut this = core::mem::ManuallyDrop::new(self);
        drop(this.root.take());
        match packet {
            Some(Packet::Value(value)) => Ok(value),
            Some(Packet::Panicked(payload)) => Err(JoinError::Panicked(payload)),
            Some(Packet::Cancelled) | None => Err(JoinError::Cancelled),
        }
    }

    /// Drops the result; a panic goes to the scope.
    ///
    /// # Safety
    /// As for `take_result`.
    pub(crate) unsafe fn drop_result(self) {
        // SAFETY: by the caller the frame is the handle's; its scope is open while there is a handle.
        unsafe { drop_packet::<T>(self.frame) };
        recycle(self.frame);
        let mut this = core::mem::ManuallyDrop::new(self);
        drop(this.root.take());
    }

    /// Whether the fiber has ended.
    pub fn is_finished(&self) -> bool {
        self.is_void || self.scope().members.with(|members| members.is_finished(self.frame))
    }

    /// Cancels the fiber.
    pub fn cancel(&self) {
        // The handle keeps the frame from being recycled.
        if !self.is_void && self.frame.word.cancel() == CancelVerdict::Enqueue {
            publish(self.frame);
        }
    }
}

impl<T> Drop for Handle<'_, T> {
    fn drop(&mut self) {
        if self.is_void {
            return;
        }
        let frame = self.frame;
        let is_ours = self.scope().members.with(|members| members.drop_handle(frame));
        if is_ours {
            // SAFETY: the fiber has ended, and the frame is the handle's; the scope is open.
            unsafe { drop_packet::<T>(frame) };
            recycle(frame);
        }
    }
}

impl<T> core::fmt::Debug for Handle<'_, T> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(out, "handle of fiber {}", self.frame.id.load(Ordering::Relaxed))
    }
}
