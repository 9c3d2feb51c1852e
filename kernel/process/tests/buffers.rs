//! Registered buffers on a machine of host threads: messages through them, what they pin, and how they end.

#[path = "buffers/user.rs"]
mod user;

use abi_types::{ExceptionKind, NEVER, Opcode, Sqe, SqeFlags, Status};
use core_ledger::Line;
use kernel_ops::machine::Space;
use schema::memory_capnp::MemoryAccess;
use schema_wire::Message;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use test_machine::children::body;
use test_machine::{Body, Config, Grant, User, run};
use user::*;
use zerocopy::IntoBytes;

const LENGTHS: [u32; 7] = [0, 1, 64, 120, 4096, 5000, 19_000];

/// Calls with every length, named in these ways, and answers that are each byte turned round.
fn talk(cpus: usize, ways: [Form; 4]) {
    let [out, in_server, answer, back] = ways;
    let lengths = move || {
        let is_inline = ways.contains(&Form::Inline);
        LENGTHS.into_iter().filter(move |length| !is_inline || *length <= 120)
    };
    let server = process("server", move |mut user: User| {
        map(&mut user, AT, PAGES);
        let buffer = register(&mut user, AT, PAGES, true).unwrap();
        let endpoint = user.cap("endpoint");
        for length in lengths() {
            let recv =
                Sqe { opcode: Opcode::Recv as u8, cap: endpoint.to_bits(), ..Sqe::default() };
            let done = user.call(receiving(recv, in_server, 20_000, buffer));
            assert_eq!((done.status(), done.cqe.length), (Status::Ok, length));
            let mut bytes = bytes_of(&user, &done, in_server);
            assert_eq!(bytes, message(length, length.into()), "{ways:?}");
            bytes.iter_mut().for_each(|byte| *byte = !*byte);
            put(&mut user, answer, &bytes);
            let opcode = Opcode::Return as u8;
            let sqe = Sqe { opcode, arg: done.cqe.token, user_data: 3, ..Sqe::default() };
            assert_eq!(user.call(sending(sqe, answer, length, buffer)).status(), Status::Ok);
        }
        assert_eq!(unregister(&mut user, buffer), Ok(()));
    })
    .with("endpoint", Grant::Endpoint);
    let client = process("client", move |mut user: User| {
        map(&mut user, AT, PAGES);
        let buffer = register(&mut user, AT, PAGES, true).unwrap();
        let service = user.cap("service");
        for length in lengths() {
            put(&mut user, out, &message(length, length.into()));
            let call = sending(User::calling(service, 0, 0), out, length, buffer);
            let done = user.call(receiving(call, back, 20_000, buffer));
            assert_eq!((done.status(), done.cqe.length), (Status::Ok, length), "{ways:?}");
            let expected: Vec<u8> = message(length, length.into()).iter().map(|b| !b).collect();
            assert_eq!(bytes_of(&user, &done, back), expected, "{ways:?}");
        }
        assert_eq!(unregister(&mut user, buffer), Ok(()));
        assert_eq!(unmap(&mut user, AT, PAGES), Ok(()));
    })
    .with("service", Grant::Client(0, 0, 1));
    run(on(cpus), vec![server, client], vec![]);
}

/// B20: each of the four ways of a call and its answer, by each form, in any mix: the same bytes.
#[test]
fn messages_are_the_same_however_they_are_named() {
    for out in FORMS {
        for in_server in FORMS {
            for answer in FORMS {
                for back in FORMS {
                    talk(1, [out, in_server, answer, back]);
                }
            }
        }
    }
    for cpus in [2, 3] {
        talk(cpus, [Form::Registered; 4]);
        talk(cpus, [Form::Registered, Form::Address, Form::Address, Form::Registered]);
        talk(cpus, [Form::Address, Form::Registered, Form::Registered, Form::Address]);
    }
}

