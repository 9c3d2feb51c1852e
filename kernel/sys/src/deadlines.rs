//! Deadlines on the machine: armed, disarmed, and taken out when they have passed.
//!
//! Timers by position: one per thread for the time limit of `cap_enter`, one per thread for the time limit
//! of PARK, then a pool for sleeps and deadlines of calls. A deadline is armed on the CPU that asks for
//! it, and served there. What a deadline that passed means is not known here: [`expire`] shows each as a
//! [`Due`] to whoever serves it.

use crate::party::{Fit, Party};
use crate::sched::{self, Cpu};
use crate::system::{self, System, the};
use crate::thread::Thread;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use core_thread::ThreadKey;
use core_timer::Armed;
use smp_lock::{LockClass, TicketLock};
use smp_pending::{Cell, Target};

/// Deadlines served in one go, each with a completion and a wake: as many as fit a section of kernel code
/// (`section`). The rest comes with the next interrupt, at once.
const DEADLINES_PER_SECTION: usize = 16;

/// What a timer of the pool is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Purpose {
    /// `Timer.sleep`.
    Sleep = 0,
    /// A call's deadline.
    CallDeadline = 1,
    /// The console is looked at again.
    ConsoleLook = 2,
}

/// One timer of the pool.
#[derive(Debug)]
pub struct Sleep {
    thread: AtomicU64,
    cell: AtomicU32,
    purpose: AtomicU32,
    next: AtomicU32,
}

/// The first free timer of the pool; they are chained by `next`, which is one more than the position.
static FREE: TicketLock<u32> = TicketLock::with_class(LockClass::TimerPool, 1);

impl Sleep {
    /// A free one.
    pub fn new(index: u32) -> Self {
        Self {
            thread: AtomicU64::new(0),
            cell: AtomicU32::new(0),
            purpose: AtomicU32::new(0),
            next: AtomicU32::new(index + 2),
        }
    }
}

/// Position of the timer for a thread's `cap_enter`.
#[inline]
pub fn of_enter(slot: u32) -> u32 {
    slot
}

/// Position of the timer for a thread's PARK.
#[inline]
pub fn of_park(slot: u32) -> u32 {
    the().threads.len() as u32 + slot
}

fn of_sleep(index: u32) -> u32 {
    2 * the().threads.len() as u32 + index
}

/// Takes a timer of the pool, for an operation of `party`; its position.
fn take(purpose: Purpose, party: Party) -> Option<u32> {
    let mut first = FREE.lock();
    let index = first.checked_sub(1)?;
    let sleep = the().sleeps.get(index as usize)?;
    *first = sleep.next.load(Ordering::Relaxed);
    sleep.thread.store(party.thread.to_bits(), Ordering::Relaxed);
    sleep.cell.store(party.cell, Ordering::Relaxed);
    sleep.purpose.store(purpose as u32, Ordering::Relaxed);
    Some(of_sleep(index))
}

/// Gives a timer of the pool back: by whoever disarmed it, or by who serves it once its cell does not
/// name it any more.
fn give_back(timer: u32) {
    let index = timer.wrapping_sub(of_sleep(0));
    if let Some(sleep) = the().sleeps.get(index as usize) {
        let mut first = FREE.lock();
        sleep.next.store(*first, Ordering::Relaxed);
        *first = index + 1;
    }
}

/// Bounds a kept operation of the running thread by a deadline; `false` if no timer is left.
///
/// A timer of the pool is named by its cell until it is disarmed or served, both under the completion
/// lock of the cell's thread: so nobody disarms one that is another's by then.
pub fn bound(purpose: Purpose, party: Party, cell: &Cell, deadline_ns: u64) -> bool {
    let Some(timer) = take(purpose, party) else { return false };
    cell.set_timer(timer);
    start(timer, deadline_ns);
    true
}

/// The operation of a cell is over, or was never made known: its timer goes back. Under the completion
/// lock, or by the owner before anyone else knows of the cell.
#[inline]
pub fn settle(cell: &Cell) {
    if let Some(timer) = cell.timer() {
        if stop(timer) {
            give_back(timer);
        }
        cell.clear_timer();
    }
}

/// Claims a pending sleep; `false` if its time has come and someone completes it. Under the
/// completion lock.
pub fn claim_sleep(cell: &Cell) -> bool {
    let Some(timer) = cell.timer() else { return false };
    let is_ours = stop(timer);
    if is_ours {
        give_back(timer);
        cell.clear_timer();
    }
    is_ours
}

