//! Calls on objects of the kernel's and their refusals, on a machine of host threads: where parameters and
//! results may be, what is undone, and what runs out.

use abi_types::{CapSlot, CqeFlags, NEVER, Opcode, Sqe, SqeFlags, Status};
use core_ledger::Line;
use kernel_ops::machine::{Defect, Space};
use schema::endpoint::{
    LoadResults, MintFacetParams, MintFacetResults, RevokeFacetsParams, RevokeFacetsResults,
    methods,
};
use schema_wire::{Encode, Exception, ExceptionKind, Message, Method};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use test_machine::{Config, Done, Grant, Process, Report, User, run};
use zerocopy::IntoBytes;

const PAGE: u64 = 0x10_0000;
const PAGE_BYTES: u64 = 4096;

fn sqe(opcode: Opcode) -> Sqe {
    Sqe { opcode: opcode as u8, ..Sqe::default() }
}

fn assert_all_ended_well(report: &Report) {
    assert!(report.ends.iter().all(|(_, code)| *code == 0), "{:?}", report.ends);
}

/// A process that serves an endpoint, by itself.
fn server(config: Config, main: impl Fn(User) + Send + Sync + 'static) -> Report {
    let server = Process::new("server", main).with("endpoint", Grant::Endpoint);
    let report = run(config, vec![server], vec![]);
    assert_all_ended_well(&report);
    report
}

fn load(user: &User) -> Sqe {
    User::calling(user.cap("endpoint"), methods::Load::ORDINAL, 0)
}

fn mint(user: &mut User, badge: u64) -> Done {
    let endpoint = user.cap("endpoint");
    let params = MintFacetParams { badge, interface_id: 1 };
    let mint = user.typed(endpoint, methods::MintFacet::ORDINAL, 0, &params);
    user.call(mint)
}

/// How many facets with a badge there were.
fn revoke(user: &mut User, badge: u64) -> u32 {
    let endpoint = user.cap("endpoint");
    let params = RevokeFacetsParams { badge };
    let revoke = user.typed(endpoint, methods::RevokeFacets::ORDINAL, 0, &params);
    let done = user.call(revoke);
    assert_eq!(done.status(), Status::Ok);
    let bytes = &done.words.as_bytes()[..done.cqe.length as usize];
    Message::new(bytes).unwrap().get::<RevokeFacetsResults>().unwrap().revoked
}

fn facet(done: &Done) -> CapSlot {
    let bytes = &done.words.as_bytes()[..done.cqe.length as usize];
    let facet: MintFacetResults = Message::new(bytes).unwrap().get().unwrap();
    CapSlot::new(u32::from(facet.facet_index), facet.facet_generation)
}

#[test]
fn results_go_to_the_address_that_the_caller_gives() {
    server(Config::default(), |mut user| {
        user.space().map(PAGE, 1, true);
        let there = Sqe {
            flags: SqeFlags::RESULT_BY_ADDRESS,
            result_address: PAGE + 40,
            result_capacity: 200,
            ..load(&user)
        };
        let done = user.call(there);
        assert_eq!((done.status(), done.cqe.flags), (Status::Ok, CqeFlags::BY_ADDRESS));
        let mut bytes = [0_u64; 8];
        let bytes = &mut bytes.as_mut_bytes()[..done.cqe.length as usize];
        user.space().copy_in(bytes, PAGE + 40).unwrap();
        let load: LoadResults = Message::new(bytes).unwrap().get().unwrap();
        let empty = LoadResults { queued: 0, queue_limit: 4, in_flight: 0, in_flight_limit: 4 };
        assert_eq!(load, empty);
        let nowhere = Sqe { result_address: 0x900_0000, ..there };
        assert_eq!(user.call(nowhere).status(), Status::BadAddress);
        let small = Sqe { result_capacity: 8, ..there };
        assert_eq!(user.call(small).status(), Status::ResultTooLarge);
    });
}

#[test]
fn parameters_of_many_pages_are_read_once_and_all_of_them() {
    const PAGES: u64 = 6;
    server(Config::default(), |mut user| {
        user.space().map(PAGE, PAGES, true);
        let mut words = [0_u64; 8];
        let params = MintFacetParams { badge: 6, interface_id: 1 };
        let length = params.encode(words.as_mut_bytes()).unwrap();
        user.space().copy_out(PAGE, &words.as_bytes()[..length]).unwrap();
        let endpoint = user.cap("endpoint");
        // What follows the message in its segment belongs to nobody.
        let call = Sqe {
            flags: SqeFlags::BY_ADDRESS,
            address: PAGE,
            ..User::calling(endpoint, methods::MintFacet::ORDINAL, (PAGES * PAGE_BYTES) as u32)
        };
        assert_eq!(user.call(call).status(), Status::Ok);
        assert_eq!(revoke(&mut user, 6), 1, "the badge is in the first of the pages");
        user.space().unmap(PAGE + (PAGES - 1) * PAGE_BYTES);
        assert_eq!(user.call(call).status(), Status::BadAddress);
        assert_eq!(revoke(&mut user, 6), 0, "a call that was refused had an effect");
    });
}

