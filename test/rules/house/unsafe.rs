//! An unsafe block without a reason.
#![no_std]
/// Reads.
pub fn read(p: &u8) -> u8 {
    unsafe { core::ptr::read(p) }
}
