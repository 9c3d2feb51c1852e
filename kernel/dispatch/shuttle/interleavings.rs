//! Threads wait, wake, hand over, yield and are killed on two and three CPUs: nobody is left waiting, no
//! two CPUs are on one stack, and whatever is planted in the driver is found.
mod common;

use abi_sync::explore;
use common::{Step, run};
use core_sched_policy::PolicyKind;
use kernel_dispatch::Defect;

use Step::{HandOver, Kill, SpinFor, Tick, Wait, Wake, WakeDirectly, Weigh, Yield};

const SCHEDULES: u64 = 1500;

/// One thread keeps a CPU; another is woken behind it and has to get away.
const BEHIND_A_HOG: [&[Step]; 3] = [&[Wait, Wake(1), SpinFor(1)], &[Wait], &[Yield, Wake(0)]];

/// Waits and wakes in a ring.
const RING: [&[Step]; 3] = [
    &[Wake(1), Wait, Yield, Wake(1), Wait],
    &[Wait, Wake(2), Wait, WakeDirectly(2)],
    &[Yield, Wait, Wake(0), Wait, Tick, Wake(0)],
];

/// A caller and a server that hand over to each other, beside a thread that yields and is preempted.
const CALLS: [&[Step]; 3] =
    [&[HandOver(1), Yield, HandOver(1)], &[Wait, HandOver(0), Wake(0)], &[Tick, Yield, Tick]];

/// Everybody preempts everybody.
const TICKS: [&[Step]; 4] =
    [&[Tick, Yield, Tick], &[Tick, Tick, Yield], &[Yield, Tick, Yield], &[Tick, Wake(0), Tick]];

/// Threads are killed wherever they are.
const KILLS: [&[Step]; 4] = [
    &[Wait, Wait, Yield],
    &[HandOver(0), Tick, Yield],
    &[Tick, Yield, Tick, Wake(1)],
    &[Wake(0), Kill(0), Kill(1), Yield, Kill(2)],
];

/// Threads are weighed wherever they are: while they run, wait, move and end.
const WEIGHTS: [&[Step]; 4] = [
    &[Weigh(1, 1024), Tick, Weigh(3, 1), Yield, Weigh(1, 7), Wake(3)],
    &[Tick, Weigh(0, 1), Yield, Weigh(3, 1000), Tick],
    &[Yield, Weigh(1, 300), Tick, Weigh(2, 5), Kill(3), Weigh(3, 9)],
    &[Wait, Weigh(2, 1000), Tick, HandOver(0)],
];

fn each(threads: &[&[Step]], defect: Option<Defect>) {
    for kind in PolicyKind::ALL {
        for cpus in [2, 3] {
            run(cpus, kind, threads, defect);
        }
    }
}

#[test]
fn waits_and_wakes() {
    explore("ring", &[], SCHEDULES, || each(&RING, None));
}

#[test]
fn a_woken_thread_is_not_kept_behind_a_hog() {
    explore("behind a hog", &[], SCHEDULES, || run(2, PolicyKind::Wfq, &BEHIND_A_HOG, None));
}

#[test]
fn calls() {
    explore("calls", &[], SCHEDULES, || each(&CALLS, None));
}

#[test]
fn preemption_and_stealing() {
    explore("ticks", &[], SCHEDULES, || each(&TICKS, None));
}

#[test]
fn kills() {
    explore("kills", &[], SCHEDULES, || each(&KILLS, None));
}

#[test]
fn weights() {
    explore("weights", &[], SCHEDULES, || each(&WEIGHTS, None));
}

#[test]
#[should_panic(expected = "a queue refuses")]
fn mutant_share_of_a_thread_that_has_moved() {
    let f = || each(&WEIGHTS, Some(Defect::ShareNotFollowed));
    explore("mutant: share not followed", &[], SCHEDULES, f);
}

#[test]
#[should_panic(expected = "exceeded max_steps")]
fn mutant_no_look_at_idle_cpus() {
    let f = || run(2, PolicyKind::Wfq, &BEHIND_A_HOG, Some(Defect::NoLookAtIdle));
    explore("mutant: no look at idle CPUs", &[], 20 * SCHEDULES, f);
}

#[test]
#[should_panic]
fn mutant_requeue_before_the_switch() {
    let f = || each(&TICKS, Some(Defect::RequeueBeforeSwitch));
    explore("mutant: requeue before the switch", &[], SCHEDULES, f);
}

#[test]
#[should_panic]
fn mutant_double_enqueue() {
    explore("mutant: double enqueue", &[], SCHEDULES, || each(&RING, Some(Defect::DoubleEnqueue)));
}

#[test]
#[should_panic]
fn mutant_lost_interrupt() {
    let f = || run(2, PolicyKind::Wfq, &BEHIND_A_HOG, Some(Defect::LostIpi));
    explore("mutant: lost interrupt", &[], SCHEDULES, f);
}