/// B8: numbers, offsets and lengths that are no buffer's.
#[test]
fn what_is_not_in_a_buffer_is_refused_and_changes_nothing() {
    let main = |mut user: User| {
        map(&mut user, AT, PAGES);
        let buffer = register(&mut user, AT, 2, false).unwrap();
        let room = register(&mut user, AT + 2 * PAGE, 2, true).unwrap();
        assert_ne!(buffer, room);
        let before = used(&user);
        let timer = user.cap("timer");
        let (own, service) = (user.cap("endpoint"), user.cap("service"));
        let call = |target| User::calling(target, 0, 0);
        let recv = Sqe { opcode: Opcode::Recv as u8, cap: own.to_bits(), ..Sqe::default() };
        let from = |sqe: Sqe, buffer, address, length| Sqe {
            flags: SqeFlags::REGISTERED,
            buffer,
            address,
            length,
            ..sqe
        };
        let to = |sqe: Sqe, result_buffer, result_address, result_capacity| Sqe {
            flags: SqeFlags::RESULT_REGISTERED,
            result_buffer,
            result_address,
            result_capacity,
            ..sqe
        };
        let bad = Status::BadAddress;
        let none = Status::InvalidArgument;
        let mut cases = Vec::new();
        for number in [2, 31, 32, 33, 255, u16::MAX] {
            cases.push((from(call(service), number, 0, 1), none));
            cases.push((to(recv, number, 0, 1), none));
        }
        for (offset, length) in
            [(0, 8193), (8192, 1), (8191, 2), (1 << 40, 1), (u64::MAX, 1), (u64::MAX - 3, 8)]
        {
            cases.push((from(call(service), buffer, offset, length), bad));
            cases.push((to(call(service), room, offset, length), bad));
            cases.push((to(recv, room, offset, length), bad));
        }
        // What may only be read is no room.
        cases.push((to(recv, buffer, 0, 8), bad));
        cases.push((to(call(service), buffer, 0, 8), bad));
        let answer = Sqe { opcode: Opcode::Return as u8, arg: 1, ..Sqe::default() };
        cases.push((from(answer, 9, 0, 1), none));
        cases.push((from(answer, buffer, 0, 9000), bad));
        cases.push((from(answer, buffer, 0, 8), Status::NotFound));
        // With a list of capabilities behind it, it is longer.
        let laden = Sqe { transfers: 1, ..from(call(service), buffer, 8180, 8) };
        cases.push((laden, bad));
        for (sqe, expected) in cases {
            assert_eq!(user.call(sqe).status(), expected, "{sqe:?}");
            user.check_cells();
            assert_eq!(used(&user), before);
        }
        // A call on an object of the kernel's, both ways.
        let now = User::calling_of::<schema::timer::methods::Now>(timer);
        let done = user.call(to(now, room, 8, 128));
        assert_eq!(done.status(), Status::Ok);
        let mut copy = [0_u64; 16];
        user.space().copy_in(copy.as_mut_bytes(), AT + 2 * PAGE + 8).unwrap();
        let results: schema::timer::NowResults =
            Message::new(&copy.as_bytes()[..done.cqe.length as usize]).unwrap().get().unwrap();
        assert!(results.ns > 0);
        assert_eq!(user.call(to(now, room, 8180, 128)).status(), bad);
        assert_eq!(unregister(&mut user, buffer), Ok(()));
        assert_eq!(unregister(&mut user, buffer), Err(ExceptionKind::Failed));
        assert_eq!(unregister(&mut user, 99), Err(ExceptionKind::Failed));
        assert_eq!(unregister(&mut user, room), Ok(()));
        assert_eq!(used(&user)[Line::RegisteredBuffers.index()], 0);
    };
    let process = process("main", main)
        .with("endpoint", Grant::Endpoint)
        .with("service", Grant::Client(0, 0, 1));
    run(on(1), vec![process], vec![]);
}

