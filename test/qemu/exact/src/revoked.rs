//! A facet that was revoked: nothing comes through it, whichever path a call takes.

use abi_types::{CapSlot, Status};
use capos_rt::caller::call;
use capos_rt::io::status_of;
use test_bare::program::Program;
use test_kit::{Outcome, T, check_eq, require_ok};

use crate::peer::{ECHO, REVOKE};

/// A call with one inline word: status and first word of the answer. The peer waits, so this is what the
/// fast path is for.
fn ask(program: &Program, facet: CapSlot, method: u16, word: u64) -> (Status, u64) {
    let mut words = [0; 16];
    match program.io().run(call(facet, method, 8), &[word], &mut words) {
        Ok(cqe) => (status_of(&cqe), words[0]),
        Err(status) => (status, 0),
    }
}

pub fn revoked_facet(t: &mut T<'_, Program>) -> Outcome {
    let peer = require_ok!(t, t.env.env.cap("peer", 0));
    let seven = require_ok!(t, t.env.env.cap("seven", 0));
    for word in 1..4 {
        check_eq!(t, ask(t.env, seven, ECHO, word), (Status::Ok, word));
    }
    check_eq!(t, ask(t.env, peer, REVOKE, 7), (Status::Ok, 1));
    for word in 4..8 {
        check_eq!(t, ask(t.env, seven, ECHO, word).0, Status::Disconnected);
        // Through another facet of the same endpoint everything is as it was.
        check_eq!(t, ask(t.env, peer, ECHO, word), (Status::Ok, word));
    }
    check_eq!(t, ask(t.env, peer, REVOKE, 7), (Status::Ok, 0));
    Ok(())
}
