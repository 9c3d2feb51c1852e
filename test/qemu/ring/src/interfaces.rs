//! A call names the interface it means; a slot of another one refuses it, and nothing happens.

use abi_types::{CapSlot, InterfaceTag, Sqe, Status};
use schema::endpoint::{
    MintFacetParams, MintFacetResults, RevokeFacetsParams, RevokeFacetsResults,
};
use schema::{INTERFACES, console, endpoint, park_space, system_info, timer};
use test_kit::{Outcome, T};
use test_ring::{Raw, plain, raw, sqe};

use crate::Bench;

/// A sleep that a test does not live to see the end of.
const AN_HOUR_NS: u64 = 3_600_000_000_000;

/// Calls `slot` as each interface but its own, and as none.
fn refuses_others(ring: &mut Raw<'_>, slot: CapSlot, own: InterfaceTag, call: Sqe) {
    let kernels = INTERFACES.iter().filter_map(|one| InterfaceTag::of(one.id));
    let kernels = kernels.chain([plain::INTERFACE_TAG]).map(InterfaceTag::to_bits);
    let near = [own.to_bits() ^ 1, own.to_bits() ^ 1 << 31, 0, u32::MAX];
    for interface in kernels.chain(near).filter(|tag| *tag != own.to_bits()) {
        let odd = Sqe { cap: slot.to_bits(), interface, ..call };
        ring.ends(sqe::named(odd, 0x7a6), Status::WrongInterface, "a call as something else");
    }
}

pub fn of_kernel_objects(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, console, timer, info, park, own, .. } = *t.env;
    raw(t, &env.io, |ring| {
        // Whatever one of them did with it would be seen: a sleep, a facet.
        let sleep = ring.put_params(0, &timer::SleepParams { ns: AN_HOUR_NS });
        for (slot, tag) in [
            (console, console::INTERFACE_TAG),
            (info, system_info::INTERFACE_TAG),
            (park, park_space::INTERFACE_TAG),
            (timer, timer::INTERFACE_TAG),
            (own, endpoint::INTERFACE_TAG),
        ] {
            refuses_others(ring, slot, tag, sqe::call_timer(timer, 1, 0, sleep));
        }
        let mint = ring.put_params(0, &MintFacetParams { badge: 0xbad, interface_id: 0 });
        refuses_others(ring, own, endpoint::INTERFACE_TAG, sqe::call_endpoint(own, 0, 0, mint));
        let revoke = ring.put_params(0, &RevokeFacetsParams { badge: 0xbad });
        let got = ring.ends(sqe::call_endpoint(own, 1, 0, revoke), Status::Ok, "revoke");
        let revoked = got.results().map(|found: RevokeFacetsResults| found.revoked);
        ring.eq(revoked, Some(0), "a call that was refused made a facet");
        ring.ends(sqe::call_timer(timer, 0, 0, 0), Status::Ok, "the right one");
    })
}

pub fn of_facets(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, first, .. } = *t.env;
    raw(t, &env.io, |ring| {
        refuses_others(ring, first, plain::INTERFACE_TAG, sqe::call(first, 0, 0, 0));
        // A receiver that waits gets none of them either.
        ring.push(sqe::named(sqe::recv(own), 1));
        ring.dispatch();
        refuses_others(ring, first, plain::INTERFACE_TAG, sqe::call(first, 0, 0, 0));
        ring.push(sqe::named(sqe::call(first, 5, 0, 0), 2));
        ring.dispatch();
        let got = ring.expect(1, Status::Ok, "the call");
        ring.eq(got.cqe.method, 5, "its method");
        ring.push(sqe::named(sqe::answer(got.cqe.token, 0, 0), 3));
        ring.dispatch();
        ring.expect(2, Status::Ok, "the answer");
        ring.expect(3, Status::Ok, "RETURN");
    })
}

pub fn of_minted_facets(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, .. } = *t.env;
    raw(t, &env.io, |ring| {
        for (interface_id, tag) in
            [(0, plain::INTERFACE_TAG), (timer::INTERFACE_ID, timer::INTERFACE_TAG)]
        {
            let length = ring.put_params(0, &MintFacetParams { badge: 70, interface_id });
            let got = ring.ends(sqe::call_endpoint(own, 0, 0, length), Status::Ok, "mint");
            let Some(MintFacetResults { facet_index, facet_generation }) = got.results() else {
                return ring.fail(format_args!("a mint without results"));
            };
            let facet = CapSlot::new(u32::from(facet_index), facet_generation);
            refuses_others(ring, facet, tag, sqe::call(facet, 0, 0, 0));
            ring.push(sqe::named(sqe::call_a(tag, facet, 0, 0, 0), 1));
            ring.dispatch();
            let call = ring.ends(sqe::named(sqe::recv(own), 2), Status::Ok, "as what it is");
            ring.push(sqe::named(sqe::answer(call.cqe.token, 0, 0), 3));
            ring.dispatch();
            ring.expect(1, Status::Ok, "the answer");
            ring.expect(3, Status::Ok, "RETURN");
            ring.ends(sqe::release(facet), Status::Ok, "RELEASE");
        }
        let halves = ring.put_params(0, &MintFacetParams { badge: 70, interface_id: 5 << 32 | 5 });
        ring.ends(sqe::call_endpoint(own, 0, 0, halves), Status::Exception, "an id without a tag");
        let revoke = ring.put_params(0, &RevokeFacetsParams { badge: 70 });
        ring.ends(sqe::call_endpoint(own, 1, 0, revoke), Status::Ok, "revoke");
    })
}
