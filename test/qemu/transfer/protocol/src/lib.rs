//! What the keeper is asked for, by the number of the method.
#![no_std]

/// Keep what came along; the answer is how many are kept.
pub const KEEP: u16 = 0;
/// Release all that is kept.
pub const DROP: u16 = 1;
/// Call each that is kept as a clock; the answer is how many are one.
pub const CLOCKS: u16 = 2;
/// Give the last one kept back with the answer, moved.
pub const GIVE: u16 = 3;
/// End the process without an answer.
pub const EXIT: u16 = 4;
