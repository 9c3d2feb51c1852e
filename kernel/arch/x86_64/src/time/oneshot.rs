//! The one-shot timer of each CPU, on the local APIC: by counts, or by time-stamp deadline. On a machine
//! without, the interval timer is the boot CPU's.
//!
//! What to program and what an interrupt means is decided in `core_oneshot`; this file turns it
//! into registers. The timer belongs to the CPU it is on: arming acts on the CPU that calls.
//!
//! Decided in ADR 29.

use super::tsc::hardware_ticks;
use super::{now_ns, pit, rate, ticks};
use crate::apic::{self, TimerMode};
use crate::cpu;
use crate::irq::{self, Driver};
use core::arch::asm;
use core::cell::UnsafeCell;
use core::fmt;
use core_clock::{Sample, measure, middle_of};
use core_oneshot::{Counter, Fired, OneShot, Program};
use spin::Once;
use x86_64::registers::model_specific::Msr;

const IA32_TSC_DEADLINE: u32 = 0x6e0;

/// The longest the time-stamp deadline is set ahead, in ticks: some minutes, so that an error of
/// the rate does not add up. Longer ones chain.
const MAX_DEADLINE_TICKS: u64 = 1 << 38;
/// How long one round of measuring the timer's frequency takes, 1/500 s. Three rounds.
const ROUNDS_PER_SECOND: u64 = 500;

/// What drives the timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimerSource {
    /// The local APIC counts down at this frequency.
    Counts {
        /// Counts per second.
        hz: u64,
    },
    /// The local APIC compares the time-stamp counter.
    TscDeadline,
    /// The interval timer counts down, for the boot CPU.
    Pit,
}

impl fmt::Display for TimerSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimerSource::Counts { hz } => write!(f, "counts at {} kHz", hz / 1000),
            TimerSource::TscDeadline => f.write_str("by time-stamp deadline"),
            TimerSource::Pit => f.write_str("by the PIT, for the boot CPU alone"),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    source: TimerSource,
    counter: Counter,
}

static TIMER: Once<Timer> = Once::new();

/// A CPU's timer, in its block.
#[derive(Debug)]
pub(crate) struct OneShotTimer {
    state: UnsafeCell<OneShot>,
    is_set_up: UnsafeCell<bool>,
}

// SAFETY: the cells are touched by the owning CPU only, with interrupts off (invariant CPU-1).
unsafe impl Sync for OneShotTimer {}

impl OneShotTimer {
    pub(crate) const fn new() -> Self {
        Self { state: UnsafeCell::new(OneShot::new()), is_set_up: UnsafeCell::new(false) }
    }
}

/// Runs `body` on this CPU's timer state.
#[inline]
fn with_state<T>(body: impl FnOnce(&mut OneShot) -> T) -> T {
    // SAFETY: this CPU's own, and interrupts are off in the kernel, so nothing comes in between;
    // `body` is one of the functions below, which do not come here again.
    body(unsafe { &mut *cpu::this().timer.state.get() })
}

/// Finds out what drives the timer and how fast; once, on the boot CPU, after the clock is known and the
/// interrupt controllers are. Without a local APIC whose timer counts it is the interval timer, and the
/// boot CPU runs alone; so it is if `wants_pit`. `None` if there is no clock to measure it with, or no line
/// for the interval timer.
pub fn init_timer(wants_pit: bool) -> Option<TimerSource> {
    rate()?;
    let timer = if wants_pit { None } else { local_timer() };
    let timer = match timer {
        Some(timer) => timer,
        None => {
            cpu::keep_boot_cpu_alone();
            irq::attach(Driver::Timer).ok()?;
            Timer { source: TimerSource::Pit, counter: Counter::new(pit::HZ, pit::MAX_COUNT)? }
        }
    };
    Some(TIMER.call_once(|| timer).source)
}

