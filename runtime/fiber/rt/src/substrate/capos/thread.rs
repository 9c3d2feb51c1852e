//! Threads on stacks the program declares.

use core::ptr;

use alloc::boxed::Box;

use abi_ring::INLINE_WORDS;
use abi_types::ExceptionKind;
use capos_rt::caller::Exchange;
use capos_rt::io::{ok, status_of};
use capos_rt::thread::{Thread, Threads};
use capos_rt::{Env, Error};
use schema_wire::CallError;

use super::{Port, local, space, stacks};
use crate::fiber::shield;
use crate::ring;
use crate::substrate::SystemError;

/// A thread that runs, on the stack of that number.
pub struct Running {
    thread: Thread,
    stack: usize,
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
    let (number, stack) = stacks::take_for_thread()?;
    let closure = Box::into_raw(Box::new(f));
    let argument = closure.expose_provenance() as u64;
    let calls = local::Calls(Exchange::<INLINE_WORDS>::new());
    match threads.spawn_through(calls, stack, begin, argument) {
        Ok(thread) => Ok(Running { thread, stack: number }),
        Err(error) => {
            // SAFETY: no thread was started with it.
            drop(unsafe { Box::from_raw(closure) });
            stacks::give_from_thread(number);
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
    /// Whether the caller is on it, and not on a fiber's stack.
    pub fn is_current(&self) -> bool {
        let here = 0_u8;
        stacks::is_of_thread(self.stack, ptr::from_ref(&here).addr())
    }

    pub fn join(self) {
        let run = |sqe| ok(status_of(&local::run(sqe, &[], &mut [0; INLINE_WORDS])?));
        let joined = if local::port().is_some_and(Port::has_room) {
            // A fiber waits alone: a worker that waited with it would keep what others want of its ring,
            // and the thread may wait for them.
            shield(|| self.thread.join_through(ring::Caller::new(), run))
        } else {
            // In the backlog it could wait for ever.
            self.thread.join_through(local::Calls(Exchange::<INLINE_WORDS>::new()), run)
        };
        // A stack is used again only if its thread is known to be gone.
        if joined.is_ok() {
            stacks::give_from_thread(self.stack);
        }
    }
}
