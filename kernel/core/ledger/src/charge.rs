//! Reservations and charges: the only ways a line is used.

use core::marker::PhantomData;

use crate::word::Purpose;
use crate::{ChargeError, Counted, Ledger};

/// Part of a line that is promised and not in use yet. Dropped, it goes back.
#[derive(Debug)]
#[must_use = "a reservation that is dropped is undone"]
pub struct Reservation<'l, L: Counted>(Held<'l, L>);

/// Part of a line that pays for something. Kept beside it; released, or dropped, after it.
#[derive(Debug)]
#[must_use = "a charge that is dropped is released"]
pub struct Charge<'l, L: Counted>(Held<'l, L>);

/// The two charges are on different accounts; the second comes back.
#[derive(Debug)]
pub struct OtherAccount<'l, L: Counted>(pub Charge<'l, L>);

/// An amount taken from a line of a ledger, given back once, when dropped.
#[derive(Debug)]
struct Held<'l, L: Counted> {
    ledger: &'l Ledger,
    count: u32,
    line: PhantomData<L>,
}

impl<L: Counted> Drop for Held<'_, L> {
    #[inline]
    fn drop(&mut self) {
        if self.count != 0 {
            self.ledger.give(L::LINE, Purpose::Use, self.count);
        }
    }
}

impl<'l, L: Counted> Held<'l, L> {
    /// Moves `count` of it into a value of its own.
    fn split(&mut self, count: u32) -> Option<Self> {
        self.count = self.count.checked_sub(count)?;
        Some(Self { ledger: self.ledger, count, line: PhantomData })
    }

    /// Takes the other's amount over, if both are of one account.
    fn merge(&mut self, mut other: Self) -> Result<(), Self> {
        if !core::ptr::eq(self.ledger, other.ledger) {
            return Err(other);
        }
        // No overflow: both are part of what one line has in use.
        self.count = self.count.saturating_add(other.count);
        other.count = 0;
        Ok(())
    }
}

impl<'l, L: Counted> Reservation<'l, L> {
    /// What `ledger` has just taken from the line.
    #[inline]
    pub(crate) fn taken(ledger: &'l Ledger, count: u32) -> Self {
        Self(Held { ledger, count, line: PhantomData })
    }

    /// How many are promised.
    pub fn count(&self) -> u32 {
        self.0.count
    }

    /// What it was reserved for exists: all of it is in use.
    #[inline]
    pub fn commit(self) -> Charge<'l, L> {
        Charge(self.0)
    }

    /// `count` of it are in use; the rest stays promised. `None`, and nothing changes, if fewer
    /// are.
    pub fn commit_part(&mut self, count: u32) -> Option<Charge<'l, L>> {
        self.0.split(count).map(Charge)
    }
}

impl<'l, L: Counted> Charge<'l, L> {
    /// How many it pays for.
    pub fn count(&self) -> u32 {
        self.0.count
    }

    /// Takes `count` of it out as a charge of their own. `None`, and nothing changes, if it has
    /// fewer.
    pub fn split(&mut self, count: u32) -> Option<Self> {
        self.0.split(count).map(Self)
    }

    /// Reserves more of the same line of the same account.
    #[inline]
    pub fn reserve_more(&self, count: u32) -> Result<Reservation<'l, L>, ChargeError> {
        self.0.ledger.reserve_line(count)
    }

    /// Adds another charge on the same account.
    pub fn merge(&mut self, other: Self) -> Result<(), OtherAccount<'l, L>> {
        self.0.merge(other.0).map_err(|other| OtherAccount(Self(other)))
    }

    /// A charge on `ledger` whose count was kept elsewhere.
    #[inline]
    pub(crate) fn of(ledger: &'l Ledger, count: u32) -> Self {
        Self(Held { ledger, count, line: PhantomData })
    }

    /// Gives the count to someone who keeps it, and releases nothing.
    #[inline]
    pub(crate) fn into_count(mut self) -> u32 {
        core::mem::take(&mut self.0.count)
    }

    /// What it paid for was given back.
    #[inline]
    pub fn release(self) {
        drop(self);
    }
}
