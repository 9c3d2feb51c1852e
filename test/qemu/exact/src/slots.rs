//! Every slot that a process holds has a name in its CapSet, and every name is one of its manifest.

use abi_types::Status;
use capos_rt::caller::call;
use capos_rt::io::status_of;
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use test_bare::program::{Program, nameless_slots};
use test_kit::{Outcome, T, check_eq, require_ok};

use crate::peer::SLOTS;

/// The names of this program's grants in `exact.capnp`, in that order.
const NAMES: [&str; 24] = [
    "console",
    "records",
    "timer",
    "info",
    "spawner",
    "control",
    "park",
    "own",
    "self",
    "other",
    "other-self",
    "peer",
    "seven",
    "wide",
    "spinner0",
    "spinner1",
    "spinner2",
    "secret",
    "maker0",
    "maker1",
    "maker2",
    "maker3",
    "maker4",
    "maker5",
];

/// The process holds what its manifest grants and nothing more; the peers look at themselves.
pub fn every_slot_has_a_name(t: &mut T<'_, Program>) -> Outcome {
    let caps = t.env.env.caps;
    check_eq!(t, caps.iter().count(), NAMES.len());
    for ((found, _), expected) in caps.iter().zip(NAMES) {
        check_eq!(t, found, expected);
    }
    check_eq!(t, nameless_slots(t.env.env), 0);
    for name in ["peer", "spinner0", "spinner1", "spinner2", "secret"] {
        let facet = require_ok!(t, t.env.env.cap(name, plain_schema::plain::INTERFACE_ID));
        let mut words = [0; 16];
        let cqe = require_ok!(t, t.env.io().run(call(facet, PLAIN, SLOTS, 0), &[], &mut words));
        check_eq!(t, status_of(&cqe), Status::Ok);
        // Names, and slots without one.
        let names = if name == "peer" { 2 } else { 3 };
        check_eq!(t, words[..2], [names, 0]);
    }
    Ok(())
}
