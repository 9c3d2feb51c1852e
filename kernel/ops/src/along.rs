//! Capabilities that a call on an object of the kernel's brings along: copies, which are held while it is in progress.
//!
//! They are read and checked as those of any message (`transfer.rs`), and let go of when the call is answered: the
//! caller keeps its own, and may release it meanwhile. A method says how many it takes ([`Objects::takes`]); nothing is
//! moved into the kernel.

use crate::buffers::Uses;
use crate::caller::{Caller, Finish};
use crate::capability::Object;
use crate::machine::ProcessPart;
use crate::object::{self, Objects};
use crate::transfer::{self, check_grants, copies, prepare};
use abi_ring::Credit;
use abi_types::{InterfaceTag, Status};
use core_cap::{Cap, Mode, Parcel};

/// What a call brought along.
struct Along<M: Objects> {
    m: M,
    process: &'static ProcessPart<M>,
    parcel: Parcel<Object<M::Other>>,
    /// Copies that are held, the first ones.
    held: usize,
}

impl<M: Objects> Along<M> {
    /// Takes what follows the parameters of a call of the caller's own on an object of the kernel's: all of the list, or
    /// nothing.
    #[inline(never)]
    fn take(
        caller: Caller<'_, M>,
        interface: InterfaceTag,
        call: &abi_ring::Call,
    ) -> Result<Self, Status> {
        let (payload, count) = (call.params(), call.transfers());
        if count > caller.m.takes(interface, call.method()) {
            return Err(Status::TransferRefused);
        }
        let list = transfer::fetch_own(caller, payload, count)?;
        if list.lines().iter().any(|line| line.mode == Mode::Move) {
            return Err(Status::TransferRefused);
        }
        let (m, process) = (caller.m, caller.ring.shared.process);
        let mut held = 0;
        // Under the table's lock: what a capability is copied from holds the object meanwhile.
        let hold = |parcel: &Parcel<_>| {
            held = copies::<M>(parcel).take_while(|object| m.retained(*object)).count();
        };
        let parcel = prepare(m, &transfer::home_of(process), &list, hold)?;
        // From here on what is held is let go of with the value.
        let along = Self { m, process, parcel, held };
        if along.held != copies::<M>(&along.parcel).count() {
            return Err(Status::Disconnected);
        }
        check_grants(m, &along.parcel)?;
        Ok(along)
    }
}

impl<M: Objects> Drop for Along<M> {
    fn drop(&mut self) {
        copies::<M>(&self.parcel).take(self.held).for_each(|object| {
            self.m.released(self.process, object);
        });
    }
}

/// A call on an object of the kernel's that brings capabilities along, which are let go of when it is answered.
#[inline(never)]
pub fn call<M: Objects>(
    caller: Caller<'_, M>,
    credit: Credit,
    call: &abi_ring::Call,
    cap: &Cap<Object<M::Other>>,
    uses: Uses<M>,
) -> Finish {
    match Along::take(caller, cap.interface, call) {
        Ok(along) => object::call(caller, credit, call, cap, (uses, Some(along.parcel))),
        Err(status) => Finish::Plain(credit, status),
    }
}