/// B20: pages of a buffer are neither unmapped nor protected, whoever asks, before it is given up.
#[test]
fn pages_of_a_buffer_stay() {
    let main = |mut user: User| {
        use ExceptionKind::{Failed, InvalidArgument, Overloaded};
        map(&mut user, AT, PAGES);
        let before = used(&user);
        let buffer = register(&mut user, AT + PAGE, 2, true).unwrap();
        for (at, pages) in [(1, 1), (0, 2), (2, 2), (0, PAGES)] {
            assert_eq!(unmap(&mut user, AT + at * PAGE, pages), Err(Failed));
        }
        for access in [MemoryAccess::Read, MemoryAccess::Write, MemoryAccess::Execute] {
            assert_eq!(protect(&mut user, AT + 2 * PAGE, access), Err(Failed));
        }
        // A page is of one buffer; and of one that is mapped, and as it is to be used.
        assert_eq!(register(&mut user, AT + 2 * PAGE, 2, false), Err(Failed));
        assert_eq!(register(&mut user, AT + 5 * PAGE, 2, false), Err(Failed));
        assert_eq!(register(&mut user, OTHER, 1, false), Err(Failed));
        assert_eq!(protect(&mut user, AT + 4 * PAGE, MemoryAccess::Read), Ok(()));
        assert_eq!(register(&mut user, AT + 3 * PAGE, 2, true), Err(Failed));
        let reads = register(&mut user, AT + 3 * PAGE, 2, false).unwrap();
        assert_eq!(register(&mut user, AT + 1, 1, false), Err(InvalidArgument));
        assert_eq!(register(&mut user, AT, 0, false), Err(InvalidArgument));
        assert_eq!(register(&mut user, AT, 257, false), Err(InvalidArgument));
        assert_eq!(register(&mut user, u64::MAX - 4095, 1, false), Err(InvalidArgument));
        // As many as the profile says.
        let mut more = Vec::new();
        for page in [0, 5] {
            more.push(register(&mut user, AT + page * PAGE, 1, false).unwrap());
        }
        map(&mut user, OTHER, 1);
        assert_eq!(register(&mut user, OTHER, 1, false), Err(Overloaded));
        for one in more.into_iter().chain([buffer, reads]) {
            assert_eq!(unregister(&mut user, one), Ok(()));
        }
        assert_eq!(unmap(&mut user, OTHER, 1), Ok(()));
        assert_eq!(protect(&mut user, AT + 4 * PAGE, MemoryAccess::Write), Ok(()));
        assert_eq!(used(&user), before, "the regions are one again");
        assert_eq!(unmap(&mut user, AT, PAGES), Ok(()));
    };
    for cpus in [1, 2] {
        run(on(cpus), vec![process("main", main)], vec![]);
    }
}

