//! The trace on a machine of host threads: a known history gives exactly its events, and whose the buffers are.

use abi_types::{CapSlot, ExceptionKind, NEVER, Opcode, Sqe, SqeFlags, Status, TransferMode};
use core_ledger::Line;
use kernel_ops::machine::Space;
use schema::memory_capnp::MemoryAccess;
use schema::trace::methods::{Info, Mark, Read, Start, Stop};
use schema::trace::{
    InfoResults, MarkParams, ReadParams, ReadResults, StartParams, StartResults, StopResults,
};
use schema::trace_capnp::{TraceCategory, TraceEvent};
use schema::virtual_memory;
use schema_wire::{Exception, Message, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use test_machine::{Config, Done, Grant, HostObject, Process, User, run};
use zerocopy::IntoBytes;

const PAGE: u64 = 0x10_0000;
const BUFFER_BYTES: u32 = 65536;
const RECORDS: u64 = 2048;
/// In the place of a thread: none.
const NOBODY: u64 = u64::MAX;

const fn bit(category: TraceCategory) -> u32 {
    1 << category as u16
}

/// An event, but for its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Event {
    kind: u16,
    category: u16,
    thread: u32,
    a: u64,
    b: u64,
}

fn event(what: TraceEvent, thread: u32, a: u64, b: u64) -> Event {
    let category = kernel_dispatch::trace::category_of(what) as u16;
    Event { kind: what as u16, category, thread, a, b }
}

fn process(name: &'static str, main: impl Fn(User) + Send + Sync + 'static) -> Process {
    Process::new(name, main)
        .with("trace", Grant::Object(HostObject::Trace))
        .with("memory", Grant::Object(HostObject::VirtualMemory))
}

fn results<T: for<'m> Value<'m>>(done: &Done) -> Result<T, ExceptionKind> {
    let bytes = &done.words.as_bytes()[..done.cqe.length as usize];
    match done.status() {
        Status::Ok => Ok(Message::new(bytes).unwrap().get().unwrap()),
        Status::Exception => Err(Exception::decode(bytes).unwrap().kind()),
        other => panic!("{other:?}"),
    }
}

fn start(user: &mut User, categories: u32) -> Result<StartResults, ExceptionKind> {
    let trace = user.cap("trace");
    let sqe = user.typed::<Start>(trace, 0, &StartParams { categories });
    results(&user.call(sqe))
}

fn stop(user: &mut User) -> Result<StopResults, ExceptionKind> {
    results(&user.call(User::calling_of::<Stop>(user.cap("trace"))))
}

fn info(user: &mut User) -> InfoResults {
    results(&user.call(User::calling_of::<Info>(user.cap("trace")))).unwrap()
}

fn mark(user: &mut User, value: u64) {
    let trace = user.cap("trace");
    let sqe = user.typed::<Mark>(trace, 0, &MarkParams { value });
    assert_eq!(user.call(sqe).status(), Status::Ok);
}

/// What one `read` gives: events with their times, the next position, and how many were lost.
fn read(user: &mut User, cpu: u32, position: u64, capacity: u32) -> (Vec<(u64, Event)>, u64, u64) {
    let trace = user.cap("trace");
    let sqe = user.typed::<Read>(trace, 0, &ReadParams { cpu, position, capacity });
    let sqe = Sqe {
        flags: SqeFlags::RESULT_BY_ADDRESS,
        result_address: PAGE,
        result_capacity: 4096,
        ..sqe
    };
    let done = user.call(sqe);
    assert_eq!(done.status(), Status::Ok);
    let mut words = [0_u64; 512];
    let bytes = &mut words.as_mut_bytes()[..done.cqe.length as usize];
    user.space().copy_in(bytes, PAGE).unwrap();
    let message = Message::new(bytes).unwrap();
    let found: ReadResults<'_> = message.get().unwrap();
    let word = |record: &[u8], at: usize| {
        u64::from_le_bytes(record[at * 8..at * 8 + 8].try_into().unwrap())
    };
    let events = found.events.chunks(32).map(|record| {
        let head = word(record, 1);
        let (kind, category, thread) = (head as u16, (head >> 16) as u16, (head >> 32) as u32);
        let of = Event { kind, category, thread, a: word(record, 2), b: word(record, 3) };
        (word(record, 0), of)
    });
    (events.collect(), found.next, found.lost)
}