#[test]
fn a_call_without_memory_for_its_parameters_or_results_is_refused() {
    let program = |refused: Arc<AtomicU32>| {
        move |mut user: User| {
            user.space().map(PAGE, 2, true);
            let call = Sqe {
                flags: SqeFlags::BY_ADDRESS | SqeFlags::RESULT_BY_ADDRESS,
                address: PAGE,
                length: 400,
                result_address: PAGE + PAGE_BYTES,
                result_capacity: 400,
                ..load(&user)
            };
            for _ in 0..2 {
                match user.call(call).status() {
                    Status::Ok => {}
                    status => {
                        assert_eq!(status, Status::OutOfMemory);
                        refused.fetch_add(1, SeqCst);
                    }
                }
            }
        }
    };
    let refused = Arc::new(AtomicU32::new(0));
    let all = server(Config::default(), program(refused.clone())).allocations;
    assert_eq!((all, refused.load(SeqCst)), (4, 0), "a buffer each way, twice");
    for at in 0..all {
        let config = Config { out_of_memory_at: Some(at), ..Config::default() };
        server(config, program(refused.clone()));
    }
    assert_eq!(refused.load(SeqCst), all as u32);
}

/// A process that may use 64 KiB of the kernel's memory, and sends 60 KiB in one message.
fn large_message(defect: Option<Defect>) -> Report {
    const PAGES: u64 = 15;
    let main = |mut user: User| {
        user.space().map(PAGE, PAGES, true);
        let large = |pages: u64| Sqe {
            flags: SqeFlags::BY_ADDRESS,
            address: PAGE,
            length: (pages * PAGE_BYTES) as u32,
            ..load(&user)
        };
        let (all, half) = (large(PAGES), large(PAGES / 2));
        for _ in 0..3 {
            let refused = user.call(all);
            assert_eq!(refused.status(), Status::Exception);
            let bytes = &refused.words.as_bytes()[..refused.cqe.length as usize];
            let said = Exception::decode(bytes).unwrap();
            assert_eq!(said.kind(), ExceptionKind::Overloaded);
            assert_eq!(said.message(), Line::KernelBytes.exhausted());
            assert_eq!(user.call(half).status(), Status::Ok);
        }
    };
    let mut process = Process::new("server", main).with("endpoint", Grant::Endpoint);
    process.profile.kernel_bytes = 1 << 16;
    run(Config { defect, ..Config::default() }, vec![process], vec![])
}

#[test]
fn a_message_is_charged_while_the_kernel_has_it() {
    assert_all_ended_well(&large_message(None));
    let planted = AssertUnwindSafe(|| large_message(Some(Defect::MessageChargeKept)));
    assert!(catch_unwind(planted).is_err(), "a charge that is kept is not noticed");
}

#[test]
fn facets_that_found_no_slot_were_never_made() {
    let main = |mut user: User| {
        let mut made = Vec::new();
        let refused = loop {
            let done = mint(&mut user, 5);
            if done.status() != Status::Ok {
                break done;
            }
            made.push(facet(&done));
        };
        assert_eq!(refused.status(), Status::Exception);
        assert!(made.len() > 1, "the table was to have room for some");
        assert_eq!(mint(&mut user, 8).status(), Status::Exception);
        assert_eq!(revoke(&mut user, 8), 0, "the only facet of its badge");
        assert_eq!(revoke(&mut user, 5), made.len() as u32, "one of many of its badge");
        for facet in made {
            assert_eq!(user.call(User::calling(facet, 0, 0)).status(), Status::Disconnected);
        }
    };
    let mut process = Process::new("server", main).with("endpoint", Grant::Endpoint);
    process.profile.cap_slots = 8;
    assert_all_ended_well(&run(Config::default(), vec![process], vec![]));
}

