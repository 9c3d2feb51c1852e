//! What the shell asks of the machine.

use core::fmt::Write;

use arrayvec::{ArrayString, ArrayVec};
use schema::process_directory::ThreadEntry;
use schema::process_directory_capnp::{CapabilityKind, ProcessState};
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
        bytes: ArrayVec<u8, PIECE_BYTES>,
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

/// Rows of a page of a list at most, as many as the kernel's directory gives.
pub const MOST_ROWS: usize = 16;
/// Bytes of the name of a process or a capability at most.
const LISTED_NAME_BYTES: usize = 44;
/// The name of a process or a capability.
pub type ListedName = ArrayString<LISTED_NAME_BYTES>;

/// A page of a list.
#[derive(Clone, Debug)]
pub struct Listed<R> {
    /// What is on it, which may be nothing.
    pub rows: ArrayVec<R, MOST_ROWS>,
    /// Where the next page begins; none after the last.
    pub next: Option<u32>,
}

/// A process of the machine, the shell's or another's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessRow {
    /// Its number.
    pub pid: u32,
    /// Which process of that number it is.
    pub generation: u32,
    /// What it is called.
    pub name: ListedName,
    /// Whether it runs.
    pub state: ProcessState,
    /// Threads that live.
    pub threads: u32,
    /// What its threads weigh.
    pub weight: u16,
    /// Time that its threads ran.
    pub cpu_time_ns: u64,
    /// Who lends it what it may use; itself a process, or none.
    pub parent: Option<u32>,
}

/// A capability of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapabilityRow {
    /// Its slot.
    pub slot: u32,
    /// Which side of what it is.
    pub kind: CapabilityKind,
    /// Its interface; 0 if nobody knows.
    pub interface_id: u64,
    /// What the process calls it; empty if it came to it later.
    pub name: ListedName,
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
    /// Processes whose number is `from` or more.
    fn processes(&mut self, from: u32) -> Result<Listed<ProcessRow>, Sentence>;
    /// Threads of a process, by number and generation, whose number is `from` or more.
    fn threads(&mut self, of: (u32, u32), from: u32) -> Result<Listed<ThreadEntry>, Sentence>;
    /// Capabilities of a process in slots from that number on.
    fn capabilities(
        &mut self,
        of: (u32, u32),
        from: u32,
    ) -> Result<Listed<CapabilityRow>, Sentence>;
    /// The monotonic clock.
    fn now_ns(&mut self) -> u64;
    /// Measures one thing after the other; nothing behind the last.
    fn measure(&mut self, index: usize) -> Option<Result<Measured, Sentence>>;
}
