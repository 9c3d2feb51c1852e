//! Waits that do not see a cancellation. Fibers and models have this one rule.

use fiber_core::StateWord;

use crate::wait::check;

/// Runs `f` with the waits of the fiber that has `word` shielded; a thread has none, and nobody cancels it.
/// Shields may lie within shields: the outermost is the one that ends it.
#[inline]
pub(crate) fn shield_at<R>(word: Option<&'static StateWord>, f: impl FnOnce() -> R) -> R {
    struct Restore(&'static StateWord);
    impl Drop for Restore {
        fn drop(&mut self) {
            let _ = check(self.0.set_shield(false));
        }
    }
    let unshielded = word.filter(|word| check(word.set_shield(true)) == Some(false));
    let _restore = unshielded.map(Restore);
    f()
}

/// Waits until what is waited for has happened, again and again if need be: for waits whose end the memory
/// of others hangs on.
#[cfg(not(loom))]
pub(crate) fn wait_in_any_case(mut wait: impl FnMut() -> Option<fiber_core::Outcome>) {
    while crate::fiber::shield(&mut wait) == Some(fiber_core::Outcome::Cancelled) {}
}