#[test]
fn capabilities_do_not_travel_with_messages() {
    for fast_path in [true, false] {
        let server = |mut user: User| {
            user.space().map(PAGE, 1, true);
            let endpoint = user.cap("endpoint").to_bits();
            let done = user.call(Sqe { cap: endpoint, ..sqe(Opcode::Recv) });
            assert_eq!((done.status(), done.words[0]), (Status::Ok, 3));
            let answer = Sqe { arg: done.cqe.token, ..sqe(Opcode::Return) };
            let (flags, address) = (SqeFlags::BY_ADDRESS, PAGE);
            let laden = Sqe { flags, address, transfers: 1, length: 8, ..answer };
            assert_eq!(user.call(laden).status(), Status::Unimplemented);
            assert_eq!(user.call(answer).status(), Status::Ok);
            let laden = Sqe { flags, address, transfers: 1, ..load(&user) };
            assert_eq!(user.call(laden).status(), Status::InvalidArgument);
        };
        let client = |mut user: User| {
            user.space().map(PAGE, 1, true);
            let service = user.cap("service");
            let (flags, address) = (SqeFlags::BY_ADDRESS, PAGE);
            let laden = Sqe { flags, address, transfers: 1, ..User::calling(service, 0, 8) };
            assert_eq!(user.call(laden).status(), Status::Unimplemented);
            user.write(0, &[3]);
            assert_eq!(user.call(User::calling(service, 0, 8)).status(), Status::Ok);
        };
        let processes = vec![
            Process::new("server", server).with("endpoint", Grant::Endpoint),
            Process::new("client", client).with("service", Grant::Client(0, 0, 1)),
        ];
        let config = Config { fast_path, ..Config::default() };
        assert_all_ended_well(&run(config, processes, vec![]));
    }
}

#[test]
fn an_answer_that_is_refused_receives_nothing() {
    for fast_path in [true, false] {
        let server = |mut user: User| {
            let endpoint = user.cap("endpoint").to_bits();
            let done = user.call(Sqe { cap: endpoint, ..sqe(Opcode::Recv) });
            let (arg, flags) = (done.cqe.token, SqeFlags::THEN_RECV);
            let answer = Sqe { cap: endpoint, arg, flags, ..sqe(Opcode::Return) };
            let elsewhere = Sqe { cap: user.cap("timer").to_bits(), ..answer };
            assert_eq!(user.call(elsewhere).status(), Status::Unimplemented);
            let stale = Sqe { arg: arg ^ 1 << 40, ..answer };
            assert_eq!(user.call(stale).status(), Status::NotFound);
            assert_eq!(user.call(answer).status(), Status::Ok, "the second call");
        };
        let client = |mut user: User| {
            let service = user.cap("service");
            assert_eq!(user.call(User::calling(service, 0, 0)).status(), Status::Ok);
            assert_eq!(user.call(User::calling(service, 0, 0)).status(), Status::Disconnected);
        };
        let processes = vec![
            Process::new("server", server).with("endpoint", Grant::Endpoint),
            Process::new("client", client).with("service", Grant::Client(0, 0, 1)),
        ];
        let config = Config { fast_path, ..Config::default() };
        assert_all_ended_well(&run(config, processes, vec![]));
    }
}

#[test]
fn everyone_who_waits_at_a_closed_endpoint_is_told() {
    const CALLS: u64 = 40;
    let has_called = Arc::new(AtomicU32::new(0));
    let called = has_called.clone();
    let told = Arc::new(AtomicU32::new(0));
    let all_told = told.clone();
    let server = move |mut user: User| {
        while called.load(SeqCst) == 0 {
            user.compute_a_slice();
        }
        let done = user.call(load(&user));
        let bytes = &done.words.as_bytes()[..done.cqe.length as usize];
        let load: LoadResults = Message::new(bytes).unwrap().get().unwrap();
        assert_eq!((u64::from(load.queued), load.in_flight), (CALLS, 0));
        let release = Sqe { cap: user.cap("endpoint").to_bits(), ..sqe(Opcode::Release) };
        assert_eq!(user.call(release).status(), Status::Ok);
        // Its own end would tell those that the release forgot.
        for _ in 0..100 {
            user.compute_a_slice();
        }
        assert_eq!(u64::from(all_told.load(SeqCst)), CALLS, "some wait at a closed endpoint");
    };
    let client = move |mut user: User| {
        let service = user.cap("service");
        for user_data in 0..CALLS {
            assert!(user.submit(Sqe { user_data, ..User::calling(service, 0, 0) }));
        }
        user.enter(0, 0);
        has_called.store(1, SeqCst);
        for user_data in 0..CALLS {
            while user.enter(1, NEVER).count() == 0 {}
            let done = user.take().unwrap();
            assert_eq!((done.cqe.user_data, done.status()), (user_data, Status::Disconnected));
            told.fetch_add(1, SeqCst);
        }
    };
    let mut server = Process::new("server", server).with("endpoint", Grant::Endpoint);
    server.profile.endpoint_queue_limit = CALLS as u32;
    let mut client = Process::new("client", client).with("service", Grant::Client(0, 0, 1));
    client.profile.ring_entries = 64;
    assert_all_ended_well(&run(Config::default(), vec![server, client], vec![]));
}
