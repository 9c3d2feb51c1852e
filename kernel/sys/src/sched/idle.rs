//! What a CPU does without threads: look for work everywhere, then sleep.

use super::interrupts::join_moved;
use super::switch::{Choice, after_idle, choose, go};
use super::wake::arm;
use super::{clock, queue_of, sound, thread_of};
use crate::system::{Cpu, here, the};
use crate::{reaper, section, timers};
use core_sched::balance;
use core_thread::State;

/// What a CPU does when no thread is on it. Runs on the CPU's own stack, for good.
pub fn idle() -> ! {
    let me = here();
    loop {
        section::end("a turn of the idle loop");
        me.machine.run_job();
        let _ = me.requests.take();
        reaper::step();
        let now = clock();
        timers::expire(now);
        let choice = match choose(the(), me, queue_of(me.id).lock(), now, None) {
            Choice::Idle if steal(me, now) => continue,
            choice => choice,
        };
        if matches!(choice, Choice::Run(_)) {
            go(me, &choice, after_idle, me);
            continue;
        }
        rest(me);
    }
}

/// Takes a thread from the CPU that needs it most.
pub(super) fn steal(me: &'static Cpu, now: u64) -> bool {
    let Some(victim) = balance::victim(me.id, the().online, |cpu| queue_of(cpu).hint()) else {
        return false;
    };
    let mut queue = queue_of(victim).lock();
    let found = queue.look().to_steal(|item| {
        let (thread, _) = thread_of(item.0);
        thread.state.load().state() == State::Runnable
    });
    let Some(item) = found else { return false };
    let lag = sound(queue.send(item.0, me.id, now));
    drop(queue);
    me.counters.steals.bump();
    join_moved(item.0, me.id, lag, now);
    true
}

/// Sleeps until an interrupt, unless there is something to do after all.
pub(super) fn rest(me: &'static Cpu) {
    let system = the();
    let number = me.id.index();
    system.idle.announce(number);
    let stealable = balance::victim(me.id, system.online, |cpu| queue_of(cpu).hint()).is_some();
    let has_work = me.requests.is_pending()
        || queue_of(me.id).hint().waiting > 0
        || stealable
        || reaper::has_work();
    if !has_work {
        me.counters.idle_entries.bump();
        if let Some(at) = timers::next(me) {
            arm(at);
        }
        section::end("idle");
        // Interrupts are off since before the look, and on for this one instruction.
        kernel_arch::cpu::wait_for_interrupt();
        section::begin();
    } else if stealable {
        // What can be seen and not taken yet is on its way off another CPU.
        kernel_arch::cpu::relax();
    }
    system.idle.retract(number);
}