/// Everything that a CPU recorded, whose times never go back.
fn all(user: &mut User, cpu: u32) -> Vec<Event> {
    let (mut events, mut position, mut before) = (vec![], 0, 0);
    loop {
        let (some, next, _) = read(user, cpu, position, 4096);
        if some.is_empty() {
            assert_eq!(next, position);
            return events;
        }
        for (time_ns, of) in some {
            assert!(time_ns >= before, "the time goes back");
            before = time_ns;
            events.push(of);
        }
        position = next;
    }
}

fn count(events: &[Event], what: TraceEvent) -> usize {
    events.iter().filter(|event| event.kind == what as u16).count()
}

fn used(user: &User) -> u32 {
    user.process().ops.ledger.reading(Line::KernelBytes).used
}

fn ends_well(config: Config, processes: Vec<Process>) {
    let report = run(config, processes, vec![]);
    assert!(report.ends.iter().all(|(_, code)| *code == 0), "{:?}", report.ends);
}

fn alone(main: impl Fn(User) + Send + Sync + 'static) {
    ends_well(Config::default(), vec![process("alone", main)]);
}

fn pause(user: &mut User, ns: u64) {
    let sleep = user.sleeping(0, ns);
    assert_eq!(user.call(sleep).status(), Status::Ok);
}

/// Answers calls, each with a receive of the next; says which thread it is.
fn serve(mut user: User, who: &AtomicU32) {
    who.store(user.slot(), SeqCst);
    let cap = user.cap("endpoint").to_bits();
    let mut done = user.call(Sqe { opcode: Opcode::Recv as u8, cap, ..Sqe::default() });
    while done.cqe.method != 9 {
        let answer = Sqe { opcode: Opcode::Return as u8, arg: done.cqe.token, ..Sqe::default() };
        done = user.call(Sqe { cap, flags: SqeFlags::THEN_RECV, ..answer });
    }
    let answer = Sqe { opcode: Opcode::Return as u8, arg: done.cqe.token, ..Sqe::default() };
    assert_eq!(user.call(answer).status(), Status::Ok);
}

/// The events of one call of a server that waits, as the fast path makes it and as the general path does.
fn history_of_a_call(fast_path: bool, expected: fn(me: u32, server: u32, of: u64) -> Vec<Event>) {
    let who = Arc::new(AtomicU32::new(0));
    let served = who.clone();
    let server =
        process("server", move |user| serve(user, &served)).with("endpoint", Grant::Endpoint);
    let client = process("client", move |mut user| {
        user.space().map(PAGE, 1, true);
        // Now the server waits.
        pause(&mut user, 1_000_000);
        let service = user.cap("service");
        start(&mut user, bit(TraceCategory::Scheduler) | bit(TraceCategory::Ipc)).unwrap();
        assert_eq!(user.call(User::calling(service, 1, 8)).status(), Status::Ok);
        let stopped = stop(&mut user).unwrap();
        let events = all(&mut user, 0);
        // Processes are in the order of their making.
        let of = u64::from(user.process().slot()) - 1;
        assert_eq!(events, expected(user.slot(), who.load(SeqCst), of));
        assert_eq!((stopped.events, stopped.lost), (events.len() as u64, 0));
        assert_eq!(user.call(User::calling(service, 9, 0)).status(), Status::Ok);
        assert_eq!(all(&mut user, 0), events, "nothing is recorded after the stop");
    });
    let config = Config { fast_path, ..Config::default() };
    ends_well(config, vec![server, client.with("service", Grant::Client(0, 0, 1))]);
}

#[test]
fn a_call_with_a_hand_off_is_six_events_in_their_order() {
    history_of_a_call(true, |me, server, of| {
        let (i, it) = (u64::from(me), u64::from(server));
        vec![
            event(TraceEvent::Call, me, it, of),
            event(TraceEvent::HandOff, me, it, 0),
            event(TraceEvent::Switched, me, it, 4),
            event(TraceEvent::Answer, server, i, 1),
            event(TraceEvent::HandOff, server, i, 0),
            event(TraceEvent::Switched, server, i, 4),
        ]
    });
}

