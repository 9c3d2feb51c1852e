//! User threads as memory sees them: a context, its kernel stack, and the space it runs in.
//!
//! A [`UserThread`] lies in memory that is never given back and holds what belongs together. Its stack
//! is handed out again only by [`retire`](UserThread::retire), which succeeds when no CPU is on it.

use crate::space::AddressSpace;
use crate::stack::KernelStack;
use kernel_arch::context::{Context, UserStart, WrongState};
use spin::Mutex;

/// A thread, or room for one.
#[derive(Default)]
pub struct UserThread {
    context: Context,
    stack: Mutex<Option<KernelStack>>,
}

impl UserThread {
    /// Room for a thread.
    pub const fn new() -> Self {
        Self { context: Context::new(), stack: Mutex::new(None) }
    }

    /// The context to switch to.
    #[inline]
    pub fn context(&'static self) -> &'static Context {
        &self.context
    }

    /// Makes it a thread of `space` on `stack` that starts as `start` says; refused, with the stack
    /// given back, if it is one already or the space was not created.
    pub fn prepare(
        &'static self,
        stack: KernelStack,
        space: &'static AddressSpace,
        start: &UserStart,
    ) -> Result<(), (KernelStack, WrongState)> {
        let mut place = self.stack.lock();
        let top = stack.top();
        // SAFETY: the stack is whole and the thread's until `retire` has taken the context apart; a
        // context that is refused has not touched it.
        match unsafe { self.context.prepare(top, space.machine_space(), start) } {
            Ok(()) => {
                *place = Some(stack.into_shared());
                Ok(())
            }
            Err(wrong) => Err((stack, wrong)),
        }
    }

    /// Takes the thread apart, if no CPU runs it: its stack.
    pub fn retire(&'static self) -> Result<Option<KernelStack>, WrongState> {
        self.context.take_apart()?;
        Ok(self.stack.lock().take())
    }
}
