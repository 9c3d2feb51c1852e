//! What processes write comes to the console, on a machine of host threads: in order, from all of them, also from
//! those that have ended; a write without room pends, is completed, cancelled, or ends with its thread.

use abi_types::{NEVER, Opcode, Sqe, SqeFlags, Status};
use kernel_ops::machine::Space as _;
use schema::console::{WriteParams, WriteResults, methods};
use schema_wire::{Exception, Message};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use test_machine::{Body, Config, Done, Process, User, run};
use zerocopy::IntoBytes;

const RING: usize = core_output::RING_BYTES;
const WAITING: usize = core_output::MAX_WAITING;
const LINE: usize = 64;

/// A line of a process: who wrote it and the how-manieth it is.
fn line(who: char, number: usize) -> [u8; LINE] {
    let mut line = [b'.'; LINE];
    let text = format!("{who}{number:08}");
    line[..text.len()].copy_from_slice(text.as_bytes());
    line[LINE - 1] = b'\n';
    line
}

fn writing(user: &mut User, slot: u16, bytes: &[u8]) -> Sqe {
    let console = user.cap("console");
    user.typed::<methods::Write>(console, slot, &WriteParams { bytes })
}

/// What a write said.
fn written(done: &Done) -> usize {
    assert_eq!(done.status(), Status::Ok);
    let bytes = &done.words.as_bytes()[..done.cqe.length as usize];
    Message::new(bytes).unwrap().get::<WriteResults>().unwrap().written as usize
}

fn write(user: &mut User, bytes: &[u8]) {
    let sqe = writing(user, 0, bytes);
    let done = user.call(sqe);
    assert_eq!(written(&done), bytes.len());
}

/// The lines of each writer, whole and in order, and nothing else.
fn lines_of(text: &[u8]) -> HashMap<char, usize> {
    let mut count = HashMap::new();
    for got in text.chunks(LINE) {
        let who = got[0] as char;
        let number: &mut usize = count.entry(who).or_default();
        assert_eq!(got, line(who, *number), "line {number} of {who}");
        *number += 1;
    }
    count
}

fn body(body: impl Fn(User) + Send + Sync + 'static) -> Body {
    Arc::new(body)
}

/// Fills the ring of a process whose console takes nothing, but for `free` lines.
fn fill(user: &mut User, who: char, free: usize) {
    for number in 0..RING / LINE - free {
        write(user, &line(who, number));
    }
}

const CLOSED: Config = Config {
    cpus: 1,
    policy: core_sched_policy::PolicyKind::Eevdf,
    threads: 32,
    processes: 8,
    fast_path: true,
    patience_ns: 1_000_000_000_000,
    defect: None,
    console_room: 0,
    shared_frames: 0,
    out_of_memory_at: None,
    programs: 0,
};

#[test]
fn what_several_processes_write_comes_out_whole_and_in_order() {
    for cpus in [1, 2, 4] {
        let flood = |who| {
            Process::new("flood", move |mut user: User| {
                (0..300).for_each(|number| write(&mut user, &line(who, number)));
            })
        };
        let config = Config { cpus, ..Config::default() };
        let report = run(config, vec![flood('a'), flood('b'), flood('c')], vec![]);
        let expected = ['a', 'b', 'c'].map(|who| (who, 300)).into();
        assert_eq!(lines_of(&report.console), expected);
        assert_eq!(report.ends.len(), 3);
    }
}

#[test]
fn a_full_ring_pends_and_completes_in_order() {
    let main = |mut user: User| {
        fill(&mut user, 'a', 0);
        for late in 0..3 {
            let write = writing(&mut user, late, &line('a', RING / LINE + usize::from(late)));
            assert!(user.submit(Sqe { user_data: u64::from(late), ..write }));
        }
        user.enter(0, 0);
        assert_eq!(user.take().map(|done| done.status()), None, "there was no room");
        user.check_cells();
        // Room for two of them.
        user.machine().console_takes(2 * LINE);
        for late in 0..2 {
            while user.take().is_none_or(|done| {
                assert_eq!((done.cqe.user_data, written(&done)), (late, LINE));
                false
            }) {
                user.enter(1, NEVER);
            }
        }
        user.enter(1, 10_000_000);
        assert!(user.take().is_none(), "two fit, not three");
        user.machine().console_takes(usize::MAX / 4);
        user.enter(1, NEVER);
        assert_eq!(written(&user.take().unwrap()), LINE);
    };
    let report = run(CLOSED, vec![Process::new("main", main)], vec![]);
    assert_eq!(lines_of(&report.console), [('a', RING / LINE + 3)].into());
}

