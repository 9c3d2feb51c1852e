//! Moving and copying capabilities from one table into another: all of a message's, or none.
//!
//! The two tables have their own locks and are never held together. The steps, in order:
//!
//! 1. sender: [`Table::prepare`] checks every slot and makes the [`Parcel`]; the caller
//!    retains the object of each copy before it lets go of the lock.
//! 2. receiver: [`Table::reserve`] promises slots, charged to the receiver's process.
//! 3. the message's bytes are copied; anything may fail up to here.
//! 4. sender: [`Table::depart`] makes the moved ones nobody's, if all are still there.
//! 5. receiver: [`Table::arrive`] fills the promised slots, and the message is completed before
//!    the table is unlocked: this is the moment the transfer happens. It fails only if the
//!    receiver is ending.
//! 6. sender: [`Table::settle`] frees the slots of what has arrived, [`Table::recall`] makes what
//!    has not the sender's again.
//!
//! A step that fails leaves its table as it was; what the earlier steps did is taken back by
//! [`Table::abort`] at the receiver, by `recall` and by releasing the parcel's copies at the
//! sender. Between 1 and 4 the sender's siblings may use the slots; one that releases or moves a
//! slot first makes step 4 fail, as if it had come before the whole transfer. Between 4 and 6 they
//! find the slots empty.
//!
//! Decided in ADRs 56 and 278.

use abi_types::CapSlot;
use abi_types::limits::MAX_TRANSFERS;

use crate::slot::Content;
use crate::{Cap, CapError, Grant, InsertError, Payer, Slot, Table};

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

    /// Those that leave the sender.
    pub fn moves(&self) -> impl Iterator<Item = &Item<O>> {
        self.items().filter(|item| item.from.mode == Mode::Move)
    }

    /// Those the sender keeps: the caller holds one more reference for each.
    pub fn copies(&self) -> impl Iterator<Item = &Item<O>> {
        self.items().filter(|item| item.from.mode == Mode::Copy)
    }
}

/// Slots promised to a transfer, in the order of its list. Given to `arrive` or `abort`, once.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Reservation {
    slots: [CapSlot; MOST],
    count: u32,
}

impl Reservation {
    /// The names the slots are going to have: what the message tells its receiver.
    pub fn slots(&self) -> &[CapSlot] {
        self.slots.get(..self.count as usize).unwrap_or(&self.slots)
    }
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

/// The table is closed: the receiver's process ended on the way, or the sender's before the parcel came
/// back. Nothing of the parcel is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Undeliverable<O>(pub Parcel<O>);

impl<O: Copy, S: AsRef<[Slot<O>]> + AsMut<[Slot<O>]>, P: Payer> Table<O, S, P> {
    /// At the sender: checks every line and makes the parcel. Changes nothing in the table.
    ///
    /// `is_live` says whether a capability's grant still stands, `may_pass` whether its interface can
    /// be transferred in this mode. A grant that is revoked later takes the parcel's copies along.
    pub fn prepare(
        &self,
        list: &[Request],
        is_live: impl Fn(Grant) -> bool,
        may_pass: impl Fn(&Cap<O>, Mode) -> bool,
    ) -> Result<Parcel<O>, TransferError> {
        let mut parcel = Parcel { items: [None; MOST], count: 0 };
        if list.len() > MOST {
            return Err(TransferError::TooMany);
        }
        for ((line, request), place) in (0_u32..).zip(list).zip(parcel.items.iter_mut()) {
            let unusable = |error| TransferError::Unusable { line, error };
            let cap = self.get(request.slot).map_err(unusable)?;
            if !is_live(cap.grant) {
                return Err(unusable(CapError::Revoked));
            }
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

    /// At the sender: makes the moved capabilities nobody's, all or none.
    pub fn depart(&mut self, parcel: &Parcel<O>) -> Result<(), TransferError> {
        for (line, item) in (0_u32..).zip(parcel.items()) {
            if item.from.mode == Mode::Move {
                self.get(item.from.slot)
                    .map_err(|error| TransferError::Unusable { line, error })?;
            }
        }
        for item in parcel.moves() {
            if let Some(slot) = self.slot_mut(item.from.slot.index()) {
                slot.name = 0;
                slot.content = Content::Leaving(item.cap);
            }
        }
        Ok(())
    }

    /// At the sender: the parcel has arrived, and the slots it left are free.
    pub fn settle(&mut self, parcel: &Parcel<O>) {
        for item in parcel.moves() {
            if self.is_leaving(item) {
                self.put_free(item.from.slot.index());
            }
        }
    }

    /// At the sender: the parcel has not arrived, and is in its slots again, under the same names. A
    /// table that was closed meanwhile takes nothing back: what was moved has to be released.
    pub fn recall(&mut self, parcel: Parcel<O>) -> Result<(), Undeliverable<O>> {
        if self.room().is_err() {
            self.settle(&parcel);
            return Err(Undeliverable(parcel));
        }
        for item in parcel.moves() {
            let is_leaving = self.is_leaving(item);
            if let Some(slot) = self.slot_mut(item.from.slot.index()).filter(|_| is_leaving) {
                slot.name = item.from.slot.to_bits();
                slot.content = Content::Held(item.cap);
            }
        }
        Ok(())
    }

    fn is_leaving(&self, item: &Item<O>) -> bool {
        let name = item.from.slot;
        let slot = self.slots.as_ref().get(name.index() as usize);
        slot.is_some_and(|slot| {
            matches!(slot.content, Content::Leaving(_)) && slot.generation == name.generation()
        })
    }

    /// At the receiver: promises `count` slots, all or none.
    pub fn reserve(&mut self, count: u32) -> Result<Reservation, ReserveError> {
        let mut reservation = Reservation { slots: [CapSlot::NONE; MOST], count: 0 };
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
            *place = self.next_name(index);
            reservation.count = reservation.count.saturating_add(1);
        }
        Ok(reservation)
    }

    /// At the receiver: takes the promise back.
    pub fn abort(&mut self, reservation: Reservation) {
        // In reverse, so that the free list is as it was.
        for index in reservation.slots.iter().take(reservation.count as usize).rev() {
            self.put_free(index.index());
        }
    }

    /// Fills the one slot of a promise; `None`, and the promise is taken back, if the process is ending or there
    /// is not one slot.
    pub fn fill(&mut self, reservation: Reservation, cap: Cap<O>) -> Option<CapSlot> {
        match reservation.slots.first() {
            Some(index) if reservation.count == 1 && self.room().is_ok() => {
                Some(self.fill_reserved(index.index(), cap))
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
            *name = self.fill_reserved(index.index(), item.cap);
        }
        Ok(arrived)
    }
}
