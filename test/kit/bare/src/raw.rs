//! Threads without a runtime's start: any FS base, and the registers they started with.

use core::cell::UnsafeCell;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU64, Ordering};

use abi_sync::BlockMemory;
use abi_types::{CapSlot, Pid, Tid};
use capos_rt::exit;
use capos_rt::io::Io;
use capos_rt::ring::{Kernel, Ring};
use schema::{thread_control, thread_spawner};
use schema_wire::CallError;

use crate::entry::{Place, Registers};

/// How a process ends whose raw thread goes on after its end.
const STILL_HERE_EXIT: i64 = 113;

/// What a raw thread knows.
#[derive(Debug)]
pub struct Child {
    /// Its operations.
    pub io: Io,
    /// Its number.
    pub tid: Tid,
    /// Its process's number.
    pub pid: Pid,
    /// The word it was started with.
    pub argument: u64,
}

/// What a raw thread runs; its result is the exit code.
pub type Main = fn(&Child) -> i64;

/// The authority to make raw threads.
#[derive(Clone, Copy, Debug)]
pub struct By {
    /// A ThreadSpawner.
    pub spawner: CapSlot,
    /// A ThreadControl, for their end.
    pub control: CapSlot,
}

/// What a raw thread is started with.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// What it runs.
    pub main: Main,
    /// Its word.
    pub argument: u64,
    /// Its FS base.
    pub fs_base: u64,
}

/// What is at the address a raw thread starts with.
#[repr(C)]
struct Start {
    place: Place,
    /// A [`Main`], as its address.
    main: AtomicU64,
    argument: AtomicU64,
    control: AtomicU64,
}

/// Memory of one raw thread: its stack, and where its registers are written.
#[repr(C, align(64))]
pub struct Raw<const BYTES: usize> {
    memory: UnsafeCell<[u8; BYTES]>,
    start: Start,
}

// SAFETY: the stack is used by its thread only; the rest is atomics, constants and the place.
unsafe impl<const BYTES: usize> Sync for Raw<BYTES> {}

impl<const BYTES: usize> Raw<BYTES> {
    /// Memory without a thread.
    pub const fn new() -> Self {
        Self {
            memory: UnsafeCell::new([0; BYTES]),
            start: Start {
                place: Place::new(),
                main: AtomicU64::new(0),
                argument: AtomicU64::new(0),
                control: AtomicU64::new(0),
            },
        }
    }

    /// Where its stack begins.
    pub fn stack_top(&'static self) -> u64 {
        (self.memory.get().expose_provenance() + BYTES) as u64
    }

    /// What it starts with in RDI.
    pub fn start_address(&'static self) -> u64 {
        self.start.place.address()
    }

    /// The registers it started with, once it has told that it runs.
    pub fn registers(&'static self) -> Registers {
        self.start.place.read()
    }

    /// Starts a thread on it; its handle. One at a time: the one before has exited.
    pub fn start(&'static self, io: &Io, by: By, run: Run) -> Result<CapSlot, CallError> {
        let Run { main, argument, fs_base } = run;
        self.start.main.store(main as *const () as u64, Ordering::Relaxed);
        self.start.argument.store(argument, Ordering::Relaxed);
        self.start.control.store(by.control.to_bits(), Ordering::Relaxed);
        let created = thread_spawner::Client::new(io.caller(), by.spawner).create(
            child_entry(),
            self.stack_top(),
            self.start_address(),
            fs_base,
            0,
        )?;
        Ok(CapSlot::new(created.handle_index.into(), created.handle_generation))
    }
}

impl<const BYTES: usize> Default for Raw<BYTES> {
    fn default() -> Self {
        Self::new()
    }
}

unsafe extern "C" {
    fn bare_child_entry();
}

/// Where raw threads begin.
pub fn child_entry() -> u64 {
    bare_child_entry as *const () as u64
}

/// Called by `bare_child_entry` with the registers the kernel started the thread with.
pub(crate) extern "C" fn child(start: u64, tid: u64, pid: u64, ring: u64, _capset: u64) -> ! {
    // SAFETY: `Raw::start` passes the address of its own, which is static.
    let start = unsafe { &*ptr::with_exposed_provenance::<Start>(start as usize) };
    let block = NonNull::new(ptr::with_exposed_provenance_mut(ring as usize));
    // SAFETY: the kernel maps a thread's ring block before it starts, for this thread alone.
    let Some(memory) = block.and_then(|block| unsafe { BlockMemory::attach(block) }) else {
        exit(STILL_HERE_EXIT)
    };
    let child = Child {
        io: Io::new(Ring::new(memory, Kernel)),
        tid: Tid(tid as u32),
        pid: Pid(pid as u32),
        argument: start.argument.load(Ordering::Relaxed),
    };
    // SAFETY: `Raw::start` put it there, from a function of this type.
    let main = unsafe {
        core::mem::transmute::<*const (), Main>(ptr::with_exposed_provenance(
            start.main.load(Ordering::Relaxed) as usize,
        ))
    };
    let code = main(&child);
    let control = CapSlot::from_bits(start.control.load(Ordering::Relaxed));
    let _ = thread_control::Client::new(child.io.caller(), control).exit_thread(code);
    exit(STILL_HERE_EXIT)
}
