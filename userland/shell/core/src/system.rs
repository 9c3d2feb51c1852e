//! What the shell asks of the machine.

use core::fmt::Write;

use schema::process_handle::{InfoResults, ProcessUsage};
use schema::system_info::{CpuCounters, Machine};

use crate::text::{Ended, Sentence};

/// Bytes that a program writes with one call at most, for the shell to pass on.
pub const PIECE_BYTES: usize = 104;

/// A program that can be run, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// What people call it.
    pub name: &'static str,
    /// What it does, and what its arguments are.
    pub about: &'static str,
}

/// A program to start.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// Its name.
    pub program: &'a str,
    /// Whether it is an entry of the boot manifest, with arguments of the manifest's.
    pub is_entry: bool,
    /// Its arguments.
    pub arguments: &'a [&'a str],
    /// What its calls on the console arrive with.
    pub badge: u64,
}

/// The badge of all entries of the boot manifest: their console facets are the manifest's.
pub const ENTRY_BADGE: u64 = 0;

/// A process that was started, as the machine knows it until [`System::forget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(pub usize);

/// A call on the console that is not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked(pub u64);

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A byte was typed.
    Typed(u8),
    /// A program wrote to the console; it is answered with the next question about what happened.
    Wrote {
        /// Which one.
        badge: u64,
        /// What.
        bytes: arrayvec::ArrayVec<u8, PIECE_BYTES>,
    },
    /// A program reads from the console.
    Reads {
        /// Which one.
        badge: u64,
        /// How many bytes it takes.
        capacity: usize,
        /// What it is answered by.
        asked: Asked,
    },
    /// A process is gone.
    Ended(Process, Ended),
}

/// A figure that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Of what.
    pub what: &'static str,
    /// How often it was done.
    pub times: u64,
    /// How long that took.
    pub ns: u64,
}

/// The machine. What is written to it goes to the console.
pub trait System: Write {
    /// Waits until something happens.
    fn next(&mut self) -> Happening;
    /// Writes what a program wrote, as it is.
    fn show(&mut self, bytes: &[u8]);

    /// Starts a program; or why not.
    fn start(&mut self, start: &Start<'_>) -> Result<Process, Sentence>;
    /// Ends a process with a code; it is gone when [`Happening::Ended`] says so.
    fn kill(&mut self, process: Process, code: i64);
    /// A process of which no more is wanted.
    fn forget(&mut self, process: Process);
    /// A process's account.
    fn usage(&mut self, process: Process) -> Result<ProcessUsage, Sentence>;
    /// Which process it is.
    fn info(&mut self, process: Process) -> Result<InfoResults, Sentence>;

    /// Answers a program that reads: what was typed, or why it reads nothing.
    fn answer(&mut self, asked: Asked, typed: Result<&[u8], &str>);

    /// The machine as a whole.
    fn machine(&mut self) -> Result<Machine, Sentence>;
    /// What a CPU counts.
    fn cpu(&mut self, cpu: u32) -> Result<CpuCounters, Sentence>;
    /// The monotonic clock.
    fn now_ns(&mut self) -> u64;
    /// Measures one thing after the other; nothing behind the last.
    fn measure(&mut self, index: usize) -> Option<Result<Measured, Sentence>>;
}
