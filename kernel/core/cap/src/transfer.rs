//! Moving and copying capabilities from one table into another: all of a message's, or none.
//!
//! The two tables have their own locks and are never held together. The steps, in order:
//!
//! 1. sender: [`Table::prepare`] checks every slot and makes the [`Parcel`]; the caller
//!    retains the object of each copy before it lets go of the lock.
//! 2. receiver: [`Table::reserve`] promises slots, charged to the receiver's process.
//! 3. the message's bytes are copied; anything may fail up to here.
//! 4. sender: [`Table::depart`] takes the moved ones out, if all are still there. This is the
//!    moment the transfer happens.
//! 5. receiver: [`Table::arrive`] fills the promised slots. It fails only if the receiver's
//!    process is ending, and then gives the parcel back to be released: it was delivered to a
//!    process that is no more.
//!
//! A step that fails leaves its table as it was; what the earlier steps did is taken back by
//! [`Table::abort`] at the receiver and by releasing the parcel's copies at the sender. Between
//! 1 and 4 the sender's siblings may use the slots; one that releases or moves a slot first
//! makes step 4 fail, as if it had come before the whole transfer.
//!
//! Decided in ADR 56.

use abi_types::CapSlot;
use abi_types::limits::MAX_TRANSFERS;

use crate::{Cap, CapError, GrantEntry, Grants, InsertError, Payer, Slot, Table};

const MOST: usize = MAX_TRANSFERS as usize;

/// What happens to the sender's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The sender keeps it.
    Copy,
    /// The sender's slot is emptied.
    Move,
}

/// One line of a message's transfer list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The slot in the sender's table, as the message names it.
    pub slot: CapSlot,
    /// Whether the sender keeps its own.
    pub mode: Mode,
}

/// One capability on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<O> {
    /// The line of the list it was asked for by: the departure empties that slot if it is a move.
    pub from: Request,
    /// What the slot held when the list was checked.
    pub cap: Cap<O>,
}

/// The capabilities of one message on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Parcel<O> {
    items: [Option<Item<O>>; MOST],
    count: u32,
}

impl<O: Copy> Parcel<O> {
    /// How many capabilities are on their way: slots the receiver needs.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Each of them, in the order of the list.
    pub fn items(&self) -> impl Iterator<Item = &Item<O>> {
        self.items.iter().flatten()
    }

    /// Those the sender keeps: the caller holds one more reference for each.
    pub fn copies(&self) -> impl Iterator<Item = &Item<O>> {
        self.items().filter(|item| item.from.mode == Mode::Copy)
    }
}

/// Slots promised to a transfer. Given to `arrive` or `abort`, once.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Reservation {
    slots: [u32; MOST],
    count: u32,
}

/// Where the capabilities of a message arrived, in the order of its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Arrived {
    slots: [CapSlot; MOST],
    count: u32,
}

impl Arrived {
    /// Slots of the receiver's table, by which the message names them to it.
    pub fn slots(&self) -> &[CapSlot] {
        self.slots.get(..self.count as usize).unwrap_or(&self.slots)
    }
}

/// Why no slots were promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReserveError {
    /// More than one message can carry.
    TooMany,
    /// The receiver has no room, or is ending.
    Insert(InsertError),
}

/// Why a transfer is refused, and which line of the list is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferError {
    /// The list is longer than a message can carry.
    TooMany,
    /// The slot is empty, stale or revoked.
    Unusable {
        /// Its position in the list, from 0.
        line: u32,
        /// What is wrong with it.
        error: CapError,
    },
    /// The object's interface is not one that can be passed on.
    NotTransferable {
        /// Its position in the list, from 0.
        line: u32,
    },
    /// A moved slot stands in the list more than once.
    MovedTwice {
        /// The position of the second mention, from 0.
        line: u32,
    },
}

/// The receiver's process ended on the way: each capability in the parcel has to be released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Undeliverable<O>(pub Parcel<O>);

