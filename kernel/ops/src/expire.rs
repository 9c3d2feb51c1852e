//! Deadlines that have passed: who serves them.

use crate::complete::complete;
use crate::deadlines::{self, Due};
use crate::machine::Machine;
use crate::{interrupt, ipc, park, wait};
use abi_ring::Outcome;
use abi_types::Status;
use kernel_dispatch::Here;

/// Serves what is due on this CPU, and arms what is due next.
pub fn expire<M: Machine>(m: M, here: &Here<M>, now_ns: u64) {
    deadlines::expire(m, here, now_ns, |due| serve(m, due));
}

fn serve<M: Machine>(m: M, due: Due<M>) {
    match due {
        Due::Enter(thread, key) => wait::time_is_up(m, thread, key),
        Due::Park(thread, ticket) => park::time_is_up(m, thread, ticket),
        Due::Call(target, now_ns) => ipc::deadline(m, target, now_ns),
        Due::Line(place) => interrupt::reopen(m, place),
        Due::Sleep(party) => complete(m, party, &Outcome::plain(Status::Ok)),
    }
}
