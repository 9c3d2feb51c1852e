//! Deadlines that have passed: who serves them.

use crate::complete::complete;
use crate::deadlines::{self, Due};
use crate::sched::Cpu;
use crate::{enter, ipc, object, park};
use abi_ring::Outcome;
use abi_types::Status;

pub use crate::deadlines::next;

/// Serves what is due on this CPU, and arms what is due next.
pub fn expire(me: &Cpu, now_ns: u64) {
    deadlines::expire(me, now_ns, serve);
}

fn serve(due: Due) {
    match due {
        Due::Enter(thread) => enter::time_is_up(thread),
        Due::Park(thread, now_ns) => park::time_is_up(thread, now_ns),
        Due::Call(party, now_ns) => ipc::deadline(party, now_ns),
        Due::Sleep(party) => complete(party, &Outcome::plain(Status::Ok)),
        Due::ConsoleLook => object::console::look(),
    }
}
