//! Facets: whose badge comes through, and that nothing does once they were revoked, whichever path a call
//! takes.

use abi_types::{CapSlot, Sqe, Status};
use capos_rt::caller::call;
use capos_rt::io::status_of;
use capos_rt::now_ns;
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use schema::endpoint;
use test_bare::program::Program;
use test_kit::{Outcome, T, check_eq, require_ok};

use crate::peer::{BADGE, ECHO, REVOKE};

/// A call with one inline word: status and first word of the answer. The peer waits, so this is what the
/// fast path is for.
fn ask(program: &Program, facet: CapSlot, method: u16, word: u64) -> (Status, u64) {
    let mut words = [0; 16];
    match program.io().run(call(facet, PLAIN, method, 8), &[word], &mut words) {
        Ok(cqe) => (status_of(&cqe), words[0]),
        Err(status) => (status, 0),
    }
}

/// A call arrives with the badge of its facet, all of it.
pub fn badges(t: &mut T<'_, Program>) -> Outcome {
    for (name, badge) in [("peer", 1), ("seven", 7), ("wide", 0xfedc_ba98_7654_3210)] {
        let facet = require_ok!(t, t.env.env.cap(name, plain_schema::plain::INTERFACE_ID));
        check_eq!(t, ask(t.env, facet, BADGE, 0), (Status::Ok, badge));
        // A deadline is not for the fast path.
        let sqe = Sqe { arg: now_ns() + 1_000_000_000, ..call(facet, PLAIN, BADGE, 0) };
        let mut words = [0; 16];
        let cqe = require_ok!(t, t.env.io().run(sqe, &[], &mut words));
        check_eq!(t, (status_of(&cqe), words[0]), (Status::Ok, badge));
    }
    Ok(())
}

pub fn revoked_facet(t: &mut T<'_, Program>) -> Outcome {
    let peer = require_ok!(t, t.env.env.cap("peer", plain_schema::plain::INTERFACE_ID));
    let seven = require_ok!(t, t.env.env.cap("seven", plain_schema::plain::INTERFACE_ID));
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

/// How a call ends that nobody receives, at its deadline or before.
fn in_vain(program: &Program, facet: CapSlot) -> Result<Status, Status> {
    let sqe = Sqe { arg: now_ns() + 50_000, ..call(facet, PLAIN, 0, 0) };
    program.io().run(sqe, &[], &mut [0; 16]).map(|cqe| status_of(&cqe))
}

/// Two endpoints of one process have facets of the same badge: one endpoint's are revoked.
pub fn revoked_at_one_endpoint(t: &mut T<'_, Program>) -> Outcome {
    let other = require_ok!(t, t.env.env.cap("other", endpoint::INTERFACE_ID));
    let own_facet = require_ok!(t, t.env.env.cap("self", plain_schema::plain::INTERFACE_ID));
    let other_facet =
        require_ok!(t, t.env.env.cap("other-self", plain_schema::plain::INTERFACE_ID));
    for facet in [own_facet, other_facet] {
        check_eq!(t, in_vain(t.env, facet), Ok(Status::DeadlineExpired));
    }
    let mut client = endpoint::Client::new(t.env.io().caller(), other);
    check_eq!(t, require_ok!(t, client.revoke_facets(3)).revoked, 1);
    check_eq!(t, in_vain(t.env, other_facet), Ok(Status::Disconnected));
    check_eq!(t, in_vain(t.env, own_facet), Ok(Status::DeadlineExpired));
    check_eq!(t, require_ok!(t, client.revoke_facets(3)).revoked, 0);
    Ok(())
}
