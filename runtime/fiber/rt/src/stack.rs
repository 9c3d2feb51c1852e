//! Stacks as the context switch wants them.
//!
//! Decided in ADR 102.

use core::num::NonZeroUsize;

use corosensei::stack::StackPointer;

/// A stack: from its guard at the bottom to its top.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stack {
    /// The lowest usable address; the guard is below it.
    pub bottom: usize,
    /// One past the highest.
    pub top: usize,
}

/// The part of a stack a fiber runs on: below its result.
#[derive(Debug)]
pub(crate) struct Bounds {
    base: StackPointer,
    limit: StackPointer,
}

impl Bounds {
    /// The part of `stack` below `base`.
    ///
    /// # Safety
    /// `base` is in the stack, a multiple of 16, with at least a page below it, and nothing else uses
    /// that part while the value lives.
    pub unsafe fn new(stack: Stack, base: usize) -> Self {
        let address = |at| NonZeroUsize::new(at).unwrap_or(NonZeroUsize::MIN);
        Self { base: address(base), limit: address(stack.bottom) }
    }
}

// SAFETY: by `new` the memory is there, and every stack has a guard below its bottom (PT-6 on capOS).
unsafe impl corosensei::stack::Stack for Bounds {
    fn base(&self) -> StackPointer {
        self.base
    }

    fn limit(&self) -> StackPointer {
        self.limit
    }
}
