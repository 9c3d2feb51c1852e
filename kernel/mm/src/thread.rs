//! Contexts of user threads: registers on a kernel stack that the context keeps.

use crate::space::AddressSpace;
use crate::stack::KernelStack;
use kernel_arch::context::{self, Context, UserStart, WrongState};
use spin::Mutex;

/// A context with its kernel stack, or room for one.
pub struct UserContext {
    context: Context,
    stack: Mutex<Option<KernelStack>>,
}

/// How a user thread starts: in which space, and where.
#[derive(Clone, Copy)]
pub struct Start<'s> {
    /// The space.
    pub space: &'static AddressSpace,
    /// The registers.
    pub user: &'s UserStart,
}

impl UserContext {
    /// Room for a context.
    pub const fn new() -> Self {
        Self { context: Context::new(), stack: Mutex::new(None) }
    }

    /// The context to switch to.
    #[inline]
    pub fn context(&'static self) -> &'static Context {
        &self.context
    }
}

impl Default for UserContext {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: `context::current` is the context this CPU runs. A context is prepared only if it is empty, is
// run only by who is told of it, and is taken apart only if no CPU runs it, which its state decides.
unsafe impl smp_ring::Context for UserContext {
    type Stack = KernelStack;
    type Start<'s> = Start<'s>;
    type Wrong = WrongState;

    fn prepare(
        &'static self,
        stack: KernelStack,
        start: Start<'_>,
    ) -> Result<(), (KernelStack, WrongState)> {
        let mut place = self.stack.lock();
        let top = stack.top();
        let space = start.space.machine_space();
        // SAFETY: the stack is whole and the thread's until `take_apart` has succeeded; a context that is
        // refused has not touched it.
        let prepared = unsafe { self.context.prepare(top, space, start.user) };
        if let Err(wrong) = prepared {
            return Err((stack, wrong));
        }
        *place = Some(stack.into_shared());
        Ok(())
    }

    #[inline(always)]
    fn runs_here(&'static self) -> bool {
        core::ptr::eq(context::current(), &self.context)
    }

    fn take_apart(&'static self) -> Result<Option<KernelStack>, WrongState> {
        let mut stack = self.stack.lock();
        self.context.take_apart()?;
        Ok(stack.take())
    }
}
