//! More threads in this process, on stacks the program declares.
//!
//! A thread has its ring from the kernel and its stack from the program, which declares it with
//! [`stacks!`](crate::stacks); a stack is one thread's at a time and free again when the thread was
//! joined. At its top is what is known about it; below that, if the program has thread-local data, the
//! thread's copy of it.

use core::arch::{asm, global_asm};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use abi_types::place::{STACK_PAGES, STACK_TOP};
use abi_types::{CapSlot, Opcode, Sqe, Status};
use schema::{thread_control, thread_handle, thread_spawner};
use schema_wire::Transport;

use crate::capset::{CapSet, NoCap};
use crate::env::{Entry, Env};
use crate::io::{Io, ok};
use crate::{Error, syscall, tls};

#[doc(hidden)]
pub use crate::stack::note;
pub use crate::stack::{Stack, StackRef, Stacks};

/// How a process ends whose thread cannot end alone.
const NO_THREAD_EXIT: i64 = 103;

/// The least that is a stack.
const LEAST_BYTES: usize = 4096;

/// What a thread runs: its environment, whose `argument` is the word it was started with. The
/// result is its exit code.
pub type Main = fn(&Env) -> i64;

/// The authority to make threads and to end them.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    spawner: CapSlot,
    control: CapSlot,
}

/// At the top of a thread's stack: what is known about it, and the next one in the list of all that
/// were ever used. One that is all zeros is of a stack that is free.
#[derive(Debug)]
#[repr(align(16))]
struct Node {
    is_used: AtomicBool,
    is_listed: AtomicBool,
    next: AtomicPtr<Node>,
    /// Addresses of the stack.
    low: AtomicU64,
    high: AtomicU64,
    /// The ring of the thread on it, and its environment while it runs.
    ring: AtomicU64,
    env: AtomicPtr<Env>,
}

/// At the top of a new thread's stack: what it needs before it has anything else.
#[repr(C, align(16))]
struct Start {
    main: Main,
    argument: u64,
    control: CapSlot,
    node: &'static Node,
}

/// A thread of this process that can be joined.
#[derive(Debug)]
#[must_use = "join it, or its stack is never free again"]
pub struct Thread {
    handle: CapSlot,
    node: &'static Node,
}

impl Threads {
    /// What the process was granted.
    pub fn of(caps: &CapSet) -> Result<Self, NoCap> {
        Ok(Self {
            spawner: caps.first(thread_spawner::INTERFACE_ID)?,
            control: caps.first(thread_control::INTERFACE_ID)?,
        })
    }

    /// Starts a thread. A stack that another thread has is `overloaded`; one that does not hold the
    /// program's thread-local data and a page beside it is `invalid argument`.
    pub fn spawn(
        &self,
        io: &Io,
        stack: impl Into<StackRef>,
        main: Main,
        argument: u64,
    ) -> Result<Thread, Error> {
        self.spawn_through(io.caller(), stack, main, argument)
    }

    /// As [`spawn`](Self::spawn), for who calls in another way than through an [`Io`].
    pub fn spawn_through(
        &self,
        transport: impl Transport,
        stack: impl Into<StackRef>,
        main: Main,
        argument: u64,
    ) -> Result<Thread, Error> {
        let memory = stack.into().memory();
        let node_at = memory.end - size_of::<Node>();
        // SAFETY: the top of a stack is its node, whichever thread looks; zeros are a node, and a stack
        // is a multiple of what a node is aligned to.
        let node = unsafe { &*ptr::with_exposed_provenance::<Node>(node_at) };
        // Acquire pairs with the release in `join`: the thread before is gone.
        if node.is_used.swap(true, Ordering::Acquire) {
            return Err(Status::Overloaded.into());
        }
        let start = node_at - size_of::<Start>();
        let place = ptr::with_exposed_provenance_mut::<Start>(start);
        // SAFETY: `is_used` was free: no thread is on the stack; the place is in it and aligned.
        unsafe { place.write(Start { main, argument, control: self.control, node }) };
        let Some((top, fs_base)) = thread_local_data(memory.start, start) else {
            node.is_used.store(false, Ordering::Release);
            return Err(Status::InvalidArgument.into());
        };
        node.low.store(memory.start as u64, Ordering::Relaxed);
        node.high.store(node_at as u64, Ordering::Relaxed);
        list(node);
        let entry = thread_entry as *const () as u64;
        let created = thread_spawner::Client::new(transport, self.spawner).create(
            entry,
            top as u64,
            start as u64,
            fs_base as u64,
            0,
        );
        match created {
            Ok(created) => {
                let handle = CapSlot::new(created.handle_index.into(), created.handle_generation);
                Ok(Thread { handle, node })
            }
            Err(error) => {
                node.is_used.store(false, Ordering::Release);
                Err(error.into())
            }
        }
    }
}

