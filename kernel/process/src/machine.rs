//! What a machine owes processes and threads, beside what it owes their operations.

use crate::process::Process;
use crate::records::Records;
use crate::thread::Thread;
use abi_types::{InterfaceTag, RingBlock};
use core_fallible::OutOfMemory;
use core_ledger::Ledger;
use core_manifest::GrantKind;
use core_thread::ThreadKey;
use kernel_ops::capability::ProcessKey;
use kernel_ops::machine::{NotMapped, SharedOf};
use kernel_ops::object::Objects;
use kernel_ops::paid::NoMemory;
use kernel_ops::shared::MemoryFacet;
use smp_ring::Context;

/// The stack of a thread in the kernel.
pub type Stack<M> = <<M as kernel_ops::Machine>::Context as Context>::Stack;

/// Where a new thread finds what is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The position of its record.
    pub thread: u32,
    /// The position of its process's.
    pub process: u32,
    /// The address of its ring.
    pub ring: u64,
    /// The address of its CapSet, or 0.
    pub capset: u64,
}

/// How a thread starts in user mode; the addresses are not yet checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// First instruction.
    pub entry: u64,
    /// Stack pointer.
    pub stack_top: u64,
    /// RDI.
    pub argument: u64,
    /// FS base.
    pub fs_base: u64,
}

/// Why a thread cannot start so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadStart {
    /// The entry is no user address.
    Entry,
    /// The stack's top is no user address or not aligned.
    Stack,
    /// The FS base is no user address.
    FsBase,
}

/// A thread of the kernel's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worker {
    /// The one that takes apart what ended.
    Reaper,
    /// The one that brings what processes wrote to the console.
    Drain,
}

/// A machine that has processes.
pub trait Machine: Objects<Thread = Thread<Self>> {
    /// How a thread starts in user mode.
    type UserStart;
    /// Pages of a thread's stack in the kernel, as they are charged.
    const STACK_PAGES: u32;

    /// The object that a handle to a thread names, and its interface.
    fn handle_to(thread: ThreadKey) -> (Self::Other, InterfaceTag);
    /// The object that a handle to a process names, and its interface.
    fn process_handle(process: ProcessKey) -> (Self::Other, InterfaceTag);
    /// The object that a capability of a session names, where there are sessions.
    fn user_session(_of: ProcessKey) -> Option<Self::Other> {
        None
    }
    /// The object that a grant of the machine's own is, if it has one.
    fn granted(kind: GrantKind<'_>) -> Option<Self::Other>;
    /// The boot module of that name.
    fn boot_module(self, name: &str) -> Option<&'static [u8]>;
    /// The boot manifest, which was checked.
    fn manifest(self) -> Option<&'static [u8]>;
    /// A process has begun that a program started.
    fn child_began(self);
    /// The object that a capability of a memory object names, and its interface.
    fn memory_object(facet: MemoryFacet) -> (Self::Other, InterfaceTag);
    /// The memory object that an object of the machine's is, if it is one.
    fn memory_facet(object: Self::Other) -> Option<MemoryFacet>;
    /// The tables.
    fn records(self) -> &'static Records<Self>;
    /// How a thread starts, if those are places that user mode has.
    fn user_start(self, start: Start) -> Result<Self::UserStart, BadStart>;
    /// The context of a record without a thread.
    fn new_context(self) -> Self::Context;
    /// The memory of a record without a process.
    fn new_space(self) -> Self::Space;
    /// The frames of a record without a memory object.
    fn new_shared(self) -> SharedOf<Self>;
    /// Frames that the machine has left.
    fn free_frames(self) -> u64;
    /// Whether a table may be made larger now; what a test machine denies for want of memory.
    fn may_grow(self) -> bool {
        true
    }
    /// Makes the memory of a record that of a process with that account.
    fn create_space(
        self,
        space: &'static Self::Space,
        ledger: &'static Ledger,
    ) -> Result<(), NoMemory>;
    /// Writes what a process's memory is to hold from the start, whatever its access; at most a page.
    fn fill(self, space: &'static Self::Space, to: u64, bytes: &[u8]) -> Result<(), NotMapped>;
    /// Maps a page of zeros for reading, where the kernel places what it tells a process.
    fn map_read_only(self, space: &'static Self::Space, at: u64) -> Result<(), NoMemory>;
    /// Maps the pages that tell programs the time.
    fn map_time(self, space: &'static Self::Space) -> Result<(), NoMemory>;
    /// A stack for a new thread.
    fn new_stack(self) -> Result<Stack<Self>, OutOfMemory>;
    /// Memory for a ring laid out as `block`, mapped at `address` of a process and paid for by its account. May
    /// have preemption points.
    fn new_ring(
        self,
        space: &'static Self::Space,
        address: u64,
        block: RingBlock,
    ) -> Result<Self::RingMemory, NoMemory>;
    /// How a context starts for a thread of `space` at that place.
    fn start<'s>(
        self,
        space: &'static Self::Space,
        user: &'s mut Self::UserStart,
        place: Place,
    ) -> <Self::Context as Context>::Start<'s>;
    /// How the context of a thread of the kernel's own starts: in [`run_reaper`](crate::end::run_reaper) or
    /// [`run_drain`](crate::drain::run_drain).
    fn worker_start(
        self,
        thread: &'static Thread<Self>,
        worker: Worker,
    ) -> <Self::Context as Context>::Start<'static>;
    /// Frees about `frames` frames of a process without threads; whether that was the last of them.
    fn free_memory(self, space: &'static Self::Space, frames: u64) -> bool;
    /// A program asked for another weight or class of a thread, and was given it or not: what a machine may count.
    fn policy_judged(self, _is_admitted: bool) {}
    /// Nothing of a process is left but its record, which is to be vacated.
    fn process_reaped(self, process: &'static Process<Self>);

    /// Whether the console takes a program's text now. If not, it has [`wake`](crate::drain::wake) called when it
    /// does.
    fn console_has_room(self) -> bool;
    /// Gives the console a program's text; how many bytes of it the console took, which waits for nothing.
    fn console_submit(self, bytes: &[u8]) -> usize;
    /// Paints some of what has changed on the screen, if there is one; whether there may be more.
    fn console_paint(self) -> bool;
    /// The console has had no room for a while: if it does not move at all, what waits in it is given up.
    fn console_look_after(self);
}

/// The process of a thread that is in use.
#[inline]
pub fn process_of<M: Machine>(m: M, thread: &'static Thread<M>) -> &'static Process<M> {
    match m.records().process(thread.ops.process_slot()) {
        Some(process) => process,
        None => m.defect("a thread without a process"),
    }
}