impl<O: Copy, S: AsRef<[Slot<O>]> + AsMut<[Slot<O>]>, P: Payer> Table<O, S, P> {
    /// At the sender: checks every line and makes the parcel. Changes nothing in the table.
    ///
    /// `may_pass` says whether a capability's interface can be transferred in this mode.
    pub fn prepare<G: AsRef<[GrantEntry]> + AsMut<[GrantEntry]>>(
        &self,
        list: &[Request],
        grants: &Grants<G>,
        may_pass: impl Fn(&Cap<O>, Mode) -> bool,
    ) -> Result<Parcel<O>, TransferError> {
        let mut parcel = Parcel { items: [None; MOST], count: 0 };
        if list.len() > MOST {
            return Err(TransferError::TooMany);
        }
        for ((line, request), place) in (0_u32..).zip(list).zip(parcel.items.iter_mut()) {
            let cap = self
                .lookup(request.slot, grants)
                .map_err(|error| TransferError::Unusable { line, error })?;
            if !may_pass(cap, request.mode) {
                return Err(TransferError::NotTransferable { line });
            }
            let clashes = |other: &Request| {
                other.slot == request.slot
                    && (other.mode == Mode::Move || request.mode == Mode::Move)
            };
            if list.iter().take(line as usize).any(clashes) {
                return Err(TransferError::MovedTwice { line });
            }
            *place = Some(Item { from: *request, cap: *cap });
        }
        parcel.count = list.len() as u32;
        Ok(parcel)
    }

    /// At the sender: takes the moved capabilities out, all or none.
    pub fn depart(&mut self, parcel: &Parcel<O>) -> Result<(), TransferError> {
        for (line, item) in (0_u32..).zip(parcel.items()) {
            if item.from.mode == Mode::Move {
                self.get(item.from.slot)
                    .map_err(|error| TransferError::Unusable { line, error })?;
            }
        }
        for item in parcel.items().filter(|item| item.from.mode == Mode::Move) {
            self.put_free(item.from.slot.index());
        }
        Ok(())
    }

    /// At the receiver: promises `count` slots, all or none.
    pub fn reserve(&mut self, count: u32) -> Result<Reservation, ReserveError> {
        let mut reservation = Reservation { slots: [0; MOST], count: 0 };
        if count as usize > MOST {
            return Err(ReserveError::TooMany);
        }
        if self.room().map_err(ReserveError::Insert)? < count {
            return Err(ReserveError::Insert(InsertError::Full));
        }
        for place in reservation.slots.iter_mut().take(count as usize) {
            // Retired slots may leave fewer free ones than the limit allows.
            let Some(index) = self.take_free() else {
                self.abort(reservation);
                return Err(ReserveError::Insert(InsertError::Full));
            };
            *place = index;
            reservation.count = reservation.count.saturating_add(1);
        }
        Ok(reservation)
    }

    /// At the receiver: takes the promise back.
    pub fn abort(&mut self, reservation: Reservation) {
        // In reverse, so that the free list is as it was.
        for index in reservation.slots.iter().take(reservation.count as usize).rev() {
            self.put_free(*index);
        }
    }

    /// Fills the one slot of a promise; `None`, and the promise is taken back, if the process is ending or there
    /// is not one slot.
    pub fn fill(&mut self, reservation: Reservation, cap: Cap<O>) -> Option<CapSlot> {
        match reservation.slots.first() {
            Some(index) if reservation.count == 1 && self.room().is_ok() => {
                Some(self.fill_reserved(*index, cap))
            }
            _ => {
                self.abort(reservation);
                None
            }
        }
    }

    /// At the receiver: fills the promised slots.
    pub fn arrive(
        &mut self,
        reservation: Reservation,
        parcel: Parcel<O>,
    ) -> Result<Arrived, Undeliverable<O>> {
        if self.room().is_err() || reservation.count != parcel.count {
            self.abort(reservation);
            return Err(Undeliverable(parcel));
        }
        let mut arrived = Arrived { slots: [CapSlot::NONE; MOST], count: parcel.count };
        let places = reservation.slots.iter().zip(arrived.slots.iter_mut());
        for (item, (index, name)) in parcel.items().zip(places) {
            *name = self.fill_reserved(*index, item.cap);
        }
        Ok(arrived)
    }
}
