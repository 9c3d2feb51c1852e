//! The time-stamp counters of all CPUs, compared with the boot CPU's and brought to agree.
//!
//! One CPU after the other has the turn passed to it and passes it back; what the readings mean, what is
//! added to a counter, and what the clock is if that does not help is decided in `core_clock::agree`.
//!
//! Decided in ADR 215.

use super::{Hpet, clock, rate, ticks, tsc};
use crate::cpu::{self, CpuState, PerCpu};
use core::fmt;
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use core_address::PhysAddr;
use core_clock::agree::{Agreement, ClockChoice, Correction, Exchange, Offset};

/// Exchanges of one comparison, at least. A dozen finds one that nothing disturbs.
const MIN_EXCHANGES: u32 = 16;
/// Bounds closer than a part of so many of a second end a comparison. Hardware hands over in a tenth of a
/// microsecond; the rest is for emulators.
const SHARP_PER_SECOND: u64 = 200_000;
/// A comparison that is not sharp by then ends as it is: a fiftieth of a second. A busy host disturbs
/// nearly every exchange of the machine it emulates.
const LONGEST_PER_SECOND: u64 = 50;
/// Bounds that are further apart than this part of a second say too little to end a comparison then: a counter that is
/// off by a millisecond would pass for one that agrees.
const BLUNT_PER_SECOND: u64 = 10_000;
/// Seconds after which even such a comparison ends as it is.
const LONGEST_S: u64 = 1;
/// Seconds the other CPU has to answer.
const PATIENCE_S: u64 = 5;

/// Whose turn it is: even the boot CPU's, odd the other's; all ones ends the other's part.
static TURN: AtomicU64 = AtomicU64::new(0);
const END: u64 = u64::MAX;
/// What the other read in its last turn.
static SEEN: AtomicU64 = AtomicU64::new(0);
/// What the other adds to its counter.
static ADD: AtomicI64 = AtomicI64::new(0);

/// What the comparison came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Agreed {
    /// What the clock is.
    pub choice: ClockChoice,
    /// CPUs that were compared with the boot CPU.
    pub compared: usize,
    /// Those of them whose counter was set.
    pub adjusted: usize,
    /// Those whose counter is of no use.
    pub disagreeing: usize,
    /// The largest distance that was found.
    pub distance_ns: u64,
    /// How sure it is at least that a counter agrees.
    pub within_ns: u64,
}

impl fmt::Display for Agreed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Agreed { compared, adjusted, disagreeing, distance_ns, within_ns, .. } = self;
        match self.choice {
            ClockChoice::Counters if *adjusted > 0 => write!(
                f,
                "the TSCs of {adjusted} of {compared} CPUs were off by up to {distance_ns} ns and are set; they agree within {within_ns} ns"
            ),
            ClockChoice::Counters => {
                write!(f, "the TSCs of {compared} other CPUs agree within {within_ns} ns")
            }
            ClockChoice::Shared => write!(
                f,
                "the TSCs of {disagreeing} of {compared} CPUs do not agree with the boot CPU's and cannot be set: the HPET is the clock"
            ),
            ClockChoice::BootCpuAlone => write!(
                f,
                "the TSCs of {disagreeing} of {compared} CPUs do not agree with the boot CPU's and cannot be set, and no HPET of 64 bits is there to be the clock: the boot CPU runs alone"
            ),
        }
    }
}

/// Compares the counters of all CPUs, sets those that are off, and chooses the clock; on the boot CPU,
/// once the clock runs and before anything is armed. `hpet` with the address of its registers.
pub fn agree(hpet: Option<(Hpet, PhysAddr)>) -> Agreed {
    let mut agreed = Agreed {
        choice: ClockChoice::Counters,
        compared: 0,
        adjusted: 0,
        disagreeing: 0,
        distance_ns: 0,
        within_ns: 0,
    };
    let others = cpu::all().iter().skip(1).filter(|other| other.state() == CpuState::Online);
    for other in others {
        agreed.compared += 1;
        bring_to_agree(other, &mut agreed);
    }
    let can_share = hpet.is_some_and(|(hpet, registers)| hpet.is_clock(registers));
    agreed.choice = ClockChoice::of(agreed.disagreeing, can_share);
    match (agreed.choice, hpet) {
        (ClockChoice::Shared, Some((hpet, registers))) => {
            if !clock::share(hpet, registers) {
                agreed.choice = ClockChoice::BootCpuAlone;
                cpu::keep_boot_cpu_alone();
            }
        }
        (ClockChoice::BootCpuAlone, _) => cpu::keep_boot_cpu_alone(),
        _ => {}
    }
    agreed
}

