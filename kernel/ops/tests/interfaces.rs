//! A call names the interface it means: what is refused, on both paths, and that nothing happens then.

use abi_types::{CapSlot, InterfaceTag, Opcode, Sqe, Status};
use kernel_ops::machine::Defect;
use schema::endpoint::{LoadResults, MintFacetParams, MintFacetResults, methods};
use schema::{INTERFACES, thread_control, timer};
use schema_wire::{Message, Method};
use std::panic::{AssertUnwindSafe, catch_unwind};
use test_machine::{Config, Done, Grant, HostObject, PLAIN, Process, User, run};
use zerocopy::IntoBytes;

/// The last method of a history: the server ends with it.
const LAST: u16 = 9;

/// A server that gets `expected` calls before the last one, whatever its clients try.
fn server(expected: u32) -> Process {
    Process::new("server", move |mut user| {
        let cap = user.cap("endpoint").to_bits();
        let mut received = 0;
        loop {
            let done = user.call(Sqe { opcode: Opcode::Recv as u8, cap, ..Sqe::default() });
            assert_eq!(done.status(), Status::Ok);
            let answer =
                Sqe { opcode: Opcode::Return as u8, arg: done.cqe.token, ..Sqe::default() };
            assert_eq!(user.call(answer).status(), Status::Ok);
            if done.cqe.method == LAST {
                assert_eq!(received, expected, "calls that the server got");
                return;
            }
            received += 1;
        }
    })
    .with("endpoint", Grant::Endpoint)
}

/// Lets the server come to wait, so that the fast path would find it.
fn rest(user: &mut User) {
    for _ in 0..4 {
        user.compute_a_slice();
    }
}

fn config(fast_path: bool, defect: Option<Defect>) -> Config {
    Config { fast_path, defect, ..Config::default() }
}

fn end_well(config: Config, processes: Vec<Process>) {
    let report = run(config, processes, vec![]);
    assert!(report.ends.iter().all(|(_, code)| *code == 0), "{:?}", report.ends);
}

/// Tags that are not `right`: none, one bit off each, and every interface of the kernel's.
fn wrong(right: InterfaceTag) -> Vec<u32> {
    let kernels = INTERFACES.iter().filter_map(|one| InterfaceTag::of(one.id));
    let near = (0..32).map(|bit| right.to_bits() ^ 1 << bit);
    let all = [0, u32::MAX].into_iter().chain(kernels.map(InterfaceTag::to_bits)).chain(near);
    all.filter(|tag| *tag != right.to_bits()).collect()
}

fn endpoint_history(fast_path: bool, defect: Option<Defect>) {
    let client = Process::new("client", |mut user| {
        let service = user.cap("service");
        for interface in wrong(PLAIN) {
            rest(&mut user);
            let call = Sqe { interface, ..User::calling(service, 0, 8) };
            assert_eq!(user.call(call).status(), Status::WrongInterface, "{interface:#x}");
        }
        rest(&mut user);
        assert_eq!(user.call(User::calling(service, 0, 8)).status(), Status::Ok);
        assert_eq!(user.call(User::calling(service, LAST, 0)).status(), Status::Ok);
    })
    .with("service", Grant::Client(0, 0, 77));
    end_well(config(fast_path, defect), vec![server(1), client]);
}

#[test]
fn an_endpoint_gets_the_calls_that_mean_its_interface_and_no_other() {
    endpoint_history(true, None);
    endpoint_history(false, None);
}

#[test]
fn a_fast_path_that_does_not_ask_is_found() {
    let planted = AssertUnwindSafe(|| endpoint_history(true, Some(Defect::AnyInterface)));
    assert!(catch_unwind(planted).is_err());
}

