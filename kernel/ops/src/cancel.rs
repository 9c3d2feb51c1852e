//! CANCEL, and the claim behind it: what a pending operation waits for lets go of it.

use crate::caller::{Caller, Finish};
use crate::capability::ProcessKey;
use crate::complete::complete;
use crate::machine::{Defect, Machine, Record, key_of};
use crate::party::{Fit, Party};
use crate::{deadlines, interrupt, ipc, output, park};
use abi_ring::{Credit, Outcome};
use abi_types::Status;
use smp_pending::Target;

/// CANCEL: ends the pending operation of this ring with that user data.
pub fn cancel<M: Machine>(caller: Caller<'_, M>, credit: Credit, user_data: u64) -> Finish {
    let found = caller.ring.shared.cells.busy(0).find(|(_, cell)| cell.user_data() == user_data);
    let Some((index, cell)) = found else { return Finish::Plain(credit, Status::NotFound) };
    let party = Party { thread: key_of::<M>(caller.thread), cell: index, room: Fit::NONE };
    if !claim(caller.m, caller.thread, party, cell.target()) {
        // Whoever was faster completes it.
        return Finish::Plain(credit, Status::NotFound);
    }
    complete(caller.m, party, &Outcome::plain(Status::Cancelled));
    Finish::Plain(credit, Status::Ok)
}

/// Claims the outcome of a thread's pending operation from what it waits for: `false` if someone
/// else has it and completes it.
pub fn claim<M: Machine>(m: M, thread: &'static M::Thread, party: Party, target: Target) -> bool {
    match target {
        Target::Call { process, generation, key } => {
            ipc::give_up_call(m, ProcessKey { slot: process, generation }, key)
        }
        Target::Recv { .. } => ipc::give_up_recv(m, thread.ops().process(m), party),
        Target::Sleep => {
            let Some(held) = thread.ops().completions_of(party.thread.generation) else {
                return false;
            };
            let is_ours = deadlines::claim_sleep(m, &held.ring().shared.cells, party.cell);
            if is_ours && !m.plants(Defect::SleepNotCountedOut) {
                thread.ops().process(m).sleep_ended(m);
            }
            is_ours
        }
        Target::Park { ticket } => park::give_up(m, thread, ticket),
        Target::Write => output::give_up(m, thread.ops().process_slot(), party),
        Target::Interrupt { place } => interrupt::give_up(m, place, party),
        Target::Join { .. } | Target::Read | Target::End { .. } => m.claim(party, target),
        // What has begun is completed by whoever ends it, soon.
        Target::Memory => false,
    }
}