/// Makes a copy of the program's thread-local data below `end`, in the stack that begins at `first`;
/// where the stack ends then, and what FS is to be. Nothing if there is no room for it.
fn thread_local_data(first: usize, end: usize) -> Option<(usize, usize)> {
    let Some(template) = tls::template() else { return Some((end, 0)) };
    let place = template.below(end)?;
    let top = place.start() & !15;
    if top < first + LEAST_BYTES {
        return None;
    }
    // SAFETY: within the stack, on which no thread runs yet, and below what is at its top.
    unsafe { template.fill(place) };
    Some((top, place.pointer))
}

impl Thread {
    /// The capability that names it.
    pub const fn handle(&self) -> CapSlot {
        self.handle
    }

    /// Waits for the thread to end; its exit code. Its stack is free again.
    pub fn join(self, io: &Io) -> Result<i64, Error> {
        self.join_through(io.caller(), |sqe| ok(io.run_plain(sqe)?.0))
    }

    /// As [`join`](Self::join), for who calls and submits in another way than through an [`Io`].
    pub fn join_through(
        self,
        transport: impl Transport,
        run: impl FnOnce(Sqe) -> Result<(), Status>,
    ) -> Result<i64, Error> {
        let code = thread_handle::Client::new(transport, self.handle).join()?.exit_code;
        run(Sqe { opcode: Opcode::Release as u8, cap: self.handle.to_bits(), ..Sqe::default() })?;
        // Release pairs with the acquire in `spawn`.
        self.node.is_used.store(false, Ordering::Release);
        Ok(code)
    }
}

global_asm!(
    ".globl capos_thread_entry",
    ".type capos_thread_entry, @function",
    "capos_thread_entry:",
    "xor ebp, ebp",
    "call {start}",
    "ud2",
    ".size capos_thread_entry, . - capos_thread_entry",
    start = sym thread_start,
);

unsafe extern "C" {
    #[link_name = "capos_thread_entry"]
    fn thread_entry();
}

extern "C" fn thread_start(argument: u64, tid: u64, pid: u64, ring: u64, capset: u64) -> ! {
    // SAFETY: `spawn` wrote it at the top of this thread's stack, above what the thread uses.
    let start = unsafe { &*ptr::with_exposed_provenance::<Start>(argument as usize) };
    start.node.ring.store(ring, Ordering::Relaxed);
    // SAFETY: the registers the kernel started this thread with, but for the argument, which is
    // a plain word; the ring is this thread's.
    let env = unsafe { Env::new(Entry { argument: start.argument, tid, pid, ring, capset }) };
    start.node.env.store(ptr::from_ref(&env).cast_mut(), Ordering::Relaxed);
    let code = (start.main)(&env);
    let at_end = AT_END.load(Ordering::Acquire);
    if !at_end.is_null() {
        // SAFETY: `at_end` stored a function of this type.
        let at_end = unsafe { core::mem::transmute::<*mut (), fn()>(at_end) };
        at_end();
    }
    start.node.env.store(ptr::null_mut(), Ordering::Relaxed);
    // Does not return: the thread is gone, and its stack with it for whoever joins it.
    let _ = thread_control::Client::new(env.io.caller(), start.control).exit_thread(code);
    syscall::exit(NO_THREAD_EXIT)
}

