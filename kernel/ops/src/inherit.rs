//! Capabilities that a new process inherits from the one that starts it: all of a list, or none.
//!
//! The steps are those of a transfer (`transfer.rs`), over lists as long as a CapSet page has entries. The child has
//! no thread yet, so nobody else looks at its table: slots are promised there first, which gives the names that the
//! child is told; what is moved leaves the spawner's table when everything else is done, and what is copied is held
//! meanwhile.

use crate::capability::Object;
use crate::machine::{ProcessPart, service_of};
use crate::object::{self, Objects};
use crate::paid::{NoMemory, PaidVec};
use crate::transfer::may_pass;
use abi_types::limits::MAX_TRANSFERS;
use abi_types::{CapSlot, InterfaceTag};
use core_cap::{Cap, CapError, Mode, Parcel, Released, Request, Reservation, TransferError};
use kernel_dispatch::preemption_point;

/// Capabilities that a child can inherit: as many as a CapSet page has entries.
pub const MAX_INHERITED: usize = 63;
const PER_PARCEL: usize = MAX_TRANSFERS as usize;

/// Why nothing is inherited, and which line of the list is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InheritError {
    /// More than [`MAX_INHERITED`].
    TooMany,
    /// As the transfer of that line is refused.
    Line(usize, TransferError),
    /// The child's table has no slot for them.
    Slots,
    /// There is no memory for what is kept of them on their way, or the spawner's account pays for no more.
    Memory(NoMemory),
}

/// Some lines of the list on their way.
struct Going<M: Objects> {
    /// What they are, until it has arrived or is taken back.
    parcel: Option<Parcel<Object<M::Other>>>,
    /// Their slots in the child's table.
    promised: Option<Reservation>,
}

/// Capabilities on their way from a spawner to its child.
pub struct Inheritance<M: Objects> {
    m: M,
    from: &'static ProcessPart<M>,
    /// As many as the list needs, paid for by the spawner: for a whole list they are more than a stack should hold.
    going: PaidVec<Going<M>>,
    has_departed: bool,
}

/// The error of a line of a parcel as that of the list.
fn of_line(parcel: usize, error: TransferError) -> InheritError {
    let line = match error {
        TransferError::TooMany => return InheritError::TooMany,
        TransferError::Unusable { line, .. }
        | TransferError::NotTransferable { line }
        | TransferError::MovedTwice { line } => line,
    };
    InheritError::Line(parcel * PER_PARCEL + line as usize, error)
}

impl<M: Objects> Inheritance<M> {
    /// Checks every line of the list against the table of `from`, and holds what is copied.
    pub fn prepare(
        m: M,
        from: &'static ProcessPart<M>,
        list: &[Request],
    ) -> Result<Self, InheritError> {
        if list.len() > MAX_INHERITED {
            return Err(InheritError::TooMany);
        }
        let clash = |(line, request): &(usize, &Request)| {
            let clashes = |other: &Request| {
                other.slot == request.slot
                    && (other.mode == Mode::Move || request.mode == Mode::Move)
            };
            list.iter().take(*line).any(clashes)
        };
        if let Some((line, _)) = list.iter().enumerate().find(clash) {
            let error = TransferError::MovedTwice { line: line as u32 };
            return Err(InheritError::Line(line, error));
        }
        let going = PaidVec::with_room(&from.ledger, list.len().div_ceil(PER_PARCEL));
        let going = going.map_err(InheritError::Memory)?;
        let mut inheritance = Self { m, from, going, has_departed: false };
        for (number, requests) in list.chunks(PER_PARCEL).enumerate() {
            preemption_point(m);
            let parcel = inheritance.check(requests).map_err(|error| of_line(number, error))?;
            // What is held before an error is let go of with the value.
            inheritance.hold(number, parcel)?;
        }
        Ok(inheritance)
    }

    fn check(&self, requests: &[Request]) -> Result<Parcel<Object<M::Other>>, TransferError> {
        let unusable = |line: u32, error| TransferError::Unusable { line, error };
        let parcel = {
            let caps = self.from.caps.lock();
            let table = caps.as_ref().ok_or(unusable(0, CapError::Disconnected))?;
            // A child serves endpoints of its own.
            let stays = |cap: &Cap<Object<M::Other>>| matches!(cap.object, Object::Endpoint(_));
            let pass = |cap: &Cap<_>, mode| !stays(cap) && may_pass(self.m, cap, mode);
            table.prepare(requests, |_| true, pass)?
        };
        for (line, item) in (0..).zip(parcel.items()) {
            // Grants are their services', whose locks come before a table's.
            if let Object::Facet(of) = item.cap.object {
                let service = service_of(self.m, of.process);
                let service = service.map_err(|_| unusable(line, CapError::Revoked))?;
                if !service.as_ref().is_some_and(|s| s.grants.is_live(item.cap.grant)) {
                    return Err(unusable(line, CapError::Revoked));
                }
            }
        }
        Ok(parcel)
    }

