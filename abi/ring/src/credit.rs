//! The right to a completion, and the place that keeps it while its operation is pending.
//!
//! A [`Credit`] is made where an SQE is consumed and spent where its CQE is posted. Between the two it is
//! a value that moves, or it lies in a [`CreditCell`]. There is no other way to it: outside this crate no
//! credit is made of bits.

use abi_sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The right to one completion: what is left of an SQE once it was consumed. Spent by posting;
/// never spent twice, dropped only with the ring.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "every SQE that was consumed is completed once"]
pub struct Credit {
    user_data: u64,
}

impl Credit {
    pub(crate) const fn new(user_data: u64) -> Self {
        Self { user_data }
    }

    /// What the SQE called itself.
    #[inline]
    pub const fn user_data(&self) -> u64 {
        self.user_data
    }
}

/// A place for a credit. Whether there is one in it, and whose it is, is for the owner of the place to
/// know: the words are plain, and what orders put and take is the lock of what the operation waits for.
#[derive(Debug, Default)]
pub struct CreditCell {
    user_data: AtomicU64,
}

impl CreditCell {
    /// Puts a credit in, over one that was taken.
    #[inline]
    pub fn put(&self, credit: Credit) {
        self.user_data.store(credit.user_data, Relaxed);
    }

    /// Takes the credit out: once, by the one who claimed the operation's outcome.
    #[inline]
    pub fn take(&self) -> Credit {
        Credit::new(self.user_data.load(Relaxed))
    }

    /// What the SQE of the credit in it called itself.
    #[inline]
    pub fn user_data(&self) -> u64 {
        self.user_data.load(Relaxed)
    }
}