#[test]
fn an_object_of_the_kernels_serves_the_calls_that_mean_it() {
    let main = |mut user: User| {
        let objects = [
            ("timer", HostObject::Timer.interface()),
            ("control", HostObject::ThreadControl.interface()),
            ("threads", HostObject::ThreadSpawner.interface()),
            ("park", schema::park_space::INTERFACE_TAG),
            ("endpoint", schema::endpoint::INTERFACE_TAG),
        ];
        for (name, right) in objects {
            let slot = user.cap(name);
            for (interface, method) in wrong(right).into_iter().flat_map(|tag| [(tag, 0), (tag, 1)])
            {
                let call = Sqe { interface, ..User::calling(slot, method, 0) };
                let got = user.call(call).status();
                assert_eq!(got, Status::WrongInterface, "{name} as {interface:#x}");
            }
        }
        // What a ThreadControl would have ended with, asked of a Timer; and the other way round.
        let timer = user.cap("timer");
        let control = user.cap("control");
        let exit = user.typed::<thread_control::methods::ExitThread>(timer, 0, &exit_params());
        assert_eq!(user.call(exit).status(), Status::WrongInterface);
        let sleep = user.typed::<timer::methods::Sleep>(control, 0, &timer::SleepParams { ns: 5 });
        assert_eq!(user.call(sleep).status(), Status::WrongInterface);
        assert_eq!(load(&mut user).in_flight, 0);
        let now = user.call(User::calling_of::<timer::methods::Now>(timer));
        assert_eq!(now.status(), Status::Ok);
    };
    let main = Process::new("main", main).with("endpoint", Grant::Endpoint);
    end_well(Config::default(), vec![main]);
}

fn exit_params() -> thread_control::ExitThreadParams {
    thread_control::ExitThreadParams { code: 3 }
}

fn load(user: &mut User) -> LoadResults {
    let endpoint = user.cap("endpoint");
    let done = user.call(User::calling_of::<methods::Load>(endpoint));
    results(&done, |message| message.get().unwrap())
}

fn results<R>(done: &Done, read: impl FnOnce(&Message<'_>) -> R) -> R {
    assert_eq!(done.status(), Status::Ok);
    let bytes = &done.words.as_bytes()[..done.cqe.length as usize];
    read(&Message::new(bytes).unwrap())
}

fn mint(user: &mut User, badge: u64, interface_id: u64) -> CapSlot {
    let endpoint = user.cap("endpoint");
    let params = MintFacetParams { badge, interface_id };
    let mint = user.typed::<methods::MintFacet>(endpoint, 0, &params);
    let done = user.call(mint);
    let facet: MintFacetResults = results(&done, |message| message.get().unwrap());
    CapSlot::new(u32::from(facet.facet_index), facet.facet_generation)
}

/// Whether a call that means `interface` is taken; the caller serves itself.
fn is_taken(user: &mut User, facet: CapSlot, interface: InterfaceTag) -> bool {
    let call = Sqe { user_data: 5, ..User::calling_a(interface, facet, 0, 0) };
    assert!(user.submit(call));
    user.enter(0, 0);
    if let Some(done) = user.take() {
        assert_eq!(done.status(), Status::WrongInterface);
        assert_eq!(load(user).queued, 0, "a call that was refused waits");
        return false;
    }
    assert_eq!(load(user).queued, 1);
    let cancel = Sqe { opcode: Opcode::Cancel as u8, arg: 5, ..Sqe::default() };
    assert!(user.submit(cancel));
    user.enter(2, 0);
    assert_eq!(user.take().map(|done| done.cqe.user_data), Some(5));
    assert_eq!(user.take().map(|done| done.status()), Some(Status::Ok));
    true
}

#[test]
fn a_minted_facet_is_of_the_endpoints_interface_or_of_the_one_it_was_minted_for() {
    let main = |mut user: User| {
        let inherits = mint(&mut user, 1, 0);
        let other = mint(&mut user, 2, timer::INTERFACE_ID);
        let of_timer = <timer::methods::Now as Method>::INTERFACE;
        for (facet, tag, expected) in [
            (inherits, PLAIN, true),
            (inherits, of_timer, false),
            (other, PLAIN, false),
            (other, of_timer, true),
        ] {
            assert_eq!(is_taken(&mut user, facet, tag), expected, "{facet:?} as {tag:?}");
        }
    };
    let main = Process::new("main", main).with("endpoint", Grant::Endpoint);
    end_well(Config::default(), vec![main]);
}

#[test]
fn a_capability_that_is_a_result_has_its_interface() {
    let main = |mut user: User| {
        let handle = user.spawn(0, 0).unwrap();
        let as_timer = User::calling_of::<timer::methods::Now>(handle);
        assert_eq!(user.call(as_timer).status(), Status::WrongInterface);
        let join = user.joining(handle);
        assert_eq!(user.call(join).status(), Status::Ok);
    };
    let body: test_machine::Body = std::sync::Arc::new(|_: User| {});
    let report = run(Config::default(), vec![Process::new("main", main)], vec![body]);
    assert!(report.ends.iter().all(|(_, code)| *code == 0), "{:?}", report.ends);
}