/// The local APIC's timer; `None` if there is none, or it does not count.
fn local_timer() -> Option<Timer> {
    if apic::mode() == apic::Mode::Unknown {
        return None;
    }
    let tsc = rate()?;
    Some(if cpu::this().features().tsc_deadline {
        Timer {
            source: TimerSource::TscDeadline,
            counter: Counter::new(tsc.hz(), MAX_DEADLINE_TICKS)?,
        }
    } else {
        let hz = middle_of(round(tsc.hz())?, round(tsc.hz())?, round(tsc.hz())?);
        Timer { source: TimerSource::Counts { hz }, counter: Counter::new(hz, u32::MAX.into())? }
    })
}

/// One measurement of the timer's frequency against the clock.
fn round(tsc_hz: u64) -> Option<u64> {
    apic::set_timer(TimerMode::Masked);
    apic::set_timer_count(u32::MAX);
    let sample = || {
        let counted = || u64::from(u32::MAX - apic::timer_count());
        let before = counted();
        let reference = ticks();
        Sample { before, reference, after: counted() }
    };
    let start = sample();
    while ticks().wrapping_sub(start.reference) < tsc_hz / ROUNDS_PER_SECOND {
        cpu::relax();
    }
    let hz = measure(start, sample(), tsc_hz);
    apic::set_timer_count(0);
    hz
}

/// Wants the timer hook called on this CPU at `deadline_ns` or soon after, never before. Skipped
/// if an earlier one is armed. A deadline that has passed comes as soon as interrupts are on.
pub fn arm(deadline_ns: u64) {
    arm_from(now_ns().unwrap_or(0), deadline_ns);
}

/// As [`arm`], for a caller that has just read the clock.
#[inline]
pub fn arm_from(now_ns: u64, deadline_ns: u64) {
    if let Program::After { delay_ns } = with_state(|state| state.arm(now_ns, deadline_ns)) {
        program(delay_ns);
    }
}

/// Wants no call. One that is on its way is swallowed.
pub fn disarm() {
    with_state(OneShot::disarm);
}

/// The deadline that is armed on this CPU.
pub fn armed_ns() -> Option<u64> {
    with_state(|state| state.deadline_ns())
}

/// The interrupt has come: whether the deadline has passed.
pub(crate) fn timer_fired() -> bool {
    match with_state(|state| state.fired(now_ns().unwrap_or(u64::MAX))) {
        Fired::Expired => {
            if irq::is_self_asked() {
                fire_soon();
            }
            true
        }
        Fired::Again { delay_ns } => {
            program(delay_ns);
            false
        }
        Fired::Stray => false,
    }
}

/// Lets the interval timer interrupt at once, deadline or not.
pub(crate) fn fire_soon() {
    if TIMER.get().is_some_and(|timer| timer.source == TimerSource::Pit) {
        pit::interrupt_after(1);
    }
}

fn program(delay_ns: u64) {
    let Some(timer) = TIMER.get() else { return };
    set_up_once(timer.source);
    let counts = timer.counter.counts(delay_ns);
    match timer.source {
        TimerSource::Counts { .. } => apic::set_timer_count(counts as u32),
        // What the CPU asked of itself is not put off.
        TimerSource::Pit if irq::is_self_asked() => fire_soon(),
        TimerSource::Pit => pit::interrupt_after(counts as u16),
        // SAFETY: the CPU has this MSR, by its features; the timer is in deadline mode.
        TimerSource::TscDeadline => unsafe {
            Msr::new(IA32_TSC_DEADLINE).write(hardware_ticks().saturating_add(counts));
        },
    }
}

/// Sets this CPU's timer entry up at its first use.
fn set_up_once(source: TimerSource) {
    // SAFETY: this CPU's own, interrupts off.
    let is_set_up = unsafe { &mut *cpu::this().timer.is_set_up.get() };
    if *is_set_up {
        return;
    }
    *is_set_up = true;
    match source {
        TimerSource::Counts { .. } => apic::set_timer(TimerMode::OneShot),
        TimerSource::Pit => {}
        TimerSource::TscDeadline => {
            apic::set_timer(TimerMode::TscDeadline);
            // The mode is set before the deadline is written (Intel SDM vol. 3, 10.5.4.1).
            // SAFETY: a fence has no other effect.
            unsafe { asm!("mfence", options(nostack, preserves_flags)) };
        }
    }
}
