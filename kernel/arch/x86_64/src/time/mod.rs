//! Counters, the clock (monotonic nanoseconds, the same on every CPU) and the one-shot timer.

mod agree;
mod clock;
mod hpet;
mod oneshot;
mod pit;
pub mod rtc;
#[cfg(checked)]
pub mod skew;
mod tsc;

pub use agree::{Agreed, agree};
pub(crate) use clock::mark_boot;
pub use clock::{UserClock, clock_ns, now_ns, ticks_to_ns, user_clock};
pub use core_clock::agree::ClockChoice;
pub use hpet::Hpet;
pub(crate) use oneshot::{OneShotTimer, fire_soon, timer_fired};
pub use oneshot::{TimerSource, arm, arm_from, armed_ns, disarm, init_timer};
pub use tsc::{Source, calibrate, rate, ticks};
