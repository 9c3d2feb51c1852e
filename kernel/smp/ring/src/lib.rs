//! A thread's ring as CPUs share it: by its owner without a lock, by everyone else under the completion lock.
//!
//! A [`RingHome`] lies in memory that is never given back and holds what belongs together: a context that
//! CPUs run, and the ring of the thread that runs in it. Stack and ring are handed out again only by
//! [`retire`](RingHome::retire), which succeeds when no CPU is on the stack.
//!
//! # Who may touch the ring
//!
//! - The thread itself, while it runs, without a lock ([`with_own`](RingHome::with_own)).
//! - Anyone who holds the completion lock ([`completions`](RingHome::completions)): the ring is there
//!   until `retire` has taken it out under that lock.
//!
//! The kernel's contexts are registers on a kernel stack; those of tests are threads of the host.
#![cfg_attr(not(any(test, loom)), no_std)]

use abi_ring::{CqProducer, KernelRing, Memory};
use core::cell::UnsafeCell;
use smp_lock::{Guard, LockClass, TicketLock};

/// Something that a CPU runs: a stack, and where on it a thread goes on.
///
/// # Safety
/// - [`runs_here`](Self::runs_here) is true only for code that runs in this very context.
/// - [`prepare`](Self::prepare) succeeds only if the context has no stack, and nothing runs in it before
///   the caller has told somebody of it.
/// - [`take_apart`](Self::take_apart) succeeds only if nothing runs in it; from then on nothing does, up
///   to the next `prepare`.
pub unsafe trait Context: Sync + 'static {
    /// What it runs on.
    type Stack: Send;
    /// How it starts.
    type Start<'s>;
    /// Why it cannot be prepared or taken apart now.
    type Wrong;

    /// Makes an empty context one that can be run; the stack comes back if it is refused.
    fn prepare(
        &'static self,
        stack: Self::Stack,
        start: Self::Start<'_>,
    ) -> Result<(), (Self::Stack, Self::Wrong)>;
    /// Whether the caller runs in it.
    fn runs_here(&'static self) -> bool;
    /// Makes it an empty one; its stack.
    fn take_apart(&'static self) -> Result<Option<Self::Stack>, Self::Wrong>;
}

/// A thread's ring, and what its owner keeps with it: `S` is shared like the ring.
#[derive(Debug)]
pub struct Ring<R: Memory, S> {
    /// The protocol's side.
    pub kernel: KernelRing<R>,
    /// The owner's.
    pub shared: S,
}

/// A context and its ring, or room for them.
pub struct RingHome<C, R: Memory, S> {
    context: C,
    ring: UnsafeCell<Option<Ring<R, S>>>,
    /// The right to post: `Some` exactly while the ring is there.
    posting: TicketLock<Option<CqProducer>>,
}

// SAFETY: context and posting are shared safely by themselves. The ring cell is written only by `prepare`
// and `retire`, which hold the completion lock and a context that nothing runs in; it is read under the
// completion lock, or by what runs in the context.
unsafe impl<C: Sync, R: Memory + Send + Sync, S: Send + Sync> Sync for RingHome<C, R, S> {}

/// A ring for a new thread.
#[derive(Debug)]
pub struct NewRing<R, F> {
    /// Its memory, mapped for the thread's process.
    pub memory: R,
    /// Bytes of parameters of one call, at most.
    pub params_bytes: u32,
    /// Bytes of results of one call, at most.
    pub result_bytes: u32,
    /// Makes what is shared like the ring, where it stays.
    pub shared: F,
    /// Whether every SQE is consumed in a pass, also the only one.
    pub only_passes: bool,
}

/// What is given back by a home that refuses a thread.
#[derive(Debug)]
pub struct Refused<K, N, W> {
    /// The stack.
    pub stack: K,
    /// The ring.
    pub ring: Option<N>,
    /// Why; `None` if there is a thread already.
    pub why: Option<W>,
}

/// What a thread that was taken apart leaves behind.
#[derive(Debug)]
pub struct Remains<K, R, S> {
    /// Its kernel stack.
    pub stack: Option<K>,
    /// The memory of its ring, and what its owner kept with it.
    pub ring: Option<(R, S)>,
}

/// The completion side of a thread's ring, held locked.
#[derive(Debug)]
pub struct Completions<'t, R: Memory, S> {
    guard: Guard<'t, Option<CqProducer>>,
    ring: &'t Ring<R, S>,
}

