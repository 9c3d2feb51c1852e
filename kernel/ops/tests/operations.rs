//! What each operation does, on a machine of host threads: the kernel's own dispatcher, IPC, park and timers.

use abi_types::{CqeFlags, EnterFlags, NEVER, Opcode, ReplyToken, Sqe, SqeFlags, Status};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use test_machine::{Body, Config, Done, Grant, Process, Report, User, run};

const PAGE: u64 = 0x10_0000;

/// Runs on one CPU, with and without the fast path: the outcome is the same.
fn both_ways(processes: impl Fn() -> Vec<Process>) {
    for fast_path in [true, false] {
        let report = run(Config { fast_path, ..Config::default() }, processes(), vec![]);
        assert_all_ended_well(&report);
    }
}

fn alone(main: impl Fn(User) + Send + Sync + 'static) {
    assert_all_ended_well(&run(Config::default(), vec![Process::new("alone", main)], vec![]));
}

fn assert_all_ended_well(report: &Report) {
    assert!(report.ends.iter().all(|(_, code)| *code == 0), "{:?}", report.ends);
}

fn sqe(opcode: Opcode) -> Sqe {
    Sqe { opcode: opcode as u8, ..Sqe::default() }
}

fn receiving(user: &User) -> Sqe {
    Sqe { cap: user.cap("endpoint").to_bits(), user_data: 7, ..sqe(Opcode::Recv) }
}

fn returning(done: &Done, length: u32) -> Sqe {
    Sqe { arg: done.cqe.token, length, user_data: 8, ..sqe(Opcode::Return) }
}

/// A RETURN that receives the next call.
fn returning_then_receiving(user: &User, done: &Done, length: u32) -> Sqe {
    let cap = user.cap("endpoint").to_bits();
    Sqe { cap, flags: SqeFlags::THEN_RECV, ..returning(done, length) }
}

/// A server that answers each call with its words, one more each, until it is called with method 9.
fn echo(mut user: User) {
    let mut next = receiving(&user);
    loop {
        let done = user.call(next);
        assert_eq!(done.status(), Status::Ok);
        let words = done.words.map(|word| word + 1);
        user.write(0, &words);
        if done.cqe.method == 9 {
            let answer = returning(&done, done.cqe.length);
            assert_eq!(user.call(answer).status(), Status::Ok);
            return;
        }
        next = returning_then_receiving(&user, &done, done.cqe.length);
    }
}

fn client_and_server(client: impl Fn(User) + Send + Sync + 'static) -> Vec<Process> {
    vec![
        Process::new("server", echo).with("endpoint", Grant::Endpoint),
        Process::new("client", client).with("service", Grant::Client(0, 0, 77)),
    ]
}

#[test]
fn calls_are_answered_with_their_words_whichever_way_they_go() {
    both_ways(|| {
        client_and_server(|mut user| {
            let service = user.cap("service");
            for round in 0..20 {
                user.write(0, &[round, round * 3]);
                let method = if round == 19 { 9 } else { 1 };
                let done =
                    user.call(Sqe { user_data: round, ..User::calling(service, method, 16) });
                assert_eq!((done.status(), done.cqe.length), (Status::Ok, 16));
                assert_eq!(done.words[..2], [round + 1, round * 3 + 1]);
            }
        })
    });
}

#[test]
fn a_server_sees_method_badge_and_token() {
    both_ways(|| {
        vec![
            Process::new("server", |mut user| {
                let next = receiving(&user);
                let done = user.call(next);
                assert_eq!((done.cqe.method, done.cqe.badge, done.cqe.length), (5, 77, 8));
                assert_eq!(done.words[0], 123);
                let wrong = Sqe { arg: done.cqe.token ^ 1 << 40, ..returning(&done, 0) };
                assert_eq!(user.call(wrong).status(), Status::NotFound);
                let answer = Sqe { flags: SqeFlags::EXCEPTION, ..returning(&done, 0) };
                assert_eq!(user.call(answer).status(), Status::Ok);
                assert_eq!(user.call(answer).status(), Status::NotFound, "answered twice");
            })
            .with("endpoint", Grant::Endpoint),
            Process::new("client", |mut user| {
                let service = user.cap("service");
                user.write(0, &[123]);
                assert_eq!(user.call(User::calling(service, 5, 8)).status(), Status::Exception);
            })
            .with("service", Grant::Client(0, 0, 77)),
        ]
    });
}

