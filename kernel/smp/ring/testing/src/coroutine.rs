//! Contexts that are coroutines of one thread of the host.
//!
//! For a machine that decides itself what runs when: [`CoroutineContext::resume`] runs a context until it
//! [suspends](CoroutineContext::suspend) itself. A switch is some instructions, where threads of the host take
//! microseconds, and nothing happens by chance.
//!
//! A context that is taken apart is abandoned, as the kernel abandons a stack: what its body has captured is
//! dropped, what lies on the stack is not. A thread that ends with a lock in its hands is found by whoever wants
//! the lock.

use crate::InUse;
use crate::stack::CoroutineStack;
use core::cell::UnsafeCell;
use core::convert::Infallible;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// What a context runs, from its bottom; once.
pub type CoroutineBody = Box<dyn FnMut() -> Infallible>;

/// What a context ends with: a panic.
type Panicked = Box<dyn Any + Send>;

type Fiber = Coroutine<(), (), Panicked, CoroutineStack>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// Without a stack.
    Empty,
    /// Has a stack that nothing runs on at the moment.
    Suspended,
    /// Runs, or has resumed one that does.
    Running,
}

/// A context that is a coroutine of the thread of the host that made it.
pub struct CoroutineContext {
    /// The thread of the host.
    owner: u64,
    life: Cell<Life>,
    fiber: UnsafeCell<Option<Fiber>>,
    /// Beside the stack, which is abandoned.
    body: UnsafeCell<Option<CoroutineBody>>,
    /// What suspends it; from its first instruction on.
    yielder: Cell<*const Yielder<(), ()>>,
}

static THREADS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// A number that no other thread of the host has.
    static ME: u64 = THREADS.fetch_add(1, Ordering::Relaxed);
    /// The context that runs.
    static HERE: Cell<Option<&'static CoroutineContext>> = const { Cell::new(None) };
}

// SAFETY: whatever reaches a context's cells has asked `check_owner`, so one thread of the host does.
unsafe impl Sync for CoroutineContext {}

impl CoroutineContext {
    /// Room for a context, whose coroutines are the calling thread's.
    pub fn new() -> Self {
        Self {
            owner: ME.with(|me| *me),
            life: Cell::new(Life::Empty),
            fiber: UnsafeCell::new(None),
            body: UnsafeCell::new(None),
            yielder: Cell::new(core::ptr::null()),
        }
    }

    fn check_owner(&self) {
        let is_owner = ME.with(|me| *me == self.owner);
        assert!(
            is_owner,
            "a coroutine is used by the thread of the host that made it, and no other"
        );
    }

    /// Runs the context until it suspends itself; panics as it did.
    pub fn resume(&'static self) {
        self.check_owner();
        match self.life.replace(Life::Running) {
            Life::Suspended => {}
            life => panic!("a context that is resumed has to be suspended, not {life:?}"),
        }
        let before = HERE.replace(Some(self));
        // SAFETY: on this thread of the host (`check_owner`) the cell is reached by whoever has found the
        // context suspended or empty, and it is neither until the coroutine comes back.
        let fiber = unsafe { &mut *self.fiber.get() };
        let came = fiber.as_mut().map(|fiber| fiber.resume(()));
        HERE.set(before);
        self.life.set(Life::Suspended);
        match came {
            Some(CoroutineResult::Yield(())) => {}
            Some(CoroutineResult::Return(panicked)) => resume_unwind(panicked),
            None => panic!("a suspended context has a coroutine"),
        }
    }

    /// Suspends the context that runs, until it is resumed.
    pub fn suspend() {
        let Some(here) = HERE.get() else { panic!("only what runs in a context is suspended") };
        // SAFETY: the coroutine runs, on this stack, so its yielder is there.
        unsafe { &*here.yielder.get() }.suspend(());
    }

    /// Runs the body, from the bottom of its stack.
    fn run(&self) -> Panicked {
        // SAFETY: the body is taken out once the context is not running, and is reached by nobody else.
        let body = unsafe { &mut *self.body.get() };
        match catch_unwind(AssertUnwindSafe(|| body.as_mut().map(|body| body()))) {
            Ok(Some(never)) => match never {},
            Ok(None) => Box::new("a context that is resumed has a body"),
            Err(panicked) => panicked,
        }
    }
}

impl Default for CoroutineContext {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: a context finds itself in `HERE` only while it runs. It is prepared only if it is empty, and runs only
// when it is resumed; it is taken apart only if it is suspended, and cannot be resumed from then on.
unsafe impl smp_ring::Context for CoroutineContext {
    type Stack = CoroutineStack;
    type Start<'s> = CoroutineBody;
    type Wrong = InUse;

    fn prepare(
        &'static self,
        stack: CoroutineStack,
        start: CoroutineBody,
    ) -> Result<(), (CoroutineStack, InUse)> {
        self.check_owner();
        if self.life.get() != Life::Empty {
            return Err((stack, InUse));
        }
        let fiber = Fiber::with_stack(stack, move |yielder, ()| {
            self.yielder.set(yielder);
            self.run()
        });
        // SAFETY: as in `resume`: the context is empty, so nobody else reaches the cells.
        unsafe {
            *self.body.get() = Some(start);
            *self.fiber.get() = Some(fiber);
        }
        self.life.set(Life::Suspended);
        Ok(())
    }

    fn runs_here(&'static self) -> bool {
        HERE.get().is_some_and(|here| core::ptr::eq(here, self))
    }

    fn take_apart(&'static self) -> Result<Option<CoroutineStack>, InUse> {
        self.check_owner();
        if self.life.get() != Life::Suspended {
            return Err(InUse);
        }
        self.life.set(Life::Empty);
        // SAFETY: as in `resume`: nothing runs in the context, and from here on nothing can.
        let (fiber, body) = unsafe { ((*self.fiber.get()).take(), (*self.body.get()).take()) };
        let stack = fiber.map(|mut fiber| {
            // SAFETY: nothing that needs to be dropped for the sake of others lies on a stack that the kernel
            // would abandon (ADR 155), and the closure of `prepare` holds nothing but a reference.
            unsafe { fiber.force_reset() };
            fiber.into_stack()
        });
        drop(body);
        Ok(stack)
    }
}
