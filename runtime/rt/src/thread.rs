//! More threads in this process, on stacks the program declares.
//!
//! A thread has its ring from the kernel and its stack from a [`Stack`], a static of the program;
//! a stack is one thread's at a time and free again when the thread was joined. There is no guard
//! below a static stack: size it for what runs on it.

use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use abi_types::{CapSlot, Status};
use schema::{thread_control, thread_handle, thread_spawner};

use crate::capset::{CapSet, NoCap};
use crate::env::{Entry, Env};
use crate::io::Io;
use crate::{Error, syscall};

/// How a process ends whose thread cannot end alone.
const NO_THREAD_EXIT: i64 = 103;

/// What a thread runs: its environment, whose `argument` is the word it was started with. The
/// result is its exit code.
pub type Main = fn(&Env) -> i64;

/// The authority to make threads and to end them.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    spawner: CapSlot,
    control: CapSlot,
}

/// Memory for the stack of one thread at a time.
#[derive(Debug)]
#[repr(C, align(16))]
pub struct Stack<const BYTES: usize> {
    memory: UnsafeCell<[u8; BYTES]>,
    node: Node,
}

/// What is known about a stack, and the next one in the list of all that were ever used.
#[derive(Debug)]
struct Node {
    is_used: AtomicBool,
    is_listed: AtomicBool,
    next: AtomicPtr<Node>,
    /// Addresses of the stack.
    low: AtomicU64,
    high: AtomicU64,
    /// The ring of the thread on it.
    ring: AtomicU64,
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

// SAFETY: the memory is accessed by the thread that runs on it, and by `spawn` while `is_used`
// was taken and the thread does not run yet.
unsafe impl<const BYTES: usize> Sync for Stack<BYTES> {}

impl<const BYTES: usize> Stack<BYTES> {
    const LARGE_ENOUGH: () = assert!(BYTES >= 4096 && BYTES.is_multiple_of(16));

    /// A stack that is free.
    pub const fn new() -> Self {
        let () = Self::LARGE_ENOUGH;
        let node = Node {
            is_used: AtomicBool::new(false),
            is_listed: AtomicBool::new(false),
            next: AtomicPtr::new(ptr::null_mut()),
            low: AtomicU64::new(0),
            high: AtomicU64::new(0),
            ring: AtomicU64::new(0),
        };
        Self { memory: UnsafeCell::new([0; BYTES]), node }
    }
}

impl<const BYTES: usize> Default for Stack<BYTES> {
    fn default() -> Self {
        Self::new()
    }
}

impl Threads {
    /// What the process was granted.
    pub fn of(caps: &CapSet) -> Result<Self, NoCap> {
        Ok(Self {
            spawner: caps.first(thread_spawner::INTERFACE_ID)?,
            control: caps.first(thread_control::INTERFACE_ID)?,
        })
    }

    /// Starts a thread. A stack that another thread has is `overloaded`.
    pub fn spawn<const BYTES: usize>(
        &self,
        io: &Io,
        stack: &'static Stack<BYTES>,
        main: Main,
        argument: u64,
    ) -> Result<Thread, Error> {
        let node = &stack.node;
        // Acquire pairs with the release in `join`: the thread before is gone.
        if node.is_used.swap(true, Ordering::Acquire) {
            return Err(Status::Overloaded.into());
        }
        let low = stack.memory.get().cast::<u8>();
        // SAFETY: within the memory, which is a multiple of 16 and larger than a Start.
        let start = unsafe { low.add(BYTES - size_of::<Start>()) }.cast::<Start>();
        // SAFETY: `is_used` was free: no thread is on the stack; the place is in it and aligned.
        unsafe { start.write(Start { main, argument, control: self.control, node }) };
        let top = start.expose_provenance() as u64;
        node.low.store(low.expose_provenance() as u64, Ordering::Relaxed);
        node.high.store(top + size_of::<Start>() as u64, Ordering::Relaxed);
        list(node);
        let entry = thread_entry as *const () as u64;
        let created =
            thread_spawner::Client::new(io.caller(), self.spawner).create(entry, top, top, 0, 0);
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

impl Thread {
    /// The capability that names it.
    pub const fn handle(&self) -> CapSlot {
        self.handle
    }

    /// Waits for the thread to end; its exit code. Its stack is free again.
    pub fn join(self, io: &Io) -> Result<i64, Error> {
        let code = thread_handle::Client::new(io.caller(), self.handle).join()?.exit_code;
        io.release(self.handle)?;
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
    let code = (start.main)(&env);
    // Does not return: the thread is gone, and its stack with it for whoever joins it.
    let _ = thread_control::Client::new(env.io.caller(), start.control).exit_thread(code);
    syscall::exit(NO_THREAD_EXIT)
}

/// The first thread's ring and the CapSet, for the report of a panic.
static FIRST_RING: AtomicU64 = AtomicU64::new(0);
static CAPSET: AtomicU64 = AtomicU64::new(0);
/// All stacks that were ever used.
static STACKS: AtomicPtr<Node> = AtomicPtr::new(ptr::null_mut());

pub(crate) fn remember_first(ring: u64, capset: u64) {
    FIRST_RING.store(ring, Ordering::Relaxed);
    CAPSET.store(capset, Ordering::Relaxed);
}

/// The ring of the calling thread, found by its stack, and the CapSet's address.
pub(crate) fn own_ring_and_capset() -> (u64, u64) {
    let stack: u64;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, rsp", out(reg) stack, options(nomem, nostack, preserves_flags)) };
    // Acquire pairs with the release in `list`: the nodes behind the head are written.
    let mut node = STACKS.load(Ordering::Acquire);
    // SAFETY: only statics are listed.
    while let Some(found) = unsafe { node.as_ref() } {
        let range = found.low.load(Ordering::Relaxed)..found.high.load(Ordering::Relaxed);
        if range.contains(&stack) {
            return (found.ring.load(Ordering::Relaxed), CAPSET.load(Ordering::Relaxed));
        }
        node = found.next.load(Ordering::Relaxed);
    }
    (FIRST_RING.load(Ordering::Relaxed), CAPSET.load(Ordering::Relaxed))
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