/// B20: a buffer that operations name goes with the last of them, and who gave it up is told once.
#[test]
fn giving_a_buffer_up_waits_for_what_names_it() {
    let main = |mut user: User| {
        map(&mut user, AT, PAGES);
        let endpoint = user.cap("endpoint");
        for waits in 1..4_u64 {
            let buffer = register(&mut user, AT, 2, true).unwrap();
            let recv =
                Sqe { opcode: Opcode::Recv as u8, cap: endpoint.to_bits(), ..Sqe::default() };
            for number in 0..waits {
                let sqe = receiving(recv, Form::Registered, 100, buffer);
                assert!(user.submit(Sqe { user_data: 10 + number, ..sqe }));
            }
            let sqe = unregistering(&mut user, 1, buffer);
            assert!(user.submit(Sqe { user_data: 5, ..sqe }));
            user.enter(0, 0);
            assert!(user.take().is_none(), "it waits");
            // Nothing begins to use it, nobody gives it up again, and its pages stay.
            let sqe = receiving(recv, Form::Registered, 100, buffer);
            assert_eq!(user_call(&mut user, sqe), Status::InvalidArgument);
            assert_eq!(unregister(&mut user, buffer), Err(ExceptionKind::Failed));
            assert_eq!(unmap(&mut user, AT, 1), Err(ExceptionKind::Failed));
            for number in 0..waits {
                assert_eq!(count(&mut user), 0, "{number} of {waits}");
                let cancel = Opcode::Cancel as u8;
                let sqe = Sqe { opcode: cancel, arg: 10 + number, user_data: 6, ..Sqe::default() };
                assert!(user.submit(sqe));
                user.enter(2, NEVER);
                let mut seen = vec![user.take().unwrap(), user.take().unwrap()];
                seen.sort_by_key(|done| done.cqe.user_data);
                // With the last of them the buffer is gone; its completion may be the second of the two.
                if seen[0].cqe.user_data != 6 {
                    assert_eq!(seen[0].cqe.user_data, 5);
                    seen.push(user.take().unwrap_or_else(|| {
                        user.enter(1, NEVER);
                        user.take().unwrap()
                    }));
                    assert_eq!(number + 1, waits);
                } else if number + 1 == waits {
                    if user.take().is_none() {
                        user.enter(1, NEVER);
                        assert_eq!(user.take().unwrap().cqe.user_data, 5);
                    }
                }
            }
            assert_eq!(unmap(&mut user, AT, 1), Ok(()));
            map(&mut user, AT, 1);
        }
    };
    for cpus in [1, 2] {
        run(on(cpus), vec![process("main", main).with("endpoint", Grant::Endpoint)], vec![]);
    }
}

/// Completions that are there and nobody took.
fn count(user: &mut User) -> u64 {
    user.enter(0, 0).count().into()
}

/// The status of an operation beside others that are pending.
fn user_call(user: &mut User, sqe: Sqe) -> Status {
    assert!(user.submit(Sqe { user_data: 99, ..sqe }));
    user.enter(1, NEVER);
    let done = user.take().unwrap();
    assert_eq!(done.cqe.user_data, 99);
    done.status()
}

/// B20, Q4: without memory for any part of a buffer there is none, and nothing is lost.
#[test]
fn lack_of_memory_at_every_step_leaves_everything_as_it_was() {
    let made = Arc::new(AtomicU64::new(0));
    let attempt = |out_of_memory_at| {
        let count = made.clone();
        let main = move |mut user: User| {
            user.space().map(OTHER, 1, true);
            let memory = user.cap("memory");
            let params = schema::virtual_memory::MapParams {
                address: AT,
                bytes: 40 * PAGE,
                access: MemoryAccess::Write,
                fixed: true,
            };
            let sqe = user.typed::<schema::virtual_memory::methods::Map>(memory, 0, &params);
            if user.call(sqe).status() != Status::Ok {
                return;
            }
            let before = used(&user);
            match register(&mut user, AT + PAGE, 37, true) {
                Ok(buffer) => {
                    count.fetch_add(1, SeqCst);
                    assert_eq!(unregister(&mut user, buffer), Ok(()));
                }
                Err(kind) => assert_eq!(kind, ExceptionKind::Overloaded),
            }
            let line = Line::RegisteredBuffers.index();
            assert_eq!(used(&user)[line], before[line]);
            // The allocation that is denied may be one of this attempt's.
            let again = register(&mut user, AT + PAGE, 37, true);
            let buffer = again.or_else(|_| register(&mut user, AT + PAGE, 37, true));
            let buffer = buffer.expect("memory is there again");
            assert_eq!(unregister(&mut user, buffer), Ok(()));
            assert_eq!(unmap(&mut user, AT, 40), Ok(()));
        };
        run(Config { out_of_memory_at, ..on(1) }, vec![process("main", main)], vec![])
    };
    let all = attempt(None).allocations;
    let refused = (0..all).filter(|at| {
        let before = made.load(SeqCst);
        attempt(Some(*at));
        made.load(SeqCst) == before
    });
    assert!(refused.count() >= 2, "allocations of a buffer that were denied");
}