/// Compares one CPU's counter, and sets it until it agrees or is given up.
fn bring_to_agree(other: &'static PerCpu, agreed: &mut Agreed) {
    let mut correction = Correction::default();
    let mut was_set = false;
    loop {
        let offset = compare(other);
        let add = match offset.map(|offset| (offset, offset.agreement())) {
            Some((offset, Agreement::Agrees)) => {
                agreed.within_ns = agreed.within_ns.max(ns(offset.width()));
                agreed.adjusted += usize::from(was_set);
                return;
            }
            Some((_, Agreement::Off { by })) => {
                agreed.distance_ns = agreed.distance_ns.max(ns(by.unsigned_abs()));
                correction.next(by)
            }
            Some((_, Agreement::Drifts)) | None => None,
        };
        let Some(add) = add else {
            agreed.disagreeing += 1;
            return;
        };
        ADD.store(add, Ordering::Relaxed);
        if !run(other, || tsc::add(ADD.load(Ordering::Relaxed))) {
            agreed.disagreeing += 1;
            return;
        }
        was_set = true;
    }
}

fn ns(ticks: u64) -> u64 {
    rate().map_or(0, |rate| rate.ns(ticks))
}

/// Whether `is_done` becomes true in time.
fn wait_for(is_done: impl Fn() -> bool) -> bool {
    let patience = rate().map_or(u64::MAX, |rate| rate.hz().saturating_mul(PATIENCE_S));
    let began = ticks();
    while !is_done() {
        if ticks().wrapping_sub(began) > patience {
            return false;
        }
        cpu::relax();
    }
    true
}

/// Runs a function on the other CPU and waits for it; `false` if it does not answer.
fn run(other: &'static PerCpu, job: fn()) -> bool {
    other.post_job(job) && wait_for(|| other.is_idle())
}

/// Exchanges readings with another CPU; `None` if it does not answer.
fn compare(other: &'static PerCpu) -> Option<Offset> {
    let hz = rate()?.hz();
    let began = ticks();
    let is_enough = |width| {
        let took = ticks().wrapping_sub(began);
        width <= hz / SHARP_PER_SECOND
            || width <= hz / BLUNT_PER_SECOND && took > hz / LONGEST_PER_SECOND
            || took > hz.saturating_mul(LONGEST_S)
    };
    TURN.store(0, Ordering::Relaxed);
    if !other.post_job(answer) {
        return None;
    }
    let mut offset = Offset::unknown();
    let (mut turn, mut count) = (0, 0);
    while count < MIN_EXCHANGES || !is_enough(offset.width()) {
        let sent = ticks();
        // Release, pairs with the acquire in `answer`; acquire, with its release.
        TURN.store(turn + 1, Ordering::Release);
        if !wait_for(|| TURN.load(Ordering::Acquire) == turn + 2) {
            return None;
        }
        let back = ticks();
        offset.narrow(Exchange { sent, seen: SEEN.load(Ordering::Relaxed), back });
        turn += 2;
        count += 1;
    }
    TURN.store(END, Ordering::Release);
    wait_for(|| other.is_idle()).then_some(offset)
}

/// The other CPU's part of a comparison.
fn answer() {
    loop {
        // Acquire, pairs with the release in `compare`.
        let turn = TURN.load(Ordering::Acquire);
        if turn == END {
            return;
        }
        if turn % 2 == 1 {
            SEEN.store(ticks(), Ordering::Relaxed);
            // Release, pairs with the acquire in `compare`.
            TURN.store(turn + 1, Ordering::Release);
        }
        cpu::relax();
    }
}