#[test]
fn messages_by_address_are_copied_page_by_page() {
    both_ways(|| {
        vec![
            Process::new("server", |mut user| {
                user.space().map(PAGE, 8, true);
                let room = Sqe {
                    flags: SqeFlags::RESULT_BY_ADDRESS,
                    result_address: PAGE + 100,
                    result_capacity: 30_000,
                    ..receiving(&user)
                };
                let done = user.call(room);
                assert_eq!((done.status(), done.cqe.length), (Status::Ok, 20_000));
                assert_eq!(done.cqe.flags & CqeFlags::BY_ADDRESS, CqeFlags::BY_ADDRESS);
                let answer = Sqe {
                    flags: SqeFlags::BY_ADDRESS,
                    address: PAGE + 100,
                    ..returning(&done, 20_000)
                };
                let unmapped = Sqe { address: 0x900_0000, ..answer };
                assert_eq!(user.call(unmapped).status(), Status::BadAddress);
                let large = Sqe { length: 20_001, ..answer };
                assert_eq!(user.call(large).status(), Status::ResultTooLarge);
                assert_eq!(user.call(answer).status(), Status::Ok);
            })
            .with("endpoint", Grant::Endpoint),
            Process::new("client", |mut user| {
                use kernel_ops::machine::Space;
                user.space().map(PAGE, 16, true);
                let sent: Vec<u8> = (0..20_000_u32).map(|n| (n * 7) as u8).collect();
                for (n, part) in sent.chunks(4096).enumerate() {
                    user.space().copy_out(PAGE + n as u64 * 4096, part).unwrap();
                }
                let service = user.cap("service");
                let call = Sqe {
                    flags: SqeFlags::BY_ADDRESS | SqeFlags::RESULT_BY_ADDRESS,
                    address: PAGE,
                    result_address: PAGE + 8 * 4096,
                    result_capacity: 20_000,
                    ..User::calling(service, 0, 20_000)
                };
                let unmapped = Sqe { address: 0x900_0000, ..call };
                assert_eq!(user.call(unmapped).status(), Status::BadAddress);
                let done = user.call(call);
                assert_eq!((done.status(), done.cqe.length), (Status::Ok, 20_000));
                for (n, part) in sent.chunks(4096).enumerate() {
                    let mut back = vec![0; part.len()];
                    user.space().copy_in(&mut back, PAGE + (8 + n as u64) * 4096).unwrap();
                    assert_eq!(back, part);
                }
            })
            .with("service", Grant::Client(0, 0, 1)),
        ]
    });
}

#[test]
fn what_does_not_fit_the_receiver_is_the_callers_fault() {
    both_ways(|| {
        vec![
            Process::new("server", |mut user| {
                let next = receiving(&user);
                let done = user.call(next);
                assert_eq!(done.cqe.length, 8, "the call that was too large came through");
                assert_eq!(user.call(returning(&done, 0)).status(), Status::Ok);
            })
            .with("endpoint", Grant::Endpoint),
            Process::new("client", |mut user| {
                user.space().map(PAGE, 1, true);
                let service = user.cap("service");
                let large = Sqe {
                    flags: SqeFlags::BY_ADDRESS,
                    address: PAGE,
                    ..User::calling(service, 0, 4096)
                };
                assert_eq!(user.call(large).status(), Status::ParamsTooLarge);
                assert_eq!(user.call(User::calling(service, 0, 8)).status(), Status::Ok);
            })
            .with("service", Grant::Client(0, 0, 1)),
        ]
    });
}

#[test]
fn a_receiver_whose_memory_is_gone_loses_its_receive_and_the_call_waits_for_the_next() {
    both_ways(|| {
        vec![
            Process::new("server", |mut user| {
                let nowhere = Sqe {
                    flags: SqeFlags::RESULT_BY_ADDRESS,
                    result_address: PAGE,
                    result_capacity: 4096,
                    ..receiving(&user)
                };
                assert_eq!(user.call(nowhere).status(), Status::BadAddress);
                let next = receiving(&user);
                let done = user.call(next);
                assert_eq!((done.status(), done.words[0]), (Status::Ok, 5));
                assert_eq!(user.call(returning(&done, 0)).status(), Status::Ok);
            })
            .with("endpoint", Grant::Endpoint),
            Process::new("client", |mut user| {
                let service = user.cap("service");
                user.write(0, &[5]);
                assert_eq!(user.call(User::calling(service, 0, 8)).status(), Status::Ok);
            })
            .with("service", Grant::Client(0, 0, 1)),
        ]
    });
}

