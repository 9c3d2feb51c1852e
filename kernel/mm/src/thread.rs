//! User threads as memory sees them: a context, its kernel stack, its ring, the space it runs in.
//!
//! A [`UserThread`] lies in memory that is never given back and holds what belongs together. Stack and
//! ring are handed out again only by [`retire`](UserThread::retire), which succeeds when no CPU is on
//! the stack.
//!
//! # Who may touch the ring
//!
//! - The thread itself, while it runs, without a lock ([`with_own_ring`](UserThread::with_own_ring)).
//! - Anyone who holds the completion lock ([`completions`](UserThread::completions)): the ring is there
//!   until `retire` has taken it out under that lock.

use crate::space::{AddressSpace, PinnedRing};
use crate::stack::KernelStack;
use abi_ring::{CqProducer, KernelRing};
use core::cell::UnsafeCell;
use kernel_arch::context::{self, Context, UserStart, WrongState};
use smp_lock::{Guard, LockClass, TicketLock};
use spin::Mutex;

/// A thread's ring, and what its owner keeps with it: `S` is shared like the ring.
#[derive(Debug)]
pub struct Ring<S> {
    /// The protocol's side.
    pub kernel: KernelRing<PinnedRing>,
    /// The owner's.
    pub shared: S,
}

/// A thread, or room for one.
pub struct UserThread<S = ()> {
    context: Context,
    stack: Mutex<Option<KernelStack>>,
    ring: UnsafeCell<Option<Ring<S>>>,
    /// The right to post: `Some` exactly while the ring is there.
    posting: TicketLock<Option<CqProducer>>,
}

// SAFETY: context, stack and posting are shared safely by themselves. The ring cell is written only
// by `prepare` and `retire`, which hold the stack's lock and the completion lock and a context that
// no CPU runs; it is read under the completion lock, or by the CPU that runs the context.
unsafe impl<S: Send + Sync> Sync for UserThread<S> {}

/// A ring for a new thread.
#[derive(Debug)]
pub struct NewRing<F> {
    /// Its memory, mapped for the thread's process.
    pub memory: PinnedRing,
    /// Bytes of parameters of one call, at most.
    pub params_bytes: u32,
    /// Bytes of results of one call, at most.
    pub result_bytes: u32,
    /// Makes what is shared like the ring, where it stays.
    pub shared: F,
    /// Whether every SQE is consumed in a pass, also the only one.
    pub only_passes: bool,
}

/// What a thread that was taken apart leaves behind.
#[derive(Debug, Default)]
pub struct Remains {
    /// Its kernel stack.
    pub stack: Option<KernelStack>,
    /// The memory of its ring.
    pub ring: Option<PinnedRing>,
}

/// The completion side of a thread's ring, held locked.
#[derive(Debug)]
pub struct Completions<'t, S> {
    guard: Guard<'t, Option<CqProducer>>,
    ring: &'t Ring<S>,
}

impl<S> Completions<'_, S> {
    /// The ring with the right to post.
    #[inline]
    pub fn parts(&mut self) -> Option<(&Ring<S>, &mut CqProducer)> {
        Some((self.ring, self.guard.as_mut()?))
    }

    /// The ring.
    #[inline]
    pub fn ring(&self) -> &Ring<S> {
        self.ring
    }
}

impl<S> UserThread<S> {
    /// Room for a thread.
    pub const fn new() -> Self {
        Self {
            context: Context::new(),
            stack: Mutex::new(None),
            ring: UnsafeCell::new(None),
            posting: TicketLock::with_class(LockClass::Cq, None),
        }
    }

    /// The context to switch to.
    #[inline]
    pub fn context(&'static self) -> &'static Context {
        &self.context
    }

    /// Makes it a thread of `space` on `stack` that starts as `start` says; refused, with everything
    /// given back, if it is one already or the space was not created.
    #[allow(clippy::type_complexity, reason = "a refusal gives back what it was given")]
    pub fn prepare<F: FnOnce() -> S>(
        &'static self,
        stack: KernelStack,
        space: &'static AddressSpace,
        start: &UserStart,
        ring: Option<NewRing<F>>,
    ) -> Result<(), (KernelStack, Option<NewRing<F>>, WrongState)> {
        let mut place = self.stack.lock();
        let top = stack.top();
        let mut posting = self.posting.lock();
        if posting.is_some() {
            return Err((stack, ring, WrongState(self.context.state())));
        }
        // SAFETY: the stack is whole and the thread's until `retire` has taken the context apart; a
        // context that is refused has not touched it.
        if let Err(wrong) = unsafe { self.context.prepare(top, space.machine_space(), start) } {
            return Err((stack, ring, wrong));
        }
        *place = Some(stack.into_shared());
        if let Some(NewRing { memory, params_bytes, result_bytes, shared, only_passes }) = ring {
            let (kernel, producer) = KernelRing::new(memory, params_bytes, result_bytes);
            if only_passes {
                kernel.only_passes();
            }
            // SAFETY: the context was empty until now and no CPU can have run it since, for whoever
            // is to run it is told later; others look under the lock held here.
            unsafe { *self.ring.get() = Some(Ring { kernel, shared: shared() }) };
            *posting = Some(producer);
        }
        Ok(())
    }

    /// Gives the running thread's own ring to `f`; `None` unless this CPU runs this very thread, or
    /// if it has no ring. `f` may switch to other threads and back.
    #[inline]
    pub fn with_own_ring<R>(&'static self, f: impl FnOnce(&Ring<S>) -> R) -> Option<R> {
        if !core::ptr::eq(context::current(), &self.context) {
            return None;
        }
        // SAFETY: a context that runs is not taken apart, and only then is the ring. While `f` is
        // switched away from the thread lives, or never goes on with `f`.
        unsafe { &*self.ring.get() }.as_ref().map(f)
    }

    /// Locks the completion side; `None` if there is no ring.
    #[inline]
    pub fn completions(&self) -> Option<Completions<'_, S>> {
        let guard = self.posting.lock();
        if guard.is_none() {
            return None;
        }
        // SAFETY: the lock is held, so the ring is not written; and it is there exactly while the
        // right to post is.
        let ring = unsafe { (*self.ring.get()).as_ref().unwrap_unchecked() };
        Some(Completions { guard, ring })
    }

    /// Takes the thread apart, if no CPU runs it.
    pub fn retire(&'static self) -> Result<Remains, WrongState> {
        let mut stack = self.stack.lock();
        self.context.take_apart()?;
        let mut posting = self.posting.lock();
        *posting = None;
        // SAFETY: no CPU runs the context, which was just taken apart; others look under the lock
        // held here, and find no right to post.
        let ring = unsafe { (*self.ring.get()).take() };
        Ok(Remains { stack: stack.take(), ring: ring.map(|ring| ring.kernel.into_memory()) })
    }
}

impl<S> Default for UserThread<S> {
    fn default() -> Self {
        Self::new()
    }
}
