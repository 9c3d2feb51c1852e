//! What a thread of a program starts with.

use core::fmt::{Arguments, Write};
use core::ptr::NonNull;

use abi_sync::BlockMemory;
use abi_types::{CapSlot, Pid, START_BYTES, StartReader, Tid};
use schema::console;

use crate::capset::{CapSet, NoCap};
use crate::io::Io;
use crate::out::Out;
use crate::ring::{Kernel, Ring};
use crate::{Error, syscall};

/// How a process ends whose thread finds no ring where the kernel says it is.
const NO_RING_EXIT: i64 = 102;

/// A thread's environment: its ring, its process's capabilities, who it is.
#[derive(Debug)]
pub struct Env {
    /// The thread's operations.
    pub io: Io,
    /// The process's capabilities by name.
    pub caps: CapSet,
    /// The word the thread was started with.
    pub argument: u64,
    /// The thread's number in its process.
    pub tid: Tid,
    /// The process's number.
    pub pid: Pid,
    start: StartReader<'static>,
    console: Option<CapSlot>,
    ring: u64,
}

/// The registers at entry, in the order of the C convention.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub argument: u64,
    pub tid: u64,
    pub pid: u64,
    pub ring: u64,
    pub capset: u64,
}

impl Env {
    /// What a thread finds at entry.
    ///
    /// # Safety
    /// `entry` is what the kernel started the calling thread with, and its ring is used by
    /// nothing else as long as the value lives.
    pub(crate) unsafe fn new(entry: Entry) -> Self {
        // SAFETY: by the caller.
        let (ring, caps) = unsafe { (ring_at(entry.ring), CapSet::at(entry.capset)) };
        Self {
            io: Io::new(ring),
            caps,
            argument: entry.argument,
            tid: Tid(entry.tid as u32),
            pid: Pid(entry.pid as u32),
            start: StartReader::EMPTY,
            console: caps.find("console", console::INTERFACE_ID).ok(),
            ring: entry.ring,
        }
    }

    /// What the first thread finds at entry: the address of the start page, or 0, is its argument.
    ///
    /// # Safety
    /// As for [`new`](Self::new), and the thread is the program's first.
    pub(crate) unsafe fn first(entry: Entry) -> Self {
        // SAFETY: by the caller.
        let mut env = unsafe { Self::new(Entry { argument: 0, ..entry }) };
        let page = core::ptr::with_exposed_provenance::<[u8; START_BYTES]>(entry.argument as usize);
        // SAFETY: the kernel maps a page there, read-only and as long as the process lives, or says 0.
        if let Some(page) = unsafe { page.as_ref() } {
            env.start = StartReader::new(page);
        }
        env
    }

    /// The program's arguments, in order; only the first thread has them.
    pub fn arguments(&self) -> impl Iterator<Item = &'static str> {
        self.start.arguments()
    }

    /// The program's environment, name and value, in order; only the first thread has it.
    pub fn environment(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.start.variables()
    }

    /// The value of a variable of the environment.
    pub fn variable(&self, name: &str) -> Option<&'static str> {
        self.environment().find_map(|(called, value)| (called == name).then_some(value))
    }

    /// The capability called `name`, if it is of that interface.
    pub fn cap(&self, name: &'static str, interface: u64) -> Result<CapSlot, NoCap> {
        self.caps.find(name, interface)
    }

    /// Where the thread's ring is.
    pub const fn ring_address(&self) -> u64 {
        self.ring
    }

    /// Prints to the console, if the program has one; see [`println!`](crate::println).
    pub fn print(&self, text: Arguments<'_>) {
        if let Some(console) = self.console {
            // A console that takes nothing cannot be told about.
            let _ = Out::new(&self.io, console).write_fmt(text);
        }
    }
}

/// The ring the kernel gave a thread.
///
/// # Safety
/// `address` is what the kernel gave the calling thread in RCX, and nothing else uses the ring as
/// long as the value lives.
pub(crate) unsafe fn ring_at(address: u64) -> Ring {
    let block = NonNull::new(core::ptr::with_exposed_provenance_mut(address as usize));
    // SAFETY: the kernel maps a thread's ring block before it starts and until it ends.
    match block.and_then(|block| unsafe { BlockMemory::attach(block) }) {
        Some(memory) => Ring::new(memory, Kernel),
        // Without a ring there is no one to tell.
        None => syscall::exit(NO_RING_EXIT),
    }
}

/// What a main function returns.
pub trait Ending {
    /// The process's exit code.
    fn code(self, env: &Env) -> i64;
}

impl Ending for i64 {
    fn code(self, _: &Env) -> i64 {
        self
    }
}

impl Ending for () {
    fn code(self, _: &Env) -> i64 {
        0
    }
}

/// An error goes to the console; the exit code is 1.
impl<T: Ending> Ending for Result<T, Error> {
    fn code(self, env: &Env) -> i64 {
        match self {
            Ok(value) => value.code(env),
            Err(error) => {
                crate::println!(env, "process {}: {error}", env.pid.0);
                1
            }
        }
    }
}