    /// Holds what is copied of a parcel, and keeps the parcel.
    fn hold(
        &mut self,
        number: usize,
        parcel: Parcel<Object<M::Other>>,
    ) -> Result<(), InheritError> {
        for (line, item) in parcel.copies().enumerate() {
            if let Object::Other(object) = item.cap.object
                && !self.m.retained(object)
            {
                // A sibling has let it go since it was looked at.
                for held in parcel.copies().take(line) {
                    object::released(self.m, self.from, Released(held.cap));
                }
                let error = TransferError::Unusable { line: 0, error: CapError::Disconnected };
                return Err(of_line(number, error));
            }
        }
        if self.going.push(Going { parcel: Some(parcel), promised: None }).is_err() {
            self.m.defect("more parcels than the list has");
        }
        Ok(())
    }

    /// What is on its way.
    fn parcels(&self) -> impl Iterator<Item = &Parcel<Object<M::Other>>> {
        self.going.as_ref().iter().filter_map(|going| going.parcel.as_ref())
    }

    /// The interface of each, in the order of the list.
    pub fn interfaces(&self) -> impl Iterator<Item = InterfaceTag> {
        self.parcels().flat_map(|parcel| parcel.items()).map(|item| item.cap.interface)
    }

    /// Promises slots in the child's table; their names, in the order of the list.
    pub fn promise(
        &mut self,
        to: &'static ProcessPart<M>,
        mut name: impl FnMut(CapSlot),
    ) -> Result<(), InheritError> {
        let mut caps = to.caps.lock();
        let table = caps.as_mut().ok_or(InheritError::Slots)?;
        for Going { parcel, promised } in self.going.as_mut() {
            let Some(parcel) = parcel else { break };
            let slots = table.reserve(parcel.count()).map_err(|_| InheritError::Slots)?;
            slots.slots().iter().for_each(|slot| name(*slot));
            *promised = Some(slots);
        }
        Ok(())
    }

    /// Makes the moved ones nobody's. From here on nothing of the list is refused.
    pub fn depart(&mut self) -> Result<(), InheritError> {
        let mut caps = self.from.caps.lock();
        let gone = TransferError::Unusable { line: 0, error: CapError::Disconnected };
        let table = caps.as_mut().ok_or(InheritError::Line(0, gone))?;
        for (number, parcel) in self.parcels().enumerate() {
            if let Err(error) = table.depart(parcel) {
                for before in self.parcels().take(number) {
                    // The table is open: it was asked just now, and is locked.
                    let back = table.recall(*before);
                    debug_assert!(back.is_ok(), "a table that is locked was closed");
                }
                return Err(of_line(number, error));
            }
        }
        self.has_departed = true;
        Ok(())
    }

    /// Puts everything into the child's table, and frees what it left.
    pub fn arrive(mut self, to: &'static ProcessPart<M>) {
        let mut caps = to.caps.lock();
        for Going { parcel, promised } in self.going.as_mut() {
            if let (Some(parcel), Some(promised), Some(table)) =
                (&*parcel, promised.take(), caps.as_mut())
            {
                let arrived = table.arrive(promised, *parcel);
                debug_assert!(arrived.is_ok(), "the table of a child without threads is open");
            }
        }
        drop(caps);
        let mut caps = self.from.caps.lock();
        for parcel in self.going.as_mut().iter_mut().filter_map(|going| going.parcel.take()) {
            if let Some(table) = caps.as_mut() {
                table.settle(&parcel);
            }
        }
    }

    /// Takes everything back: the child gets nothing, and the spawner has what it had. What was promised goes with
    /// the child's table.
    fn take_back(&mut self) {
        for Going { parcel, promised } in self.going.as_mut() {
            // Its table is the child's, which is taken apart.
            *promised = None;
            let Some(parcel) = parcel.take() else { continue };
            if self.has_departed {
                let back = self.from.caps.lock().as_mut().map(|table| table.recall(parcel));
                if !matches!(back, Some(Ok(()))) {
                    for item in parcel.moves() {
                        object::released(self.m, self.from, Released(item.cap));
                    }
                }
            }
            for item in parcel.copies() {
                if let Object::Other(_) = item.cap.object {
                    object::released(self.m, self.from, Released(item.cap));
                }
            }
        }
    }
}

impl<M: Objects> Drop for Inheritance<M> {
    fn drop(&mut self) {
        self.take_back();
    }
}
