//! CANCEL, and the claim behind it: what a pending operation waits for lets go of it.

use crate::caller::{Caller, Finish};
use crate::complete::complete;
use crate::party::{Fit, Party};
use crate::process::ProcessKey;
use crate::thread::Thread;
use crate::{deadlines, ipc, object, park};
use abi_ring::{Credit, Outcome};
use abi_types::Status;
use smp_pending::Target;

/// CANCEL: ends the pending operation of this ring with that user data.
pub fn cancel(caller: Caller<'_>, credit: Credit, user_data: u64) -> Finish {
    let found = caller.ring.shared.cells.busy(0).find(|(_, cell)| cell.user_data() == user_data);
    let Some((index, cell)) = found else { return Finish::Plain(credit, Status::NotFound) };
    let party = Party { thread: caller.thread.key(), cell: index, room: Fit::NONE };
    if !claim(caller.thread, party, cell.target()) {
        // Whoever was faster completes it.
        return Finish::Plain(credit, Status::NotFound);
    }
    complete(party, &Outcome::plain(Status::Cancelled));
    Finish::Plain(credit, Status::Ok)
}

/// Claims the outcome of a thread's pending operation from what it waits for: `false` if someone
/// else has it and completes it.
pub fn claim(thread: &'static Thread, party: Party, target: Target) -> bool {
    match target {
        Target::Call { process, generation, key } => {
            ipc::give_up_call(ProcessKey { slot: process, generation }, key)
        }
        Target::Recv { .. } => ipc::give_up_recv(thread.process(), party),
        Target::Sleep => {
            let Some(held) = thread.completions_of(party.thread.generation) else {
                return false;
            };
            let is_ours =
                held.ring().shared.cells.get(party.cell).is_some_and(deadlines::claim_sleep);
            if is_ours {
                thread.process().sleep_ended();
            }
            is_ours
        }
        Target::Join { thread: joined } => object::threads::give_up_join(joined, party),
        Target::Park => park::give_up(thread),
        Target::Read => object::console::give_up(party),
    }
}
