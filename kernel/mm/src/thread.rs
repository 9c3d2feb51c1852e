//! Contexts of user threads: registers on a kernel stack that the context keeps.

use crate::space::AddressSpace;
use crate::stack::KernelStack;
use kernel_arch::context::{self, Context, KernelStart, UserStart, WrongState};
use smp_lock::{LockClass, TicketLock};

/// A context with its kernel stack, or room for one.
pub struct UserContext {
    context: Context,
    stack: TicketLock<Option<KernelStack>>,
}

/// How a thread starts.
#[derive(Clone, Copy)]
pub enum Start<'s> {
    /// In user mode: in which space, and with which registers.
    User {
        /// The space.
        space: &'static AddressSpace,
        /// The registers.
        user: &'s UserStart,
    },
    /// In a function of the kernel.
    Kernel(KernelStart),
}

impl UserContext {
    /// Room for a context.
    pub const fn new() -> Self {
        let stack = TicketLock::with_class(LockClass::ContextStack, None);
        Self { context: Context::new(), stack }
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
        let prepared = match start {
            Start::User { space, user } => {
                let space = space.machine_space();
                // SAFETY: the stack is whole and the thread's until `take_apart` has succeeded; a context
                // that is refused has not touched it.
                unsafe { self.context.prepare(top, space, user) }
            }
            // SAFETY: as above.
            Start::Kernel(start) => unsafe { self.context.prepare_kernel(top, start) },
        };
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