#[test]
fn a_call_without_the_fast_path_says_what_it_does_instead() {
    history_of_a_call(false, |me, server, of| {
        let (i, it) = (u64::from(me), u64::from(server));
        vec![
            event(TraceEvent::Call, me, it, of),
            event(TraceEvent::Woke, me, it, 0),
            event(TraceEvent::Switched, me, it, 0),
            event(TraceEvent::Answer, server, i, 1),
            event(TraceEvent::Woke, server, i, 0),
            event(TraceEvent::Switched, server, i, 0),
        ]
    });
}

/// A call that waits for its receiver, and the receive that finds it.
#[test]
fn a_call_that_waits_and_a_receive_that_finds_it() {
    ends_well(
        Config::default(),
        vec![
            process("both", |mut user| {
                user.space().map(PAGE, 1, true);
                let (own, service) = (user.cap("endpoint").to_bits(), user.cap("self"));
                start(&mut user, bit(TraceCategory::Ipc)).unwrap();
                user.submit(Sqe { user_data: 1, ..User::calling(service, 1, 0) });
                user.enter(0, 0);
                let recv = Sqe { opcode: Opcode::Recv as u8, cap: own, ..Sqe::default() };
                let done = user.call(recv);
                let answer = Sqe { opcode: Opcode::Return as u8, arg: done.cqe.token, ..recv };
                user.submit(Sqe { cap: 0, user_data: 2, ..answer });
                for _ in 0..2 {
                    while user.take().is_none() {
                        user.enter(1, NEVER);
                    }
                }
                stop(&mut user).unwrap();
                let (me, of) = (user.slot(), u64::from(user.process().slot()));
                let expected = vec![
                    event(TraceEvent::Call, me, NOBODY, of),
                    event(TraceEvent::Receive, me, me.into(), 0),
                    event(TraceEvent::Answer, me, me.into(), 0),
                ];
                assert_eq!(all(&mut user, 0), expected);
            })
            .with("endpoint", Grant::Endpoint)
            .with("self", Grant::Client(0, 0, 1)),
        ],
    );
}

/// What is not asked for is not there; what is asked for, is.
#[test]
fn only_the_categories_that_were_asked_for_are_recorded() {
    alone(|mut user| {
        user.space().map(PAGE, 1, true);
        let memory = user.cap("memory");
        for category in 0..8_u16 {
            start(&mut user, 1 << category).unwrap();
            let (address, bytes) = (0x40_0000, 0x3000);
            let access = MemoryAccess::Write;
            let params = virtual_memory::MapParams { address, bytes, access, fixed: true };
            let map = user.typed::<virtual_memory::methods::Map>(memory, 0, &params);
            assert_eq!(user.call(map).status(), Status::Ok);
            let params = virtual_memory::ProtectParams { address, bytes, access };
            let protect = user.typed::<virtual_memory::methods::Protect>(memory, 0, &params);
            assert_eq!(user.call(protect).status(), Status::Ok);
            let params = virtual_memory::UnmapParams { address, bytes };
            let unmap = user.typed::<virtual_memory::methods::Unmap>(memory, 0, &params);
            assert_eq!(user.call(unmap).status(), Status::Ok);
            mark(&mut user, 77);
            pause(&mut user, 500_000);
            stop(&mut user).unwrap();
            let (events, me) = (all(&mut user, 0), user.slot());
            assert!(events.iter().all(|event| event.category == category), "{events:?}");
            let of = |what| count(&events, what);
            match category {
                0 => assert!(of(TraceEvent::Switched) >= 2 && of(TraceEvent::Woke) == 1),
                2 => {
                    // The start's own return, five calls, and the entry that stops it.
                    assert_eq!((of(TraceEvent::Enter), of(TraceEvent::Leave)), (6, 6));
                }
                4 => {
                    let pages = |what| event(what, me, 0x40_0000, 3);
                    let expected = [TraceEvent::Map, TraceEvent::Protect, TraceEvent::Unmap];
                    assert_eq!(events, expected.map(pages));
                }
                5 => {
                    let kinds = [TraceEvent::Armed, TraceEvent::Fired, TraceEvent::Expired];
                    assert_eq!(
                        events.iter().map(|e| e.kind).collect::<Vec<_>>(),
                        kinds.map(|k| k as u16)
                    );
                    assert_eq!((events[0].a, events[2].a), (me.into(), me.into()));
                }
                7 => assert_eq!(events, [event(TraceEvent::Mark, me, 77, 0)]),
                // Nobody calls or interrupts, and there are no contexts.
                _ => assert_eq!(events, []),
            }
        }
    });
}

