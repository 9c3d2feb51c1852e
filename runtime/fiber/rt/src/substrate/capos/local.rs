//! What a thread knows of itself: thread-local, and never remembered across a switch.
//!
//! Every look from a fiber goes through a function that is not inlined, here or in the substrate,
//! because a fiber may be on another thread after a switch.

use core::cell::Cell;
use core::ptr;

use abi_ring::INLINE_WORDS;
use abi_types::{Cqe, NEVER, Sqe, Status};
use capos_rt::caller::Exchange;
use capos_rt::park::park_sqe;
use capos_rt::{Env, thread as threads};
use schema_wire::{Callee, Encode, Reply, Transfer, Transport};

use super::port::Port;
use super::space;
use crate::worker;

type Foreign = (*const (), Option<fn(*const ())>);

#[thread_local]
static CURRENT: Cell<*const ()> = Cell::new(ptr::null());
#[thread_local]
static PORT: Cell<*const Port> = Cell::new(ptr::null());
#[thread_local]
static ENV: Cell<*const Env> = Cell::new(ptr::null());
#[thread_local]
static FOREIGN: Cell<Foreign> = Cell::new((ptr::null(), None));

#[inline(always)]
pub fn current() -> *const () {
    CURRENT.get()
}

#[inline(always)]
pub fn set_current(pointer: *const ()) {
    CURRENT.set(pointer);
}

/// The port of the worker this thread is.
#[inline(never)]
pub fn port<'a>() -> Option<&'a Port> {
    // SAFETY: set by `attach` for as long as the port is attached; callers use it at once.
    unsafe { PORT.get().as_ref() }
}

/// This thread's environment; none on a thread the runtime library did not start.
#[inline(never)]
pub fn env<'a>() -> Option<&'a Env> {
    if ENV.get().is_null() {
        // The first look of a thread is on its own stack: a fiber's thread is told at its start.
        ENV.set(threads::own_env());
    }
    // SAFETY: a thread's environment is there while the thread is; callers use it at once.
    unsafe { ENV.get().as_ref() }
}

/// Says that `env` is this thread's.
pub fn begin(env: &Env) {
    ENV.set(env);
}

pub fn foreign(make: fn() -> *const (), retire: fn(*const ())) -> *const () {
    if FOREIGN.get().0.is_null() {
        FOREIGN.set((make(), Some(retire)));
    }
    FOREIGN.get().0
}

/// At a thread's end: gives back what it had as a waiter.
pub fn end() {
    if let (frame, Some(retire)) = FOREIGN.replace((ptr::null(), None)) {
        retire(frame);
    }
}

/// Runs `life` with this thread's ring in `port`, whose worker the thread is.
pub fn attach(port: &Port, life: impl FnOnce()) {
    let (Some(env), Some(worker)) = (env(), worker::current()) else { return };
    // Whoever made this thread had one.
    let Some(space) = space(&env.caps) else { return };
    let park = park_sqe(space, worker.wake_word.word(), 0, NEVER);
    env.io.with_ring(|ring| {
        // As long as the ring is lent: who finds a lock taken on the way, that of the port for one, rests and
        // does not park by way of `env.io`.
        PORT.set(port);
        port.open(ring, park);
        life();
        port.close();
        PORT.set(ptr::null());
    });
}

/// The ring of this thread for the report of a panic, if its worker has it.
pub fn seize_ring() -> Option<u64> {
    let port = port()?;
    port.seize();
    env().map(Env::ring_address)
}

/// Submits an operation and blocks this thread, not only its fiber, until it has completed.
pub fn run(sqe: Sqe, payload: &[u64], words: &mut [u64; INLINE_WORDS]) -> Result<Cqe, Status> {
    match port() {
        Some(port) => Ok(port.run(sqe, payload, words)),
        None => env().ok_or(Status::Disconnected)?.io.run(sqe, payload, words),
    }
}

/// How this thread calls, blocking.
pub struct Calls<const WORDS: usize>(pub Exchange<WORDS>);

impl<const WORDS: usize> Transport for Calls<WORDS> {
    fn call<P: Encode>(
        &mut self,
        callee: Callee,
        params: &P,
        transfers: &[Transfer],
    ) -> Result<Reply<'_>, Status> {
        self.0.call(run, callee, params, transfers)
    }
}