#[test]
fn a_pending_write_is_cancelled_and_was_never_written() {
    let main = |mut user: User| {
        fill(&mut user, 'a', 0);
        let write = writing(&mut user, 0, &[b'x'; LINE]);
        assert!(user.submit(Sqe { user_data: 7, ..write }));
        let cancel = Sqe { opcode: Opcode::Cancel as u8, arg: 7, user_data: 8, ..Sqe::default() };
        assert!(user.submit(cancel));
        user.enter(2, NEVER);
        let ends: Vec<_> =
            std::iter::from_fn(|| user.take()).map(|d| (d.cqe.user_data, d.status())).collect();
        assert_eq!(ends, [(7, Status::Cancelled), (8, Status::Ok)]);
        user.check_cells();
        user.machine().console_takes(usize::MAX / 4);
    };
    let report = run(CLOSED, vec![Process::new("main", main)], vec![]);
    assert_eq!(lines_of(&report.console), [('a', RING / LINE)].into());
}

#[test]
fn a_pending_write_ends_with_its_thread_and_the_rest_goes_on() {
    for cpus in [1, 2] {
        static WAITS: AtomicU32 = AtomicU32::new(0);
        WAITS.store(0, SeqCst);
        let child = body(|mut user: User| {
            let write = writing(&mut user, 0, &[b'x'; LINE]);
            assert!(user.submit(write));
            user.enter(0, 0);
            WAITS.store(1, SeqCst);
            // It ends with the write pending.
        });
        let main = |mut user: User| {
            fill(&mut user, 'a', 0);
            let thread = user.spawn(0, 0).unwrap();
            let join = user.joining(thread);
            assert_eq!(user.call(join).status(), Status::Ok);
            assert_eq!(WAITS.load(SeqCst), 1);
            let write = writing(&mut user, 0, &line('a', RING / LINE));
            assert!(user.submit(write));
            user.enter(0, 0);
            user.machine().console_takes(usize::MAX / 4);
            user.enter(1, NEVER);
            assert_eq!(written(&user.take().unwrap()), LINE);
        };
        let config = Config { cpus, ..CLOSED };
        let report = run(config, vec![Process::new("main", main)], vec![child]);
        assert_eq!(lines_of(&report.console), [('a', RING / LINE + 1)].into());
    }
}

#[test]
fn what_a_process_wrote_before_its_end_comes_out_and_its_record_waits_for_it() {
    for cpus in [1, 2, 4] {
        static DEAD: AtomicU32 = AtomicU32::new(0);
        DEAD.store(0, SeqCst);
        let dead = |mut user: User| {
            fill(&mut user, 'a', 0);
            let write = writing(&mut user, 0, &[b'x'; LINE]);
            assert!(user.submit(write));
            user.enter(0, 0);
            assert!(user.take().is_none(), "there was no room");
            DEAD.store(user.slot(), SeqCst);
            user.exit(3);
        };
        let other = |mut user: User| {
            while DEAD.load(SeqCst) == 0 || !user.machine().is_taken_apart(DEAD.load(SeqCst)) {
                user.compute_a_slice();
            }
            // Its thread is gone, and it waits for its output.
            assert_eq!((user.machine().live(), user.machine().console_text().len()), (2, 0));
            user.machine().console_takes(RING / 2);
            while user.machine().console_text().len() < RING / 2 {
                user.compute_a_slice();
            }
            assert_eq!(user.machine().live(), 2);
            user.machine().console_takes(RING);
            while user.machine().live() == 2 {
                user.compute_a_slice();
            }
        };
        let processes = vec![Process::new("dead", dead), Process::new("other", other)];
        let report = run(Config { cpus, ..CLOSED }, processes, vec![]);
        assert_eq!(lines_of(&report.console), [('a', RING / LINE)].into());
        assert_eq!(report.ends, [("dead".to_string(), 3), ("other".to_string(), 0)]);
    }
}

