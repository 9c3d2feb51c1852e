//! The scheduler's driver: what happens in which order when a thread stops, wakes, yields or ends, when
//! a timer fires, when another CPU asks, when a CPU has nothing to do.
//!
//! What is *decided* is decided elsewhere: who runs next and what moves in `core_sched` over `smp_rq`,
//! who owns a thread in `core_thread`. What is *done* to the machine is done behind [`Machine`]. Between
//! the two stands the order of things, which is where lost wakes and stacks used twice come from; it is
//! written here and nowhere else. The kernel implements [`Machine`] over CPUs, the simulator
//! (`test/sim`) over events, the models over threads of a model checker. Decided in ADR 184.
//!
//! * `machine.rs`: what a machine owes the driver.
//! * `wake.rs`: threads become runnable: where they go, and who is told.
//! * `stop.rs`: the current thread stops and another runs: wait, hand-over, preemption, yield, end.
//! * `choose.rs`: what a CPU runs next; balancing and stealing.
//! * `trace.rs`: what is recorded of all that.
//! * `share.rs`: a thread's weight, class and account, for whoever asks.
//! * `doors.rs`: where interrupts come in and threads go out. `idle.rs`: a CPU without threads.
//!
//! # Rules
//!
//! - **Order of a wake** (S9): the thread is queued, then a fence, then the idle CPUs are asked. An idle
//!   CPU announces itself, then a fence, then it looks at the queues, then it halts. One of the two
//!   sees the other. Who is idle is also looked at before, to choose a queue; that look is a guess.
//! - **Order of a stop**: the thread leaves the queue's account before the switch, and its state word
//!   moves on after it, on the next stack ([`After`]). Until then no other CPU runs it: its word is not
//!   `Runnable`, and whoever finds it in a queue passes it over.
//! - **Never two queue locks at once**; a thread that moves is between queues, owned by its mover.
//! - **No reference to a CPU outlives a point where the thread may move** ([`Here`]): a function that
//!   may switch takes the proof of being here away.
#![cfg_attr(not(any(test, loom)), no_std)]
#![cfg_attr(target_os = "none", feature(rust_cold_cc))]

mod choose;
mod doors;
mod idle;
mod machine;
mod share;
mod stop;
pub mod trace;
mod wake;

pub use doors::{WayOut, before_user, interrupt, owes, preemption_point, timer, way_out};
pub use idle::turn_of_idle;
pub use machine::{After, Cpu, Defect, Here, IdlePath, MAX_SLEEP_NS, Machine, Record, Saw};
pub use share::{Account, account, set_share};
pub use stop::{
    block, end, finish_switch, give_back, give_way, hand_over, yield_cpu, yield_to_first,
};
pub use wake::{allowed_changed, enqueue_new, enqueue_woken, kill, offer_direct, request, wake};
