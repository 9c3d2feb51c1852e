//! A panic on input.
#![no_std]
/// Takes.
pub fn take(x: Option<u8>) -> u8 {
    x.unwrap()
}
