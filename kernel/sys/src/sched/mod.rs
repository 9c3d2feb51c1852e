//! Scheduling on the machine: verdicts of the queues become switches, interrupts and armed timers.
//!
//! Which thread is next, where a woken one goes and what moves between CPUs is decided in
//! `core_sched` over `smp_rq`; this folder carries it out.
//!
//! * [`wake`]: threads become runnable. [`switch`]: the current thread stops, another runs.
//! * [`interrupts`]: slices end, deadlines pass, others ask. [`idle`]: a CPU without threads.

mod idle;
mod interrupts;
mod switch;
mod wake;

pub use idle::idle;
pub use interrupts::{interrupt, timer};
pub use switch::{
    before_user, block, breathe, end, end_claimed, hand_over, owes_the_cpu, yield_cpu,
    yield_to_first,
};
pub use wake::{arm, enqueue_new, enqueue_woken, interrupt_running, offer_direct, request};

use crate::system::{self, Cpu, System, the};
use crate::thread::Thread;
use core_sched::CpuId;
use core_thread::ThreadKey;
use kernel_arch::time;
use smp_rq::{Node, QueueGuard, RunQueue, lock_home};

/// The clock; the system does not start without one.
#[inline]
pub fn clock() -> u64 {
    time::clock_ns()
}

#[inline]
fn queue_of(cpu: CpuId) -> &'static RunQueue<'static> {
    match the().queues.get(cpu.index()) {
        Some(queue) => queue,
        None => system::defect("a CPU without a queue"),
    }
}

#[inline(always)]
fn own_queue(system: &'static System, me: &'static Cpu) -> &'static RunQueue<'static> {
    match system.queues.get(me.id.index()) {
        Some(queue) => queue,
        None => system::defect("a CPU without a queue"),
    }
}

#[inline]
fn home_queue(thread: &'static Thread) -> QueueGuard<'static, 'static> {
    match lock_home(the().queues, &thread.node) {
        Some(queue) => queue,
        None => system::defect("a thread whose home is no CPU"),
    }
}

#[inline]
fn thread_of(node: &'static Node) -> (&'static Thread, ThreadKey) {
    thread_in(the(), node)
}

#[inline(always)]
fn thread_in(system: &'static System, node: &'static Node) -> (&'static Thread, ThreadKey) {
    let key = ThreadKey::from_bits(node.thread());
    match system.thread(key.slot) {
        Some(thread) => (thread, key),
        None => system::defect("a queue holds a node that is no thread's"),
    }
}

/// What a queue operation answered; the queues refuse only what the kernel did wrong.
#[inline]
fn sound<T>(answer: Result<T, core_sched::Error>) -> T {
    match answer {
        Ok(value) => value,
        Err(_) => system::defect("a run queue refuses what the kernel asks of it"),
    }
}