#[test]
fn as_many_writes_wait_as_may_and_the_next_is_told_what_would_be_right() {
    let child = body(|mut user: User| {
        for number in 0..4 {
            let write = writing(&mut user, number, b"x");
            assert!(user.submit(write));
        }
        user.enter(0, 0);
        user.enter(4, NEVER);
    });
    let main = |mut user: User| {
        fill(&mut user, 'a', 0);
        let threads: Vec<_> = (0..WAITING / 4).map(|_| user.spawn(0, 0).unwrap()).collect();
        for _ in 0..100 {
            user.compute_a_slice();
        }
        let write = writing(&mut user, 0, b"x");
        let done = user.call(write);
        assert_eq!(done.status(), Status::Exception);
        let bytes = &done.words.as_bytes()[..done.cqe.length as usize];
        let said = Exception::decode(bytes).unwrap().message().to_string();
        assert!(said.contains("let one complete"), "{said}");
        user.check_cells();
        user.machine().console_takes(usize::MAX / 4);
        for thread in threads {
            let join = user.joining(thread);
            assert_eq!(user.call(join).status(), Status::Ok);
        }
    };
    let report = run(CLOSED, vec![Process::new("main", main)], vec![child]);
    assert_eq!(report.console.len(), RING + WAITING);
}

#[test]
fn without_memory_for_the_ring_the_write_is_refused_and_tried_again() {
    static REFUSED: AtomicU32 = AtomicU32::new(0);
    for at in 0..5 {
        let main = |mut user: User| {
            let write = writing(&mut user, 0, &line('a', 0));
            if user.call(write).status() == Status::Exception {
                REFUSED.fetch_add(1, SeqCst);
                let write = writing(&mut user, 0, &line('a', 0));
                assert_eq!(user.call(write).status(), Status::Ok);
            }
        };
        let config = Config { out_of_memory_at: Some(at), ..Config::default() };
        let report = run(config, vec![Process::new("main", main)], vec![]);
        assert_eq!(lines_of(&report.console), [('a', 1)].into());
    }
    assert_eq!(
        REFUSED.load(SeqCst),
        3,
        "the bytes of the ring, the writes that may wait, the record of both"
    );
}

#[test]
fn a_console_without_room_is_looked_after_once_a_second() {
    let main = |mut user: User| {
        write(&mut user, &line('a', 0));
        let sleep = user.sleeping(0, 3_500_000_000);
        assert_eq!(user.call(sleep).status(), Status::Ok);
        assert_eq!(user.machine().console_looks(), 3);
        user.machine().console_takes(usize::MAX / 4);
    };
    let report = run(CLOSED, vec![Process::new("main", main)], vec![]);
    assert_eq!(lines_of(&report.console), [('a', 1)].into());
}

const PAGE: u64 = 0x40_0000;

#[test]
fn the_answer_of_a_write_that_waited_goes_where_its_caller_wants_it() {
    let main = |mut user: User| {
        user.space().map(PAGE, 1, true);
        fill(&mut user, 'a', 0);
        let places = [(PAGE + 40, 200, Status::Ok), (0x900_0000, 200, Status::BadAddress)];
        for (slot, (result_address, result_capacity, _)) in (0..).zip(places) {
            let write = writing(&mut user, slot, &line('a', RING / LINE + usize::from(slot)));
            let flags = SqeFlags::RESULT_BY_ADDRESS;
            assert!(user.submit(Sqe { flags, result_address, result_capacity, ..write }));
        }
        user.enter(0, 0);
        assert_eq!(user.take().map(|done| done.status()), None, "there was no room");
        user.machine().console_takes(usize::MAX / 4);
        user.enter(2, NEVER);
        for (_, _, status) in places {
            assert_eq!(user.take().unwrap().status(), status);
        }
        let mut answer = [0_u64; 8];
        user.space().copy_in(answer.as_mut_bytes(), PAGE + 40).unwrap();
        let message = Message::new(&answer.as_bytes()[..24]).unwrap();
        assert_eq!(message.get::<WriteResults>().unwrap().written as usize, LINE);
    };
    run(CLOSED, vec![Process::new("main", main)], vec![]);
}
