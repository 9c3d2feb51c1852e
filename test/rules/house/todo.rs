//! Something left out.
#![no_std]
/// Later.
pub fn later() -> u8 {
    todo!()
}
