//! Grants: one word by which every copy of a facet goes stale at once.
//!
//! The giver of a revocable facet opens a grant and puts it into the capability. A copy
//! carries the grant along, into whichever table it goes. Revoking steps the grant's epoch;
//! from then on no look-up through any copy succeeds, and nothing has to be searched for.
//! Giving up the authority to revoke is a revocation: a grant nobody can end would never be
//! reused.
//!
//! A facet made from a revocable facet falls with it: it takes the same grant.
//!
//! Looking at a grant takes no lock. Opening and revoking are called under the grants' lock.
//!
//! Decided in ADR 56.

use abi_sync::atomic::{AtomicU32, Ordering};

/// What a capability falls with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grant {
    index: u32,
    epoch: u32,
}

impl Grant {
    /// Is never revoked. Entry 0 of every [`Grants`] stands for it and never changes, so that
    /// a look at it is like any other.
    pub const PERMANENT: Self = Self { index: 0, epoch: 0 };

    /// Whether it can be revoked.
    #[inline]
    pub const fn is_revocable(self) -> bool {
        self.index != 0
    }
}

/// The record of one grant.
#[derive(Debug, Default)]
pub struct GrantEntry {
    /// Which grant of this entry is live; the one with the same epoch.
    epoch: AtomicU32,
    /// The entry after this one on the free list; 0 ends it.
    next_free: u32,
    is_open: bool,
}

/// Why a grant could not be opened or revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantError {
    /// Every entry is in use.
    Full,
    /// It was revoked before, or never opened.
    Revoked,
    /// It is the permanent one.
    Permanent,
}

/// All grants of the system, or of a domain that shares revocation.
#[derive(Debug)]
pub struct Grants<S> {
    entries: S,
    first_free: u32,
    open: u32,
}

impl<S: AsRef<[GrantEntry]> + AsMut<[GrantEntry]>> Grants<S> {
    /// Grants over unused entries; entry 0 is the permanent one.
    pub fn new(mut entries: S) -> Self {
        let slice = entries.as_mut();
        let count = u32::try_from(slice.len()).unwrap_or(u32::MAX);
        for (index, entry) in (0..count).zip(slice.iter_mut()) {
            let next = index.wrapping_add(1);
            *entry = GrantEntry {
                epoch: AtomicU32::new(0),
                next_free: if next < count { next } else { 0 },
                is_open: false,
            };
        }
        Self { entries, first_free: u32::from(count > 1), open: 0 }
    }

    /// Grants that can be revoked now.
    pub fn open_count(&self) -> u32 {
        self.open
    }

    /// Opens a grant; the caller charges it to the process that asked.
    pub fn open(&mut self) -> Result<Grant, GrantError> {
        let index = self.first_free;
        if index == 0 {
            return Err(GrantError::Full);
        }
        let entry = self.entries.as_mut().get_mut(index as usize).ok_or(GrantError::Full)?;
        // Relaxed: the epoch last changed under the lock the caller holds.
        let epoch = entry.epoch.load(Ordering::Relaxed);
        entry.is_open = true;
        self.first_free = entry.next_free;
        self.open = self.open.saturating_add(1);
        Ok(Grant { index, epoch })
    }

    /// Ends a grant: every look at it from now on fails.
    pub fn revoke(&mut self, grant: Grant) -> Result<(), GrantError> {
        if !grant.is_revocable() {
            return Err(GrantError::Permanent);
        }
        let entry =
            self.entries.as_mut().get_mut(grant.index as usize).ok_or(GrantError::Revoked)?;
        // Relaxed: as in `open`.
        if !entry.is_open || entry.epoch.load(Ordering::Relaxed) != grant.epoch {
            return Err(GrantError::Revoked);
        }
        let next = grant.epoch.wrapping_add(1);
        // Release: pairs with the acquire in `is_live`, so that whoever sees the new epoch
        // sees what the revoker did before.
        entry.epoch.store(next, Ordering::Release);
        entry.is_open = false;
        self.open = self.open.saturating_sub(1);
        if next != u32::MAX {
            entry.next_free = self.first_free;
            self.first_free = grant.index;
        }
        Ok(())
    }

    /// Whether a capability with this grant still stands. Called without a lock.
    #[inline]
    pub fn is_live(&self, grant: Grant) -> bool {
        match self.entries.as_ref().get(grant.index as usize) {
            // Acquire: pairs with the release in `revoke`.
            Some(entry) => entry.epoch.load(Ordering::Acquire) == grant.epoch,
            None => false,
        }
    }

    /// Checks what holds after every operation.
    pub fn check_invariants(&self) -> Result<(), &'static str> {
        let entries = self.entries.as_ref();
        let open = entries.iter().filter(|entry| entry.is_open).count();
        if open != self.open as usize {
            return Err("the count of open grants is wrong");
        }
        let mut at = self.first_free;
        let mut free = 0_usize;
        while at != 0 {
            let entry = entries.get(at as usize).ok_or("the free list leaves the entries")?;
            if entry.is_open {
                return Err("an open grant is on the free list");
            }
            free = free.saturating_add(1);
            if free > entries.len() {
                return Err("the free list has a cycle");
            }
            at = entry.next_free;
        }
        // Relaxed: only compared with a constant that never changes.
        match entries.first() {
            Some(first) if first.epoch.load(Ordering::Relaxed) != 0 => {
                Err("the permanent grant was revoked")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn entries<const N: usize>() -> [GrantEntry; N] {
        core::array::from_fn(|_| GrantEntry::default())
    }

    #[test]
    fn revoking_ends_one_grant_and_no_other() {
        let mut grants = Grants::new(entries::<4>());
        let (a, b) = (grants.open().unwrap(), grants.open().unwrap());
        assert_eq!(grants.revoke(a), Ok(()));
        assert!(!grants.is_live(a) && grants.is_live(b) && grants.is_live(Grant::PERMANENT));
        assert_eq!(grants.revoke(a), Err(GrantError::Revoked));
        grants.check_invariants().unwrap();
        let c = grants.open().unwrap();
        assert_eq!(c.index, a.index);
        assert!(!grants.is_live(a) && grants.is_live(c), "an old grant came back to life");
        assert_eq!(grants.revoke(a), Err(GrantError::Revoked));
        assert!(grants.is_live(c));
    }

    #[test]
    fn the_permanent_grant_cannot_be_revoked_and_entries_run_out() {
        let mut grants = Grants::new(entries::<3>());
        assert_eq!(grants.revoke(Grant::PERMANENT), Err(GrantError::Permanent));
        let (_, _) = (grants.open().unwrap(), grants.open().unwrap());
        assert_eq!(grants.open(), Err(GrantError::Full));
        grants.check_invariants().unwrap();
    }

    #[test]
    fn an_entry_retires_when_its_epochs_are_used_up() {
        let mut grants = Grants::new(entries::<2>());
        grants.entries[1].epoch = AtomicU32::new(u32::MAX - 1);
        let last = grants.open().unwrap();
        assert_eq!(grants.revoke(last), Ok(()));
        assert_eq!(grants.open(), Err(GrantError::Full));
        assert!(!grants.is_live(last));
        grants.check_invariants().unwrap();
    }
}
