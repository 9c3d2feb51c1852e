//! A machine of 1 to 128 CPUs that exists only as events, and runs the kernel's own scheduler, operations and
//! processes.
//!
//! What decides here is the code of the kernel, and so is the order in which it is done: the
//! scheduler's driver (`kernel_dispatch`), what a ring's operations do (`kernel_ops`), how threads and processes
//! begin and end (`kernel_process`). A thread has a stack, a coroutine's, so an operation switches in the
//! middle as it does in the kernel (ADR 235). What is simulated is what surrounds it: CPUs, time,
//! interrupts, the programs threads run, and what an operation costs.
//!
//! * `machine.rs`: the clock, and what each event does. `event.rs`, `cpu.rs`, `thread.rs`: what there is.
//! * `sim.rs`: what the machine owes the driver. `kernel.rs`: what it owes operations and processes.
//! * `user.rs`: user mode; a step of a program is an operation of a ring. `gate.rs`: meeting points.
//!   `process.rs`: processes and services by number. `life.rs`: threads begin, change and end.
//! * `program.rs`, `workload.rs`, `speedup.rs`: what runs. `check.rs`: what has to hold.
//!
//! Contract:
//! - deterministic: the same [`Config`] and workload give the same events. Everything left to
//!   chance (which of two simultaneous events comes first, how long an interrupt takes, what a
//!   program does next) comes from the seed;
//! - an event is handled as one step, but a switch and an interrupt are two events each, so that
//!   wakes, kills and steals fall between a thread's stop and the moment its stack is free. An interrupt that
//!   comes meanwhile is pending until the thread that runs next is in user mode or at a preemption point;
//! - threads touched by an event are checked after it, everything every thousandth event and at
//!   the end. What is broken comes back as a [`Failure`] with the command that shows it again.

mod check;
mod config;
mod cpu;
mod event;
mod failure;
mod gate;
mod kernel;
mod life;
mod machine;
mod options;
mod peaks;
mod planted;
mod process;
mod program;
mod rng;
mod run;
mod sim;
mod speedup;
mod thread;
mod trace;
mod user;
mod workload;

pub use config::{Config, Costs, Fault};
pub use failure::{Done, Failure, Rule};
pub use kernel_dispatch::Defect;
pub use kernel_ops::machine::Defect as OperationDefect;
pub use machine::{Machine, Report};
pub use options::{Options, USAGE};
pub use planted::{NoCreditFloor, StaleTag};
pub use program::{Context, Program, Step};
pub use rng::Rng;
pub use run::{KEPT_FILE, cpus_of_seed, kept_runs, of_seed, run_seed, run_with};
pub use speedup::{Job, JobTimes};
pub use trace::Trace;
pub use workload::Workload;

/// A microsecond in ns.
pub const US: u64 = 1_000;
/// A millisecond in ns.
pub const MS: u64 = 1_000_000;
/// A second in ns.
pub const S: u64 = 1_000_000_000;