impl<R: Memory, S> Completions<'_, R, S> {
    /// The ring with the right to post.
    #[inline]
    pub fn parts(&mut self) -> Option<(&Ring<R, S>, &mut CqProducer)> {
        Some((self.ring, self.guard.as_mut()?))
    }

    /// The ring.
    #[inline]
    pub fn ring(&self) -> &Ring<R, S> {
        self.ring
    }
}

impl<C: Context, R: Memory, S> RingHome<C, R, S> {
    /// Room for a thread in `context`, which is empty.
    pub fn new(context: C) -> Self {
        Self {
            context,
            ring: UnsafeCell::new(None),
            posting: TicketLock::with_class(LockClass::Cq, None),
        }
    }

    /// The context to switch to.
    #[inline]
    pub fn context(&'static self) -> &'static C {
        &self.context
    }

    /// Makes it a thread that starts as `start` says; refused, with everything given back, if it is one
    /// already or the context says no.
    #[allow(clippy::type_complexity, reason = "a refusal gives back what it was given")]
    pub fn prepare<F: FnOnce() -> S>(
        &'static self,
        stack: C::Stack,
        start: C::Start<'_>,
        ring: Option<NewRing<R, F>>,
    ) -> Result<(), Refused<C::Stack, NewRing<R, F>, C::Wrong>> {
        let mut posting = self.posting.lock();
        if posting.is_some() {
            return Err(Refused { stack, ring, why: None });
        }
        if let Err((stack, wrong)) = self.context.prepare(stack, start) {
            return Err(Refused { stack, ring, why: Some(wrong) });
        }
        if let Some(NewRing { memory, params_bytes, result_bytes, shared, only_passes }) = ring {
            let (kernel, producer) = KernelRing::new(memory, params_bytes, result_bytes);
            if only_passes {
                kernel.only_passes();
            }
            // SAFETY: the context was empty until now and nothing can have run in it since, for whoever
            // is to run it is told later; others look under the lock held here.
            unsafe { *self.ring.get() = Some(Ring { kernel, shared: shared() }) };
            *posting = Some(producer);
        }
        Ok(())
    }

    /// Gives the running thread's own ring to `f`; `None` unless this is that very thread, or if it has no
    /// ring. `f` may switch to other threads and back.
    #[inline]
    pub fn with_own<T>(&'static self, f: impl FnOnce(&Ring<R, S>) -> T) -> Option<T> {
        if !self.context.runs_here() {
            return None;
        }
        // SAFETY: a context that runs is not taken apart, and only then is the ring. While `f` is
        // switched away from the thread lives, or never goes on with `f`.
        unsafe { &*self.ring.get() }.as_ref().map(f)
    }

    /// Locks the completion side; `None` if there is no ring.
    #[inline]
    pub fn completions(&self) -> Option<Completions<'_, R, S>> {
        let guard = self.posting.lock();
        if guard.is_none() {
            return None;
        }
        // SAFETY: the lock is held, so the ring is not written; and it is there exactly while the
        // right to post is.
        let ring = unsafe { (*self.ring.get()).as_ref().unwrap_unchecked() };
        Some(Completions { guard, ring })
    }

    /// Takes the thread apart, if nothing runs in its context.
    pub fn retire(&'static self) -> Result<Remains<C::Stack, R, S>, C::Wrong> {
        let mut posting = self.posting.lock();
        let stack = self.context.take_apart()?;
        *posting = None;
        // SAFETY: nothing runs in the context, which was just taken apart; others look under the lock held
        // here, and find no right to post.
        let ring = unsafe { (*self.ring.get()).take() };
        Ok(Remains { stack, ring: ring.map(|ring| (ring.kernel.into_memory(), ring.shared)) })
    }
}
