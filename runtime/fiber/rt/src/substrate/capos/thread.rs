//! Threads on stacks of the heap.

use core::alloc::Layout;
use core::ptr;

use alloc::boxed::Box;
use alloc::vec::Vec;

use abi_ring::INLINE_WORDS;
use abi_types::ExceptionKind;
use capos_rt::caller::Exchange;
use capos_rt::io::{ok, status_of};
use capos_rt::thread::{Stack, Thread, Threads};
use capos_rt::{Env, Error};
use schema_wire::CallError;

use super::{local, space};
use crate::lock::SpinLock;
use crate::substrate::SystemError;

/// A worker's own stack: it runs fibers on theirs. Also that of other threads of the program.
const STACK_BYTES: usize = 64 << 10;

type WorkerStack = Stack<STACK_BYTES>;

/// Stacks that no thread is on. Never freed: a report may look through all there ever were.
static STACKS: SpinLock<Vec<&'static WorkerStack>> = SpinLock::new(Vec::new());

/// A thread that runs, on its stack.
pub struct Running {
    thread: Thread,
    stack: &'static WorkerStack,
}

fn stack() -> Result<&'static WorkerStack, SystemError> {
    if let Some(stack) = STACKS.with(Vec::pop) {
        return Ok(stack);
    }
    let layout = Layout::new::<WorkerStack>();
    // SAFETY: the layout is not empty.
    let memory = unsafe { alloc::alloc::alloc_zeroed(layout) }.cast::<WorkerStack>();
    // SAFETY: null, or memory for one, which is a free stack when it is all zeros; it is never freed.
    unsafe { memory.as_ref() }.ok_or(SystemError::Heap(layout.size()))
}

/// What a thread runs first: its word is the closure, boxed twice.
fn begin(env: &Env) -> i64 {
    local::begin(env);
    let closure =
        ptr::with_exposed_provenance_mut::<Box<dyn FnOnce() + Send>>(env.argument as usize);
    // SAFETY: `spawn` made it, for this thread alone.
    let closure = unsafe { Box::from_raw(closure) };
    closure();
    0
}

pub fn spawn(f: Box<dyn FnOnce() + Send>) -> Result<Running, SystemError> {
    let env = local::env().ok_or(SystemError::Thread(0))?;
    let threads = Threads::of(&env.caps)
        .map_err(|_| SystemError::Capability("ThreadSpawner with ThreadControl"))?;
    space(&env.caps).ok_or(SystemError::Capability("ParkSpace"))?;
    let stack = stack()?;
    let closure = Box::into_raw(Box::new(f));
    let argument = closure.expose_provenance() as u64;
    let calls = local::Calls(Exchange::<INLINE_WORDS>::new());
    match threads.spawn_through(calls, stack, begin, argument) {
        Ok(thread) => Ok(Running { thread, stack }),
        Err(error) => {
            // SAFETY: no thread was started with it.
            drop(unsafe { Box::from_raw(closure) });
            STACKS.with(|stacks| stacks.push(stack));
            Err(refusal(&error))
        }
    }
}

fn refusal(error: &Error) -> SystemError {
    match error {
        Error::Call(CallError::Exception(exception))
            if exception.kind() == ExceptionKind::Overloaded =>
        {
            SystemError::Threads
        }
        Error::Status(status) | Error::Call(CallError::Status(status)) => {
            SystemError::Thread(i32::from(*status as u8))
        }
        _ => SystemError::Thread(0),
    }
}

impl Running {
    pub fn join(self) {
        let calls = local::Calls(Exchange::<INLINE_WORDS>::new());
        let run = |sqe| ok(status_of(&local::run(sqe, &[], &mut [0; INLINE_WORDS])?));
        // A stack is used again only if its thread is known to be gone.
        if self.thread.join_through(calls, run).is_ok() {
            STACKS.with(|stacks| stacks.push(self.stack));
        }
    }
}