/// A client and a server that end at any point of calls through their buffers, while a thread of each gives its own up.
fn ends(cpus: usize, seed: u64) {
    let turns = move |n: u64| (seed.wrapping_mul(6_364_136_223_846_793_005) >> (20 + n)) % 12;
    let exits = |turns: u64| -> Body {
        body(move |mut user: User| {
            for _ in 0..turns {
                user.compute();
            }
            user.exit(1)
        })
    };
    let gives_up: Body = body(|mut user: User| {
        loop {
            user.compute();
            for buffer in 0..2 {
                let sqe = unregistering(&mut user, 0, buffer);
                let _any = user.call(sqe).status();
            }
            let _any = register(&mut user, AT, 2, true);
        }
    });
    let server = process("server", move |mut user: User| {
        map(&mut user, AT, PAGES);
        let endpoint = user.cap("endpoint");
        user.spawn(2, 0).expect("a thread");
        user.spawn(0, 0).expect("a thread");
        loop {
            user.compute();
            let recv =
                Sqe { opcode: Opcode::Recv as u8, cap: endpoint.to_bits(), ..Sqe::default() };
            let done = user.call(receiving(recv, Form::Registered, 5000, 0));
            if done.status() == Status::Ok {
                let opcode = Opcode::Return as u8;
                let sqe = Sqe { opcode, arg: done.cqe.token, user_data: 3, ..Sqe::default() };
                let _any = user.call(sending(sqe, Form::Registered, 4096, 0)).status();
            }
        }
    })
    .with("endpoint", Grant::Endpoint);
    let client = process("client", move |mut user: User| {
        map(&mut user, AT, PAGES);
        let service = user.cap("service");
        user.spawn(2, 0).expect("a thread");
        user.spawn(1, 0).expect("a thread");
        loop {
            user.compute();
            let call = sending(User::calling(service, 0, 0), Form::Registered, 4096, 0);
            let _any = user.call(receiving(call, Form::Registered, 5000, 0)).status();
        }
    })
    .with("service", Grant::Client(0, 0, 1));
    let bodies = vec![exits(20 + turns(0)), exits(20 + turns(4)), gives_up];
    run(on(cpus), vec![server, client], bodies);
}

/// Q4: whoever ends, and whenever: nobody copies from or to what is gone, and nothing is left.
#[test]
fn processes_end_while_others_copy_through_their_buffers() {
    for seed in 0..60 {
        for cpus in [1, 2, 3] {
            ends(cpus, seed);
        }
    }
}

/// The end of a thread lets go of what its operations name.
#[test]
fn a_thread_that_ends_lets_go_of_what_it_waits_with() {
    let waits: Body = body(|mut user: User| {
        let endpoint = user.cap("endpoint");
        let recv = Sqe { opcode: Opcode::Recv as u8, cap: endpoint.to_bits(), ..Sqe::default() };
        assert!(user.submit(receiving(recv, Form::Registered, 128, 0)));
        user.enter(0, 0);
        let control = user.cap("control");
        let params = schema::thread_control::ExitThreadParams { code: 4 };
        // The call that ends it names the buffer as well.
        let exit = user.typed::<schema::thread_control::methods::ExitThread>(control, 1, &params);
        user.submit(receiving(exit, Form::Registered, 128, 0));
        user.enter(1, NEVER);
        panic!("it goes on");
    });
    for cpus in [1, 2] {
        let main = |mut user: User| {
            map(&mut user, AT, PAGES);
            assert_eq!(register(&mut user, AT, 2, true), Ok(0));
            let thread = user.spawn(0, 0).unwrap();
            let join = user.joining(thread);
            assert_eq!(user.call(join).status(), Status::Ok);
            assert_eq!(unregister(&mut user, 0), Ok(()));
            assert_eq!(unmap(&mut user, AT, PAGES), Ok(()));
        };
        let process = process("main", main).with("endpoint", Grant::Endpoint);
        run(on(cpus), vec![process], vec![waits.clone()]);
    }
}
