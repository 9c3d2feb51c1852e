//! A panic on input.
#![no_std]
/// Takes.
pub fn take(x: &[u8], i: usize) -> u8 {
    x[i]
}
