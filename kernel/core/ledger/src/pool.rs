//! Charges that are kept together.

use core::marker::PhantomData;

use abi_sync::atomic::{AtomicU32, Ordering};

use crate::{Charge, Counted, Ledger};

/// Charges of one line of one account, where what each pays for is a word that has no room for it: a pending
/// sleep is a few bits of a cell. Put in when the thing begins and taken out when it ends, from any CPU.
#[derive(Debug)]
pub struct Pool<L: Counted> {
    count: AtomicU32,
    line: PhantomData<L>,
}

impl<L: Counted> Pool<L> {
    /// No charge.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { count: AtomicU32::new(0), line: PhantomData }
    }

    /// No charge.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self { count: AtomicU32::new(0), line: PhantomData }
    }

    /// How much is in it.
    pub fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    /// Puts a charge in. All charges of a pool are on one account.
    #[inline]
    pub fn put(&self, charge: Charge<'_, L>) {
        self.count.fetch_add(charge.into_count(), Ordering::Relaxed);
    }

    /// Takes a charge of `count` on `ledger` out, the account of all that were put in; `None`, and nothing
    /// changes, if there is less.
    #[inline]
    pub fn take<'l>(&self, ledger: &'l Ledger, count: u32) -> Option<Charge<'l, L>> {
        let less = |now: u32| now.checked_sub(count);
        // Relaxed: the account's own word orders what was done before a release.
        self.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).ok()?;
        Some(Charge::of(ledger, count))
    }
}

impl<L: Counted> Default for Pool<L> {
    fn default() -> Self {
        Self::new()
    }
}
