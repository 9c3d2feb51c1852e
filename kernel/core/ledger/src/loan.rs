//! What a spawner gives a child: part of its own account, until the child is gone.
//!
//! A child's limits are taken from what the spawner has left, so the processes below one
//! process together never use more than it was given, however many there are and however deep
//! they nest. A spawner that ends before its children keeps its account, closed, until the last
//! of them has returned its loan; only then does its own loan go back to its lender.

use crate::word::Purpose;
use crate::{ChargeError, Ledger, Limit, Line, Profile};

/// The limits of a child, taken from its spawner's account. Kept beside the child's ledger;
/// returned, or dropped, when that is settled.
#[derive(Debug)]
#[must_use = "a loan that is dropped is returned"]
pub struct Loan<'l> {
    lender: &'l Ledger,
    profile: Profile,
}

/// Why nothing was lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LendError {
    /// The spawner is ending, or has less of a line left than the child asks for.
    Line(ChargeError),
    /// A limit that is not counted is larger than the spawner's.
    Above(Limit),
}

impl Ledger {
    /// Lends a child its limits, all or none. `own` is the profile of this account's process,
    /// for the limits that are not counted.
    pub fn lend(&self, own: &Profile, child: &Profile) -> Result<Loan<'_>, LendError> {
        if let Some(limit) = child.first_above(own) {
            return Err(LendError::Above(limit));
        }
        for (at, line) in Line::ALL.into_iter().enumerate() {
            let count = child.counted(line);
            if let Err(denied) = self.take(line, Purpose::Lend, count) {
                for lent in Line::ALL.into_iter().take(at) {
                    self.give(lent, Purpose::Lend, child.counted(lent));
                }
                return Err(LendError::Line(ChargeError::from_denied(denied, line, count)));
            }
        }
        Ok(Loan { lender: self, profile: *child })
    }
}

impl Loan<'_> {
    /// What the child may use.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The child is gone, and so much of its limits is still in use: lent by it to others, or for its record. The
    /// rest comes back.
    pub fn keep(&mut self, kept: &Profile) {
        for line in Line::ALL {
            let (lent, kept) = (self.profile.counted(line), kept.counted(line));
            self.lender.give(line, Purpose::Lend, lent.saturating_sub(kept));
        }
        self.profile = self.profile.at_most(kept);
    }

    /// The child is gone and its account settled.
    pub fn give_back(self) {
        drop(self);
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        for line in Line::ALL {
            self.lender.give(line, Purpose::Lend, self.profile.counted(line));
        }
    }
}