/// What every thread but the first calls at its end.
static AT_END: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// Has `f` called by every thread that ends by itself, on that thread, from now on. One function for
/// the whole program: the last one counts.
pub fn at_end(f: fn()) {
    // Release pairs with the acquire of a thread that ends.
    AT_END.store(f as *mut (), Ordering::Release);
}

/// How long a thread that gives its CPU away stays away.
const REST_NS: u64 = 20_000;

/// Gives the CPU away for a moment, whatever the thread is doing: uses nothing of its ring but the way
/// into the kernel.
pub fn rest() {
    // More completions than there are: only the time ends it.
    let _ = syscall::cap_enter(u32::MAX, REST_NS);
}

/// The first thread's ring and environment, and the CapSet.
static FIRST_RING: AtomicU64 = AtomicU64::new(0);
static FIRST_ENV: AtomicPtr<Env> = AtomicPtr::new(ptr::null_mut());
static CAPSET: AtomicU64 = AtomicU64::new(0);
/// All stacks that were ever used.
static STACKS: AtomicPtr<Node> = AtomicPtr::new(ptr::null_mut());

pub(crate) fn remember_first(ring: u64, capset: u64) {
    FIRST_RING.store(ring, Ordering::Relaxed);
    CAPSET.store(capset, Ordering::Relaxed);
}

pub(crate) fn remember_first_env(env: &'static Env) {
    FIRST_ENV.store(ptr::from_ref(env).cast_mut(), Ordering::Relaxed);
}

fn stack_pointer() -> u64 {
    let stack: u64;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, rsp", out(reg) stack, options(nomem, nostack, preserves_flags)) };
    stack
}

/// What is known of the stack this code runs on, if it is one of a thread of the program.
fn own_node() -> Option<&'static Node> {
    let stack = stack_pointer();
    // Acquire pairs with the release in `list`: the nodes behind the head are written.
    let mut node = STACKS.load(Ordering::Acquire);
    // SAFETY: only statics are listed.
    while let Some(found) = unsafe { node.as_ref() } {
        let range = found.low.load(Ordering::Relaxed)..found.high.load(Ordering::Relaxed);
        if range.contains(&stack) {
            return Some(found);
        }
        node = found.next.load(Ordering::Relaxed);
    }
    None
}

/// The environment of the calling thread, found by the stack it runs on: null if that is neither the
/// first thread's nor a [`Stack`]. Good while the thread runs, and for it alone.
pub fn own_env() -> *const Env {
    if (STACK_TOP - STACK_PAGES * 4096..=STACK_TOP).contains(&stack_pointer()) {
        return FIRST_ENV.load(Ordering::Relaxed);
    }
    own_node().map_or(ptr::null(), |node| node.env.load(Ordering::Relaxed).cast_const())
}

/// The ring of the calling thread, found by its stack, and the CapSet's address.
pub(crate) fn own_ring_and_capset() -> (u64, u64) {
    let ring = own_node().map_or(&FIRST_RING, |node| &node.ring);
    (ring.load(Ordering::Relaxed), CAPSET.load(Ordering::Relaxed))
}

/// Puts a node into the list, once.
fn list(node: &'static Node) {
    if node.is_listed.swap(true, Ordering::Relaxed) {
        return;
    }
    let new = ptr::from_ref(node).cast_mut();
    let mut head = STACKS.load(Ordering::Relaxed);
    loop {
        node.next.store(head, Ordering::Relaxed);
        // Release pairs with the acquire in `own_ring_and_capset`.
        match STACKS.compare_exchange_weak(head, new, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => head = now,
        }
    }
}