#[test]
fn a_full_queue_is_overloaded_and_the_rest_is_served_in_order() {
    both_ways(|| {
        let has_filled = Arc::new(AtomicU32::new(0));
        let filled = has_filled.clone();
        vec![
            Process::new("server", move |mut user| {
                while filled.load(SeqCst) == 0 {
                    user.compute_a_slice();
                }
                for expected in 0..4 {
                    let next = receiving(&user);
                    let done = user.call(next);
                    assert_eq!(done.words[0], expected, "out of order");
                    assert_eq!(user.call(returning(&done, 0)).status(), Status::Ok);
                }
            })
            .with("endpoint", Grant::Endpoint),
            Process::new("client", move |mut user| {
                let service = user.cap("service");
                for n in 0..5_u64 {
                    user.write(n as u16, &[n]);
                    let call =
                        Sqe { user_data: n, buffer: n as u16, ..User::calling(service, 0, 8) };
                    assert!(user.submit(call));
                }
                user.enter(0, 0);
                let refused = user.take().expect("one is refused");
                assert_eq!((refused.cqe.user_data, refused.status()), (4, Status::Overloaded));
                has_filled.store(1, SeqCst);
                for n in 0..4 {
                    while user.enter(1, NEVER).count() == 0 {}
                    let done = user.take().unwrap();
                    assert_eq!((done.cqe.user_data, done.status()), (n, Status::Ok));
                }
            })
            .with("service", Grant::Client(0, 0, 1)),
        ]
    });
}

#[test]
fn a_call_that_is_cancelled_or_late_is_not_served() {
    both_ways(|| {
        let is_done = Arc::new(AtomicU32::new(0));
        let done = is_done.clone();
        vec![
            Process::new("server", move |mut user| {
                while done.load(SeqCst) == 0 {
                    user.compute_a_slice();
                }
                let next = receiving(&user);
                assert!(user.submit(next));
                let nothing = user.enter(1, 1_000_000);
                assert_eq!(nothing.count(), 0, "a call that was given up is served");
                assert!(user.submit(Sqe { arg: 7, user_data: 3, ..sqe(Opcode::Cancel) }));
                user.enter(2, NEVER);
                let (a, b) = (user.take().unwrap(), user.take().unwrap());
                assert_eq!((a.cqe.user_data, a.status()), (7, Status::Cancelled));
                assert_eq!((b.cqe.user_data, b.status()), (3, Status::Ok));
                let again = Sqe { arg: 7, ..sqe(Opcode::Cancel) };
                assert_eq!(user.call(again).status(), Status::NotFound);
            })
            .with("endpoint", Grant::Endpoint),
            Process::new("client", move |mut user| {
                let service = user.cap("service");
                let late = Sqe { arg: 1, user_data: 1, ..User::calling(service, 0, 0) };
                assert_eq!(user.call(late).status(), Status::DeadlineExpired);
                let soon = user.machine().now() + 5_000_000;
                let bounded = Sqe { arg: soon, user_data: 2, ..User::calling(service, 0, 0) };
                assert_eq!(user.call(bounded).status(), Status::DeadlineExpired);
                assert!(user.machine().now() >= soon, "before its time");
                assert!(user.submit(Sqe { user_data: 4, ..User::calling(service, 0, 0) }));
                assert!(user.submit(Sqe { arg: 4, user_data: 5, ..sqe(Opcode::Cancel) }));
                user.enter(2, NEVER);
                assert_eq!(user.take().unwrap().status(), Status::Cancelled);
                assert_eq!(user.take().unwrap().status(), Status::Ok);
                is_done.store(1, SeqCst);
            })
            .with("service", Grant::Client(0, 0, 1)),
        ]
    });
}

#[test]
fn a_server_that_ends_disconnects_those_who_wait() {
    both_ways(|| {
        vec![
            Process::new("server", |mut user| {
                let next = receiving(&user);
                assert_eq!(user.call(next).status(), Status::Ok);
            })
            .with("endpoint", Grant::Endpoint),
            Process::new("served", |mut user| {
                let service = user.cap("service");
                assert_eq!(user.call(User::calling(service, 0, 0)).status(), Status::Disconnected);
                assert_eq!(user.call(User::calling(service, 0, 0)).status(), Status::Disconnected);
            })
            .with("service", Grant::Client(0, 0, 1)),
            Process::new("queued", |mut user| {
                let service = user.cap("service");
                assert_eq!(user.call(User::calling(service, 0, 0)).status(), Status::Disconnected);
            })
            .with("service", Grant::Client(0, 0, 2)),
        ]
    });
}

