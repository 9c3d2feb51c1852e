//! How many deadlines a process may have at once.

use abi_sync::atomic::{AtomicU32, Ordering};

/// Units taken and the limit on them.
#[derive(Debug)]
pub struct Quota {
    used: AtomicU32,
    limit: u32,
}

/// All units are taken; nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overloaded {
    /// The limit.
    pub limit: u32,
}

impl Quota {
    /// `limit` free units.
    pub fn new(limit: u32) -> Self {
        Self { used: AtomicU32::new(0), limit }
    }

    /// Takes a unit.
    #[inline]
    pub fn take(&self) -> Result<(), Overloaded> {
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            if used < self.limit { Some(used + 1) } else { None }
        });
        taken.map(|_| ()).map_err(|_| Overloaded { limit: self.limit })
    }

    /// Gives a unit back. One that was not taken is not given.
    #[inline]
    pub fn give_back(&self) {
        let given =
            self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |u| u.checked_sub(1));
        debug_assert!(given.is_ok(), "a unit is given back that was never taken");
    }

    /// Units taken, and the limit.
    pub fn used_and_limit(&self) -> (u32, u32) {
        (self.used.load(Ordering::Relaxed), self.limit)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_limit_holds() {
        let quota = Quota::new(2);
        assert_eq!((quota.take(), quota.take()), (Ok(()), Ok(())));
        assert_eq!(quota.take(), Err(Overloaded { limit: 2 }));
        assert_eq!(quota.used_and_limit(), (2, 2));
        quota.give_back();
        assert_eq!(quota.take(), Ok(()));
        assert_eq!(Quota::new(0).take(), Err(Overloaded { limit: 0 }));
    }
}
