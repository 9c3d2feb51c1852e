//! This machine as the host crates know it: its name, and the objects it serves.
//!
//! What the machine does is in `under`, and in `object` (calls on what it serves).

use core_sched_policy::Weight;
use core_thread::ThreadKey;
use kernel_dispatch as dispatch;
use kernel_ops::capability::ProcessKey;
use kernel_ops::shared::MemoryFacet;

/// This machine.
#[derive(Clone, Copy, Debug)]
pub struct Kernel;

/// A CPU, as the scheduler knows it.
pub type Cpu = dispatch::Cpu<Kernel>;
/// The proof of running on a CPU, up to the next switch.
pub type Here = dispatch::Here<Kernel>;
/// A thread's record.
pub type Thread = kernel_process::Thread<Kernel>;
/// A process's record.
pub type Process = kernel_process::Process<Kernel>;
/// What a slot of a capability table holds.
pub type Object = kernel_ops::capability::Object<KernelObject>;
/// A call in progress.
pub type Calling<'r> = kernel_ops::object::Calling<'r, Kernel>;

/// An object that the kernel serves, by calls alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelObject {
    /// The console.
    Console,
    /// The record port.
    Records,
    /// The interrupt line at that place.
    Interrupt(u32),
    /// What each CPU did.
    Trace,
    /// The clock.
    Timer,
    /// The address space of the process.
    VirtualMemory,
    /// The machine's counters.
    SystemInfo,
    /// Threads of the process.
    ThreadSpawner,
    /// The calling thread itself.
    ThreadControl,
    /// Makes memory objects.
    FrameAllocator,
    /// Memory that processes share.
    MemoryObject(MemoryFacet),
    /// The calling thread's share and account; with the most it may weigh, if that is not its process's weight.
    SchedulingPolicy(Option<Weight>),
    /// Shares and accounts of all threads.
    SchedulerControl,
    /// One thread of the process.
    ThreadHandle(ThreadKey),
    /// Processes that a program starts.
    ProcessSpawner,
    /// One of them, or any other.
    ProcessHandle(ProcessKey),
    /// What runs.
    ProcessDirectory,
    /// Random bytes.
    Entropy,
    /// A session, by who began it.
    UserSession(ProcessKey),
}