#[test]
fn a_released_endpoint_is_closed_and_a_released_slot_is_empty() {
    both_ways(|| {
        vec![
            Process::new("server", |mut user| {
                let endpoint = user.cap("endpoint").to_bits();
                let released = user.call(Sqe { cap: endpoint, ..sqe(Opcode::Release) });
                assert_eq!(released.status(), Status::Ok);
                let again = user.call(Sqe { cap: endpoint, ..sqe(Opcode::Release) });
                assert_eq!(again.status(), Status::Disconnected);
                let next = receiving(&user);
                assert_eq!(user.call(next).status(), Status::Disconnected);
            })
            .with("endpoint", Grant::Endpoint),
            Process::new("client", |mut user| {
                let service = user.cap("service");
                assert_eq!(user.call(User::calling(service, 0, 0)).status(), Status::Disconnected);
            })
            .with("service", Grant::Client(0, 0, 1)),
        ]
    });
}

#[test]
fn operations_on_objects_that_do_not_have_them_are_refused() {
    alone(|mut user| {
        let timer = user.cap("timer").to_bits();
        let park = user.cap("park").to_bits();
        for (wrong, status) in [
            (Sqe { cap: timer, ..sqe(Opcode::Recv) }, Status::Unimplemented),
            (Sqe { cap: timer, arg: PAGE, ..sqe(Opcode::Park) }, Status::Unimplemented),
            (Sqe { cap: park, ..sqe(Opcode::Call) }, Status::Unimplemented),
            (Sqe { cap: u64::MAX >> 1, ..sqe(Opcode::Call) }, Status::Disconnected),
            (Sqe { cap: 1 << 20, arg: PAGE, ..sqe(Opcode::Park) }, Status::Disconnected),
            (Sqe { cap: park, arg: PAGE, address: 1, ..sqe(Opcode::Unpark) }, Status::BadAddress),
            (Sqe { cap: park, arg: PAGE + 1, ..sqe(Opcode::Park) }, Status::BadAddress),
            (
                Sqe { cap: park, arg: PAGE, result_address: NEVER, ..sqe(Opcode::Park) },
                Status::BadAddress,
            ),
            (
                Sqe { arg: ReplyToken::from_bits(5).to_bits(), ..sqe(Opcode::Return) },
                Status::Disconnected,
            ),
            (Sqe { opcode: 200, ..Sqe::default() }, Status::UnsupportedOpcode),
            (Sqe { length: 1, ..sqe(Opcode::Nop) }, Status::InvalidArgument),
        ] {
            assert_eq!(user.call(wrong).status(), status, "{wrong:?}");
        }
        assert_eq!(user.call(sqe(Opcode::Nop)).status(), Status::Ok);
        assert_eq!(user.call(sqe(Opcode::Yield)).status(), Status::Ok);
    });
}

#[test]
fn sleeps_end_at_their_time_in_their_order_and_can_be_cancelled() {
    alone(|mut user| {
        let begun = user.machine().now();
        for (n, ns) in [(0_u16, 9_000_000), (1, 3_000_000), (2, 6_000_000)] {
            let sleep = Sqe { user_data: u64::from(n), ..user.sleeping(n, ns) };
            assert!(user.submit(sleep));
        }
        for (n, ns) in [(1, 3_000_000), (2, 6_000_000), (0, 9_000_000)] {
            while user.enter(1, NEVER).count() == 0 {}
            let done = user.take().unwrap();
            assert_eq!((done.cqe.user_data, done.status()), (n, Status::Ok));
            assert!(user.machine().now() >= begun + ns, "woken before its time");
        }
        let sleep = Sqe { user_data: 4, ..user.sleeping(0, 1 << 40) };
        assert!(user.submit(sleep));
        assert_eq!(user.enter(1, 500_000).count(), 0, "the time of cap_enter is up first");
        assert!(user.submit(Sqe { arg: 4, user_data: 5, ..sqe(Opcode::Cancel) }));
        user.enter(2, NEVER);
        assert_eq!(user.take().unwrap().status(), Status::Cancelled);
        assert_eq!(user.take().unwrap().status(), Status::Ok);
    });
}

