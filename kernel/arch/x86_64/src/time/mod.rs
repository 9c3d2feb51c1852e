//! Counters and the clock: monotonic nanoseconds from the time-stamp counter.

mod hpet;
mod pit;
mod tsc;

pub use hpet::Hpet;
pub(crate) use tsc::mark_boot;
pub use tsc::{Source, calibrate, now_ns, rate, ticks, ticks_to_ns};
