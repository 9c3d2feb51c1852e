//! Counters, the clock (monotonic nanoseconds from the time-stamp counter) and the one-shot timer.

mod hpet;
mod oneshot;
mod pit;
mod tsc;

pub use hpet::Hpet;
pub(crate) use oneshot::{OneShotTimer, timer_fired};
pub use oneshot::{TimerSource, arm, arm_from, armed_ns, disarm, init_timer};
pub(crate) use tsc::mark_boot;
pub use tsc::{Source, calibrate, clock_ns, now_ns, origin, rate, ticks, ticks_to_ns};