#[test]
fn more_sleeps_than_the_profile_allows_are_refused_and_come_back() {
    alone(|mut user| {
        for n in 0..9_u64 {
            let sleep = Sqe { user_data: n, ..user.sleeping((n % 8) as u16, 1 << 30) };
            assert!(user.submit(sleep));
            user.enter(0, 0);
        }
        let refused = user.take().expect("the ninth");
        assert_eq!((refused.cqe.user_data, refused.status()), (8, Status::Exception));
        for n in 0..8_u64 {
            assert!(user.submit(Sqe { arg: n, user_data: 100, ..sqe(Opcode::Cancel) }));
        }
        while user.enter(16, NEVER).count() < 16 {}
        while user.take().is_some() {}
        let sleep = user.sleeping(0, 10);
        assert_eq!(user.call(sleep).status(), Status::Ok);
    });
}

/// As many as the ring takes: nobody else's are fewer for it, and each ends at its own time.
#[test]
fn every_operation_of_a_full_ring_has_a_timer() {
    const SLEEPS: u64 = 16;
    let main = |mut user: User| {
        for n in 0..SLEEPS {
            // The later ones end first.
            let sleep = Sqe { user_data: n, ..user.sleeping(0, (SLEEPS - n) * 10_000_000) };
            assert!(user.submit(sleep));
            user.enter(0, 0);
        }
        for n in (0..SLEEPS).rev() {
            let done = match user.take() {
                Some(done) => done,
                None => {
                    user.enter(1, NEVER);
                    user.take().expect("a sleep has ended")
                }
            };
            assert_eq!((done.cqe.user_data, done.status()), (n, Status::Ok));
        }
    };
    let full = || {
        let mut process = Process::new("full", main);
        process.profile.sleep_waiters = SLEEPS as u32;
        process
    };
    assert_all_ended_well(&run(Config::default(), vec![full(), full(), full()], vec![]));
}

fn parking(user: &User, expected: u64, timeout_ns: u64) -> Sqe {
    let cap = user.cap("park").to_bits();
    let (address, result_address) = (expected, timeout_ns);
    Sqe { cap, arg: PAGE, address, result_address, user_data: 11, ..sqe(Opcode::Park) }
}

fn unparking(user: &User, count: u64) -> Sqe {
    let cap = user.cap("park").to_bits();
    Sqe { cap, arg: PAGE, address: count, user_data: 12, ..sqe(Opcode::Unpark) }
}

#[test]
fn a_park_waits_only_for_the_word_it_expects_and_not_for_ever() {
    alone(|mut user| {
        user.space().map(PAGE, 1, true);
        user.space().store_u32(PAGE, 5);
        let other = parking(&user, 4, NEVER);
        assert_eq!(user.call(other).status(), Status::Mismatch);
        let begun = user.machine().now();
        let bounded = parking(&user, 5, 2_000_000);
        assert_eq!(user.call(bounded).status(), Status::TimedOut);
        assert!(user.machine().now() >= begun + 2_000_000, "before its time");
        let at_once = parking(&user, 5, 0);
        assert_eq!(user.call(at_once).status(), Status::TimedOut);
        let none = unparking(&user, 1);
        let done = user.call(none);
        assert_eq!((done.status(), done.cqe.length), (Status::Ok, 0));
        let for_ever = parking(&user, 5, NEVER);
        assert!(user.submit(for_ever));
        let second = Sqe { user_data: 13, ..for_ever };
        assert!(user.submit(second));
        user.enter(1, NEVER);
        let done = user.take().unwrap();
        assert_eq!((done.cqe.user_data, done.status()), (13, Status::Overloaded));
        assert!(user.submit(Sqe { arg: 11, user_data: 14, ..sqe(Opcode::Cancel) }));
        user.enter(2, NEVER);
        assert_eq!(user.take().unwrap().status(), Status::Cancelled);
        assert_eq!(user.take().unwrap().status(), Status::Ok);
    });
}