#[test]
fn a_full_buffer_keeps_the_beginning_and_counts_the_rest() {
    alone(|mut user| {
        user.space().map(PAGE, 1, true);
        for round in 0..2 {
            start(&mut user, bit(TraceCategory::User)).unwrap();
            for value in 0..RECORDS + 50 {
                mark(&mut user, value << round);
            }
            let stopped = stop(&mut user).unwrap();
            assert_eq!((stopped.events, stopped.lost), (RECORDS, 50));
            let values: Vec<_> = all(&mut user, 0).iter().map(|event| event.a >> round).collect();
            assert_eq!(values, (0..RECORDS).collect::<Vec<_>>());
            let (some, next, lost) = read(&mut user, 0, RECORDS - 3, 2 * 32 + 31);
            assert_eq!((some.len(), next, lost), (2, RECORDS - 1, 50));
        }
    });
}

#[test]
fn who_starts_pays_until_it_lets_go() {
    alone(|mut user| {
        user.space().map(PAGE, 1, true);
        let before = used(&user);
        for categories in [0, 1 << 8, u32::MAX] {
            assert_eq!(start(&mut user, categories), Err(ExceptionKind::InvalidArgument));
        }
        assert_eq!(used(&user), before, "a start that is refused is free");
        for _ in 0..3 {
            assert_eq!(start(&mut user, 1 << 7).unwrap().buffer_bytes, BUFFER_BYTES);
            assert_eq!(used(&user), before + BUFFER_BYTES, "once, however often it starts");
            assert_eq!(info(&mut user).categories, 1 << 7);
            mark(&mut user, 1);
            stop(&mut user).unwrap();
            assert_eq!(used(&user), before + BUFFER_BYTES, "what is there can be read");
            assert_eq!(info(&mut user).categories, 0);
        }
        assert_eq!(all(&mut user, 0).len(), 1);
        start(&mut user, 1 << 7).unwrap();
        let cap = user.cap("trace").to_bits();
        let release = Sqe { opcode: Opcode::Release as u8, cap, ..Sqe::default() };
        assert_eq!(user.call(release).status(), Status::Ok);
        assert_eq!(used(&user), before);
    });
}

#[test]
fn a_start_that_nobody_can_pay_for_changes_nothing() {
    let mut process = process("poor", |mut user| {
        let before = used(&user);
        assert_eq!(start(&mut user, 1), Err(ExceptionKind::Overloaded));
        assert_eq!(used(&user), before);
        assert_eq!(info(&mut user).categories, 0);
    });
    process.profile.kernel_bytes = 60_000;
    ends_well(Config::default(), vec![process]);
}

/// Each allocation of a start fails once: nothing is recorded, nothing charged, and the next start finds all.
#[test]
fn a_start_without_memory_is_undone() {
    for cpus in [1, 3] {
        let mut refused = 0;
        for at in 0.. {
            let was_refused = Arc::new(AtomicU32::new(0));
            let told = was_refused.clone();
            let main = move |mut user: User| {
                let before = used(&user);
                if start(&mut user, 1 << 7).is_err() {
                    told.fetch_add(1, SeqCst);
                    assert_eq!((used(&user), info(&mut user).categories), (before, 0));
                    start(&mut user, 1 << 7).unwrap();
                }
                assert_eq!(used(&user), before + cpus as u32 * BUFFER_BYTES);
            };
            let config = Config { cpus, out_of_memory_at: Some(at), ..Config::default() };
            let mut process = process("alone", main);
            process.profile.kernel_bytes = 1 << 22;
            let report = run(config, vec![process], vec![]);
            refused += was_refused.load(SeqCst);
            if report.allocations <= at {
                break;
            }
        }
        assert_eq!(refused, cpus as u32, "one allocation for each CPU's buffer");
    }
}