/// Has the console looked at again after `delay_ns`; `false` if no timer is left.
pub fn look_at_console(delay_ns: u64) -> bool {
    let nobody = Party { thread: ThreadKey::NONE, cell: 0, room: Fit::NONE };
    let Some(timer) = take(Purpose::ConsoleLook, nobody) else { return false };
    start(timer, sched::clock().saturating_add(delay_ns));
    true
}

/// Arms a timer on this CPU.
pub fn start(timer: u32, deadline_ns: u64) {
    let me = sched::here();
    let armed = me.own().timers.lock().arm(the().timers, timer, deadline_ns);
    match armed {
        Ok(Armed { is_nearest: true }) => sched::arm(deadline_ns),
        Ok(_) => {}
        Err(_) => system::defect("a timer that is in use was armed"),
    }
}

/// Disarms a timer wherever it is armed; `false` if its deadline was taken out to be served.
pub fn stop(timer: u32) -> bool {
    let system: &System = the();
    let Some(cell) = system.timers.get(timer as usize) else { return false };
    while let Some(queue) = cell.queue() {
        let Some(cpu) = system.cpus.get(queue as usize) else { return false };
        if cpu.own.timers.lock().cancel(system.timers, timer).is_ok() {
            return true;
        }
    }
    false
}

/// The nearest deadline of a CPU.
pub fn next(cpu: &Cpu) -> Option<u64> {
    cpu.own.timers.lock().next_deadline_ns(the().timers)
}

/// A deadline that has passed, and what it bounds.
#[derive(Clone, Copy)]
pub enum Due {
    /// A thread's `cap_enter`.
    Enter(&'static Thread),
    /// A thread's PARK, as of that time.
    Park(&'static Thread, u64),
    /// A call that may still wait for a receiver, as of that time.
    Call(Party, u64),
    /// A sleep, which this ends.
    Sleep(Party),
    /// The time between two looks at the console.
    ConsoleLook,
}

/// Takes out what is due on this CPU and shows it to `serve`, and arms what is due next: whoever comes here
/// may have been interrupted by a timer that stood for an earlier one, the end of a slice for example.
pub fn expire(me: &Cpu, now_ns: u64, serve: impl Fn(Due)) {
    let system = the();
    for _ in 0..DEADLINES_PER_SECTION {
        let Some(expired) = me.own.timers.lock().pop_expired(system.timers, now_ns) else { break };
        if let Some(due) = due(system, expired.index, now_ns) {
            serve(due);
        }
    }
    if let Some(at) = next(me) {
        sched::arm(at);
    }
}

/// What the deadline of a timer that was taken out bounds; a timer of the pool goes back.
fn due(system: &'static System, timer: u32, now_ns: u64) -> Option<Due> {
    let threads = system.threads.len() as u32;
    if let Some(thread) = system.thread(timer) {
        return Some(Due::Enter(thread));
    }
    if let Some(thread) = system.thread(timer.wrapping_sub(threads)) {
        return Some(Due::Park(thread, now_ns));
    }
    let sleep = system.sleeps.get(timer.wrapping_sub(2 * threads) as usize)?;
    let thread = ThreadKey::from_bits(sleep.thread.load(Ordering::Relaxed));
    let party = Party { thread, cell: sleep.cell.load(Ordering::Relaxed), room: Fit::NONE };
    let purpose = sleep.purpose.load(Ordering::Relaxed);
    if purpose == Purpose::ConsoleLook as u32 {
        give_back(timer);
        return Some(Due::ConsoleLook);
    }
    let is_current = forget(system, party, timer);
    give_back(timer);
    if purpose == Purpose::CallDeadline as u32 {
        Some(Due::Call(party, now_ns))
    } else {
        is_current.then_some(Due::Sleep(party))
    }
}

/// Makes the operation's cell forget a timer that is being served; `false` if it had before, or its
/// thread is gone.
fn forget(system: &'static System, party: Party, timer: u32) -> bool {
    let Some(thread) = system.thread(party.thread.slot) else { return false };
    let Some(held) = thread.completions_of(party.thread.generation) else { return false };
    let Some(cell) = held.ring().shared.cells.get(party.cell) else { return false };
    let is_current = cell.timer() == Some(timer);
    if is_current {
        cell.clear_timer();
        if cell.target() == Target::Sleep {
            thread.process().sleep_ended();
        }
    }
    is_current
}