#[test]
fn unpark_wakes_as_many_as_it_says_in_their_order() {
    let woken = Arc::new(std::sync::Mutex::new(Vec::new()));
    let order = woken.clone();
    let waiter: Body = Arc::new(move |mut user: User| {
        let park = parking(&user, 0, NEVER);
        assert_eq!(user.call(park).status(), Status::Woken);
        order.lock().unwrap().push(user.argument);
    });
    let main = move |mut user: User| {
        user.space().map(PAGE, 1, true);
        let waiting: Vec<_> = (0..6).map(|n| user.spawn(0, n).unwrap()).collect();
        for _ in 0..20 {
            user.compute_a_slice();
        }
        let mut total = 0;
        for (count, expected) in [(1, 1), (2, 2), (99, 3), (1, 0)] {
            let unpark = unparking(&user, count);
            let done = user.call(unpark);
            assert_eq!((done.status(), u64::from(done.cqe.length)), (Status::Ok, expected));
            total += expected;
        }
        assert_eq!(total, 6);
        for handle in waiting {
            let join = user.joining(handle);
            assert_eq!(user.call(join).status(), Status::Ok);
        }
    };
    let report = run(Config::default(), vec![Process::new("park", main)], vec![waiter]);
    assert_all_ended_well(&report);
    assert_eq!(*woken.lock().unwrap(), (0..6).collect::<Vec<u64>>());
}

#[test]
fn a_full_completion_queue_takes_no_more_and_loses_nothing() {
    alone(|mut user| {
        for n in 0..16_u64 {
            assert!(user.submit(Sqe { user_data: n, ..sqe(Opcode::Nop) }));
            if n % 8 == 7 {
                user.enter(0, 0);
            }
        }
        for n in 16..20_u64 {
            assert!(user.submit(Sqe { user_data: n, ..sqe(Opcode::Nop) }));
        }
        let entered = user.enter(0, 0);
        assert_eq!((entered.count(), entered.flags()), (16, EnterFlags::CQ_FULL));
        for n in 0..20 {
            user.enter(1, NEVER);
            assert_eq!(user.take().unwrap().cqe.user_data, n);
        }
    });
}

#[test]
fn what_is_submitted_without_entering_is_carried_out_at_the_end_of_a_slice() {
    let helper: Body = Arc::new(|mut user: User| {
        for _ in 0..50 {
            user.compute_a_slice();
        }
    });
    let main = |mut user: User| {
        let handle = user.spawn(0, 0).unwrap();
        for n in 0..6 {
            assert!(user.submit(Sqe { user_data: n, ..sqe(Opcode::Nop) }));
        }
        for _ in 0..20 {
            user.compute_a_slice();
        }
        for n in 0..6 {
            assert_eq!(user.take().expect("carried out").cqe.user_data, n);
        }
        let join = user.joining(handle);
        assert_eq!(user.call(join).status(), Status::Ok);
    };
    let report = run(Config::default(), vec![Process::new("lazy", main)], vec![helper]);
    assert_all_ended_well(&report);
}

#[test]
fn facets_are_minted_for_the_owner_and_fall_together() {
    use schema::endpoint::{MintFacetParams, RevokeFacetsParams, methods};
    use schema_wire::Method;
    both_ways(|| {
        let is_revoked = Arc::new(AtomicU32::new(0));
        let revoked = is_revoked.clone();
        vec![
            Process::new("server", move |mut user| {
                let endpoint = user.cap("endpoint");
                let mint = user.typed(
                    endpoint,
                    methods::MintFacet::ORDINAL,
                    0,
                    &MintFacetParams { badge: 3, interface_id: 1 },
                );
                assert_eq!(user.call(mint).status(), Status::Ok);
                let revoke = user.typed(
                    endpoint,
                    methods::RevokeFacets::ORDINAL,
                    0,
                    &RevokeFacetsParams { badge: 1 },
                );
                assert_eq!(user.call(revoke).status(), Status::Ok);
                is_revoked.store(1, SeqCst);
                let next = receiving(&user);
                let done = user.call(next);
                assert_eq!(done.cqe.badge, 2, "a facet that was revoked goes on working");
                assert_eq!(user.call(returning(&done, 0)).status(), Status::Ok);
            })
            .with("endpoint", Grant::Endpoint),
            Process::new("client", move |mut user| {
                while revoked.load(SeqCst) == 0 {
                    user.compute_a_slice();
                }
                // The server waits by now: the fast path would find it.
                for _ in 0..4 {
                    user.compute_a_slice();
                }
                let (fallen, live) = (user.cap("fallen"), user.cap("live"));
                assert_eq!(user.call(User::calling(fallen, 0, 0)).status(), Status::Disconnected);
                assert_eq!(user.call(User::calling(live, 0, 0)).status(), Status::Ok);
            })
            .with("fallen", Grant::Client(0, 0, 1))
            .with("live", Grant::Client(0, 0, 2)),
        ]
    });
}