/// One records, another one wants to; the first ends while it records.
#[test]
fn while_one_process_records_another_cannot_and_when_it_ends_it_can() {
    for cpus in [1, 2, 4] {
        let first = process("first", |mut user| {
            start(&mut user, bit(TraceCategory::User)).unwrap();
            mark(&mut user, 1);
            pause(&mut user, 50_000_000);
            stop(&mut user).unwrap();
            pause(&mut user, 50_000_000);
            // The second has it.
            assert_eq!(start(&mut user, 1), Err(ExceptionKind::Overloaded));
            assert_eq!(stop(&mut user), Err(ExceptionKind::Failed));
            pause(&mut user, 100_000_000);
            assert!(start(&mut user, 0x7f | 1 << 7).is_ok(), "the second has ended");
            // The end of this one is recorded for nobody.
        });
        let second = process("second", |mut user| {
            user.space().map(PAGE, 1, true);
            let before = used(&user);
            pause(&mut user, 25_000_000);
            assert_eq!(start(&mut user, 1), Err(ExceptionKind::Overloaded));
            assert_eq!(stop(&mut user), Err(ExceptionKind::Failed));
            assert_eq!(used(&user), before);
            pause(&mut user, 50_000_000);
            assert!(start(&mut user, bit(TraceCategory::User)).is_ok(), "the first has stopped");
            assert!(used(&user) > before);
            let machine_cpus = info(&mut user).cpus;
            for cpu in 0..machine_cpus {
                assert_eq!(all(&mut user, cpu), [], "what the first recorded is gone");
            }
            pause(&mut user, 50_000_000);
            mark(&mut user, 2);
        });
        let with_room = |mut process: Process| {
            process.profile.kernel_bytes = 1 << 22;
            process
        };
        ends_well(Config { cpus, ..Config::default() }, vec![with_room(first), with_room(second)]);
    }
}

/// Several processes that start, stop, mark and read as fast as they can: one has it at a time, and nothing is left.
#[test]
fn processes_that_fight_for_the_trace_leave_nothing() {
    let fighter = || {
        let mut process = process("fighter", |mut user| {
            user.space().map(PAGE, 1, true);
            for round in 0..60 {
                match start(&mut user, 1 << 7 | 1) {
                    Ok(_) => {
                        mark(&mut user, round);
                        user.compute();
                        assert!(stop(&mut user).is_ok(), "it is this one's");
                    }
                    Err(kind) => assert_eq!(kind, ExceptionKind::Overloaded),
                }
                let (some, ..) = read(&mut user, 0, 0, 4096);
                assert!(some.len() <= 64);
            }
        });
        process.profile.kernel_bytes = 1 << 22;
        process
    };
    for cpus in [1, 2, 4] {
        ends_well(Config { cpus, ..Config::default() }, (0..3).map(|_| fighter()).collect());
    }
}

/// A process that has passed its only capability on records until it ends, and then the trace is the receiver's to start.
#[test]
fn a_process_without_its_capability_has_the_trace_until_it_ends() {
    let receiver = Process::new("receiver", |mut user| {
        let cap = user.cap("endpoint").to_bits();
        let recv = Sqe { opcode: Opcode::Recv as u8, cap, result_transfers: 1, ..Sqe::default() };
        let done = user.call(recv);
        assert_eq!(done.cqe.transfers(), 1);
        let trace = CapSlot::from_bits(done.words[1]);
        let before = used(&user);
        let start = |user: &mut User| {
            let sqe = user.typed::<Start>(trace, 0, &StartParams { categories: 1 });
            results::<StartResults>(&user.call(sqe))
        };
        assert_eq!(start(&mut user), Err(ExceptionKind::Overloaded), "its sender records");
        let answer = Sqe { opcode: Opcode::Return as u8, arg: done.cqe.token, ..Sqe::default() };
        assert_eq!(user.call(answer).status(), Status::Ok);
        pause(&mut user, 50_000_000);
        assert!(start(&mut user).is_ok(), "its sender has ended");
        assert_eq!(used(&user), before + BUFFER_BYTES);
    });
    let sender = process("sender", |mut user| {
        start(&mut user, 1 << 7).unwrap();
        let (trace, service) = (user.cap("trace").to_bits(), user.cap("service"));
        user.write(0, &[7, trace, u64::from(TransferMode::Move as u32)]);
        let call = Sqe { transfers: 1, ..User::calling(service, 0, 8) };
        assert_eq!(user.call(call).status(), Status::Ok);
    });
    ends_well(
        Config::default(),
        vec![
            receiver.with("endpoint", Grant::Endpoint),
            sender.with("service", Grant::Client(0, 0, 1)),
        ],
    );
}
