//! A verdict that is thrown away.
#![no_std]

/// What somebody has to do.
#[must_use]
pub struct Verdict;

/// Decides.
pub fn decide() -> Verdict {
    Verdict
}

/// Does not do it.
pub fn ignore() {
    let _ = decide();
}
