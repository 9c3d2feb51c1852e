//! Contexts for tests of what runs in the kernel's: threads of the host here, coroutines in `coroutine.rs`.
//!
//! A CPU of a test is a baton: the thread that has it runs, and hands it to the context it switches to.
//! Under `cfg(shuttle)` the threads are shuttle's, so a model explores how CPUs interleave.
//!
//! A context ends by unwinding its own stack to the bottom, and only then hands the baton on: what lies on
//! a stack in the kernel is abandoned, and what lies on one here is dropped while its thread still runs.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_const_for_thread_local,
    reason = "this crate reports by panicking; a model's thread locals are not const"
)]

mod coroutine;
mod stack;

pub use coroutine::{CoroutineBody, CoroutineContext};
#[cfg(shuttle)]
use shuttle::{
    sync::{Condvar, Mutex},
    thread, thread_local,
};
pub use stack::CoroutineStack;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
#[cfg(not(shuttle))]
use std::{
    sync::{Condvar, Mutex},
    thread,
};

/// What a context runs, from its bottom.
pub type Body = Box<dyn FnOnce() + Send>;

/// A context that is a thread of the host.
pub struct HostContext {
    life: Mutex<Life>,
    changed: Condvar,
}

enum Life {
    /// Without a thread.
    Empty,
    /// Prepared, and never run.
    New(Body),
    /// Its thread waits for a baton.
    Waiting,
    /// Its thread has, or is about to take, the baton of this CPU.
    Running(usize),
    /// Its thread waits, will never have a baton again, and is to unwind.
    Abandoned,
    /// Its thread will not run again.
    Ended,
}

/// The context is not in a state to be prepared or taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InUse;

/// What unwinds the stack of a context that ends: what happens at the bottom.
struct Ending(Box<dyn FnOnce() + Send>);

thread_local! {
    /// The context this thread is, and the CPU whose baton it has.
    static HERE: Cell<(Option<&'static HostContext>, usize)> = Cell::new((None, 0));
}

/// The CPU whose baton the caller has.
pub fn cpu_here() -> usize {
    HERE.with(Cell::get).1
}

impl HostContext {
    /// Room for a context.
    pub fn new() -> Self {
        Self { life: Mutex::new(Life::Empty), changed: Condvar::new() }
    }

    /// Gives the baton of `cpu` to the context.
    pub fn resume(&'static self, cpu: usize) {
        let mut life = self.life.lock().unwrap();
        let before = std::mem::replace(&mut *life, Life::Running(cpu));
        drop(life);
        match before {
            Life::New(body) => drop(thread::spawn(move || self.run(cpu, body))),
            Life::Waiting => self.changed.notify_all(),
            Life::Running(on) => panic!("CPU {cpu} resumes what CPU {on} runs"),
            Life::Empty | Life::Abandoned | Life::Ended => {
                panic!("CPU {cpu} resumes a context that is gone")
            }
        }
    }

    fn run(&'static self, cpu: usize, body: Body) {
        HERE.with(|here| here.set((Some(self), cpu)));
        if let Err(unwound) = catch_unwind(AssertUnwindSafe(body)) {
            match unwound.downcast::<Ending>() {
                Ok(ending) => {
                    *self.life.lock().unwrap() = Life::Ended;
                    self.changed.notify_all();
                    (ending.0)();
                }
                Err(panicked) => resume_unwind(panicked),
            }
        }
    }

    /// Hands the baton on, as `hand_on` does it, and waits until it comes back.
    pub fn switch(&'static self, hand_on: impl FnOnce()) {
        *self.life.lock().unwrap() = Life::Waiting;
        hand_on();
        let mut life = self.life.lock().unwrap();
        let cpu = loop {
            match *life {
                Life::Running(cpu) => break cpu,
                Life::Abandoned => {
                    drop(life);
                    Self::end(|| {});
                }
                _ => life = self.changed.wait(life).unwrap(),
            }
        };
        HERE.with(|here| here.set((Some(self), cpu)));
    }

    /// Unwinds the caller's stack, marks its context as ended and hands the baton on.
    pub fn end(hand_on: impl FnOnce() + Send + 'static) -> ! {
        resume_unwind(Box::new(Ending(Box::new(hand_on))))
    }
}

impl Default for HostContext {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: a thread finds itself in `HERE` only while it has a baton. A context is prepared only if it is empty
// and runs only when it is resumed; it is taken apart only if it never ran, or once its thread has unwound.
unsafe impl smp_ring::Context for HostContext {
    type Stack = ();
    type Start<'s> = Body;
    type Wrong = InUse;

    fn prepare(&'static self, (): (), start: Body) -> Result<(), ((), InUse)> {
        let mut life = self.life.lock().unwrap();
        match *life {
            Life::Empty => {
                *life = Life::New(start);
                Ok(())
            }
            _ => Err(((), InUse)),
        }
    }

    fn runs_here(&'static self) -> bool {
        HERE.with(Cell::get).0.is_some_and(|here| core::ptr::eq(here, self))
    }

    fn take_apart(&'static self) -> Result<Option<()>, InUse> {
        let mut life = self.life.lock().unwrap();
        if matches!(*life, Life::Waiting) {
            // What lies on the stack is dropped while everything it refers to is still there.
            *life = Life::Abandoned;
            self.changed.notify_all();
            while !matches!(*life, Life::Ended) {
                life = self.changed.wait(life).unwrap();
            }
        }
        match *life {
            Life::New(_) | Life::Ended => {
                *life = Life::Empty;
                Ok(Some(()))
            }
            Life::Empty | Life::Waiting | Life::Abandoned | Life::Running(_) => Err(InUse),
        }
    }
}
