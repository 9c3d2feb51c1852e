//! Programs that are started from memory objects, on a machine of host threads: right and wrong ones, ones that change while
//! they are read, and objects that everybody lets go of meanwhile.

use abi_types::{CapSlot, ExceptionKind, Opcode, Sqe, Status, TransferMode};
use core_ledger::Line;
use schema::frame_allocator::methods::CreateObject;
use schema::frame_allocator::{CreateObjectParams, CreateObjectResults};
use schema::manifest::ResourceProfile;
use schema::memory_capnp::MemoryAccess;
use schema::memory_object::methods::{Map, Unmap};
use schema::memory_object::{MapParams, UnmapParams};
use schema::process_handle_capnp::ExitReason;
use schema_wire::{Exception, Message};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use test_machine::children::{PROFILE, account, body, kill, release, spawn_image, spawner, wait};
use test_machine::{Body, Config, Done, Grant, HostObject, Process, Report, User, program, run};
use zerocopy::IntoBytes;

const PAGE: u64 = 4096;
/// Where the object with the program is mapped.
const START: u64 = 0x40_0000;
const COPY: TransferMode = TransferMode::Copy;

/// A process that may start programs and make memory objects.
fn maker(main: impl Fn(User) + Send + Sync + 'static) -> Process {
    spawner(main)
        .with("memory", Grant::Object(HostObject::VirtualMemory))
        .with("frames", Grant::Object(HostObject::FrameAllocator))
        .with("threads", Grant::Object(HostObject::ThreadSpawner))
}

fn config(cpus: usize) -> Config {
    Config { cpus, programs: 2, ..Config::default() }
}

/// The bodies of programs 0 and 1, which exit with 7 and 8; then those of threads.
fn bodies(threads: Vec<Body>) -> Vec<Body> {
    let mut all = vec![body(|user: User| user.exit(7)), body(|user: User| user.exit(8))];
    all.extend(threads);
    all
}

fn play(config: Config, main: impl Fn(User) + Send + Sync + 'static) -> Report {
    run(config, vec![maker(main)], bodies(vec![]))
}

/// An object that holds a program of so many bytes, mapped at [`START`].
fn object_with(user: &mut User, file: &[u8]) -> Result<CapSlot, Done> {
    let bytes = (file.len() as u64).next_multiple_of(PAGE);
    let frames = user.cap("frames");
    let sqe = user.typed::<CreateObject>(frames, 0, &CreateObjectParams { bytes });
    let done = user.call(sqe);
    if done.status() != Status::Ok {
        return Err(done);
    }
    let message = Message::new(&done.words.as_bytes()[..done.cqe.length as usize]).unwrap();
    let made: CreateObjectResults = message.get().unwrap();
    let object = CapSlot::new(made.object_index.into(), made.object_generation);
    let access = MemoryAccess::Write;
    let params = MapParams { address: START, fixed: true, offset: 0, bytes, access };
    let sqe = user.typed::<Map>(object, 0, &params);
    let done = user.call(sqe);
    if done.status() != Status::Ok {
        assert_eq!(release(user, object), Status::Ok);
        return Err(done);
    }
    for (number, part) in file.chunks(PAGE as usize).enumerate() {
        user.space().fill(START + number as u64 * PAGE, part).unwrap();
    }
    Ok(object)
}

fn unmap(user: &mut User, object: CapSlot, bytes: u64) -> Status {
    let params = UnmapParams { address: START, bytes: bytes.next_multiple_of(PAGE) };
    let sqe = user.typed::<Unmap>(object, 0, &params);
    user.call(sqe).status()
}

/// The kind of an exception, or another status.
fn refusal(done: &Done) -> Result<ExceptionKind, Status> {
    let bytes = &done.words.as_bytes()[..done.cqe.length as usize];
    match done.status() {
        Status::Exception => {
            let exception = Exception::decode(bytes).unwrap();
            assert!(exception.message().len() > 10);
            Ok(exception.kind())
        }
        other => Err(other),
    }
}

/// C8: a program that was read into memory runs, and what was lent and paid comes back.
#[test]
fn a_program_in_memory_runs() {
    for cpus in [1, 2, 4] {
        play(config(cpus), |mut user: User| {
            for number in [0, 1] {
                let file = program(number);
                let object = object_with(&mut user, &file).unwrap();
                let before = account(&user);
                let along = [(object, COPY)];
                // Two at once, of one object.
                let both = [0, 1].map(|_| {
                    spawn_image(&mut user, &along, file.len() as u64, PROFILE).expect("a child")
                });
                for child in both {
                    let expected = (7 + i64::from(number), ExitReason::Exited);
                    assert_eq!(wait(&mut user, child), expected);
                    assert_eq!(release(&mut user, child), Status::Ok);
                }
                assert_eq!(account(&user), before);
                assert_eq!(unmap(&mut user, object, file.len() as u64), Status::Ok);
                // Nobody maps it: a capability is enough, and the child does not need even that.
                let child = spawn_image(&mut user, &along, file.len() as u64, PROFILE).unwrap();
                assert_eq!(release(&mut user, object), Status::Ok);
                assert_eq!(wait(&mut user, child).0, 7 + i64::from(number));
                assert_eq!(release(&mut user, child), Status::Ok);
            }
        });
    }
}

#[test]
fn what_is_no_program_in_a_memory_object_is_refused_and_changes_nothing() {
    play(config(1), |mut user: User| {
        use ExceptionKind::{Failed, InvalidArgument, Overloaded};
        let file = program(0);
        let bytes = file.len() as u64;
        let object = object_with(&mut user, &file).unwrap();
        let timer = user.cap("timer");
        let before = account(&user);
        let good = [(object, COPY)];
        let cases: [(&[(CapSlot, TransferMode)], u64, ResourceProfile, _); 12] = [
            (&[], bytes, PROFILE, Ok(InvalidArgument)),
            (&[(timer, COPY)], bytes, PROFILE, Ok(InvalidArgument)),
            (&[(object, TransferMode::Move)], bytes, PROFILE, Err(Status::TransferRefused)),
            (&[(object, COPY), (object, COPY)], bytes, PROFILE, Err(Status::TransferRefused)),
            (&[(CapSlot::new(60, 1), COPY)], bytes, PROFILE, Err(Status::Disconnected)),
            (&good, bytes.next_multiple_of(PAGE) + 1, PROFILE, Ok(InvalidArgument)),
            (&good, u64::MAX, PROFILE, Ok(InvalidArgument)),
            // Headers that are cut, and segments that reach beyond what is said to be the file.
            (&good, 0, PROFILE, Ok(Failed)),
            (&good, 63, PROFILE, Ok(Failed)),
            (&good, 0x500, PROFILE, Ok(Failed)),
            (&good, bytes, ResourceProfile { frames: 16, ..PROFILE }, Ok(Overloaded)),
            (&good, bytes, ResourceProfile { frames: 50_000, ..PROFILE }, Ok(Overloaded)),
        ];
        for (along, bytes, profile, expected) in cases {
            let refused = spawn_image(&mut user, along, bytes, profile).expect_err("no child");
            assert_eq!(refusal(&refused), expected, "{along:?} {bytes}");
            assert_eq!(account(&user), before);
        }
        // Not a method that takes capabilities.
        let mut sleep = user.sleeping(0, 1);
        sleep.transfers = 1;
        assert_eq!(user.call(sleep).status(), Status::TransferRefused);
        // A word of the file that is wrong is the child's fault alone, and what is wrong of its headers nobody's.
        for at in (0..0x400).step_by(4) {
            user.space().store_u32(START + at, u32::MAX);
            match spawn_image(&mut user, &good, bytes, PROFILE) {
                Ok(child) => {
                    assert_eq!(kill(&mut user, child, 1), Status::Ok);
                    wait(&mut user, child);
                    assert_eq!(release(&mut user, child), Status::Ok);
                }
                Err(refused) => assert!(refusal(&refused).is_ok(), "{refused:?}"),
            }
            assert_eq!(account(&user), before);
            let word = file.get(at as usize..at as usize + 4).unwrap();
            user.space().store_u32(START + at, u32::from_le_bytes(word.try_into().unwrap()));
        }
        let child = spawn_image(&mut user, &good, bytes, PROFILE).expect("it is as it was");
        assert_eq!(wait(&mut user, child).0, 7);
    });
}

/// Q4: memory is denied at every allocation on the way.
#[test]
fn lack_of_memory_at_every_step_leaves_everything_as_it_was() {
    let spawned = Arc::new(AtomicU64::new(0));
    let attempt = |out_of_memory_at| {
        let count = spawned.clone();
        let main = move |mut user: User| {
            let file = program(0);
            let Ok(object) = object_with(&mut user, &file) else { return };
            let before = account(&user);
            match spawn_image(&mut user, &[(object, COPY)], file.len() as u64, PROFILE) {
                Ok(child) => {
                    count.fetch_add(1, SeqCst);
                    assert_eq!(wait(&mut user, child).0, 7);
                    assert_eq!(release(&mut user, child), Status::Ok);
                }
                Err(refused) => assert!(
                    matches!(refused.status(), Status::Exception | Status::OutOfMemory),
                    "{refused:?}"
                ),
            }
            assert_eq!(account(&user), before);
        };
        play(Config { out_of_memory_at, ..config(1) }, main)
    };
    let all = attempt(None).allocations;
    assert!(all > 20, "{all} allocations");
    let refused = (0..all).filter(|at| {
        let before = spawned.load(SeqCst);
        attempt(Some(*at));
        spawned.load(SeqCst) == before
    });
    assert!(refused.count() > 10, "allocations of a spawn that were denied");
}

/// The word of a file that a thread writes: headers, notes and code.
const CHANGED: [u64; 9] = [0x10, 0x18, 0x20, 0x38, 0x44, 0x78, 0x98, 0xb0, 0x688];

/// C8: a file that is written while it is read gives a child, or a refusal, and nothing else.
#[test]
fn a_file_that_changes_while_it_is_read_breaks_no_rule() {
    for cpus in [2, 3, 4] {
        let (stop, stopped) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let writer = {
            let (stop, stopped) = (stop.clone(), stopped.clone());
            body(move |mut user: User| {
                let file = program(0);
                let mut round = 0_u64;
                while !stop.load(SeqCst) {
                    round = round.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let at = CHANGED[(round >> 33) as usize % CHANGED.len()];
                    let was = file[at as usize..at as usize + 4].try_into().unwrap();
                    user.space().store_u32(START + at, (round >> 32) as u32);
                    user.compute();
                    user.space().store_u32(START + at, u32::from_le_bytes(was));
                }
                stopped.store(true, SeqCst);
                // The process ends with its first thread's exit.
                loop {
                    user.compute();
                }
            })
        };
        let main = move |mut user: User| {
            let file = program(0);
            let object = object_with(&mut user, &file).unwrap();
            user.spawn(2, 0).expect("a writer");
            let before = account(&user);
            let (mut made, mut refused) = (0, 0);
            for _ in 0..200 {
                match spawn_image(&mut user, &[(object, COPY)], file.len() as u64, PROFILE) {
                    Ok(child) => {
                        made += 1;
                        // Its entry may be anywhere in its code.
                        assert_eq!(kill(&mut user, child, 1), Status::Ok);
                        wait(&mut user, child);
                        assert_eq!(release(&mut user, child), Status::Ok);
                    }
                    Err(done) => {
                        refused += 1;
                        assert!(refusal(&done).is_ok(), "{done:?}");
                    }
                }
                assert_eq!(account(&user), before);
            }
            assert!(made + refused == 200);
            stop.store(true, SeqCst);
            while !stopped.load(SeqCst) {
                user.compute();
            }
            user.exit(0)
        };
        run(config(cpus), vec![maker(main)], bodies(vec![writer]));
    }
}

/// C8: whoever has the object may let go of it while it is read.
#[test]
fn an_object_that_everybody_lets_go_of_is_read_to_its_end() {
    for cpus in [1, 2, 3] {
        let place = Arc::new(AtomicU64::new(0));
        let dropper = {
            let place = place.clone();
            body(move |mut user: User| {
                loop {
                    let object = match place.swap(0, SeqCst) {
                        0 => {
                            user.compute();
                            continue;
                        }
                        bits => CapSlot::from_bits(bits),
                    };
                    let bytes = program(0).len() as u64;
                    let opcode = Opcode::Release as u8;
                    let params =
                        UnmapParams { address: START, bytes: bytes.next_multiple_of(PAGE) };
                    let sqe = user.typed::<Unmap>(object, 0, &params);
                    assert_eq!(user.call(sqe).status(), Status::Ok);
                    let sqe = Sqe { opcode, cap: object.to_bits(), ..Sqe::default() };
                    assert_eq!(user.call(sqe).status(), Status::Ok);
                    place.store(1, SeqCst);
                    while place.load(SeqCst) == 1 {
                        user.compute();
                    }
                }
            })
        };
        let main = move |mut user: User| {
            user.spawn(2, 0).expect("a thread that lets go");
            let file = program(0);
            let frames = |user: &User| user.process().ops.ledger.reading(Line::Frames).used;
            let before = frames(&user);
            for _ in 0..20 {
                let object = object_with(&mut user, &file).unwrap();
                place.store(object.to_bits(), SeqCst);
                // It was let go of before the call saw it, or the child runs.
                match spawn_image(&mut user, &[(object, COPY)], file.len() as u64, PROFILE) {
                    Ok(child) => {
                        assert_eq!(wait(&mut user, child), (7, ExitReason::Exited));
                        assert_eq!(release(&mut user, child), Status::Ok);
                    }
                    Err(done) => {
                        let refused = refusal(&done);
                        let gone = [Err(Status::Disconnected), Ok(ExceptionKind::Disconnected)];
                        assert!(gone.contains(&refused), "{refused:?}");
                    }
                }
                while place.load(SeqCst) != 1 {
                    user.compute();
                }
                assert_eq!(frames(&user), before, "nobody has it any more");
                place.store(0, SeqCst);
            }
            user.exit(0)
        };
        run(config(cpus), vec![maker(main)], bodies(vec![dropper]));
    }
}

/// ADR 300, ADR 360: whoever made the object may end while another process reads it, which pays for it from then on.
fn maker_ends(cpus: usize, seed: u64) {
    let spawner = maker(move |mut user: User| {
        let cap = user.cap("endpoint").to_bits();
        let recv = Sqe { opcode: Opcode::Recv as u8, cap, result_transfers: 1, ..Sqe::default() };
        let done = user.call(recv);
        assert_eq!((done.status(), done.cqe.transfers()), (Status::Ok, 1));
        let object = CapSlot::from_bits(done.words[done.cqe.length.div_ceil(8) as usize]);
        let opcode = Opcode::Return as u8;
        let answer = Sqe { opcode, arg: done.cqe.token, ..Sqe::default() };
        assert_eq!(user.call(answer).status(), Status::Ok);
        let bytes = program(0).len() as u64;
        let before = account(&user);
        loop {
            match spawn_image(&mut user, &[(object, COPY)], bytes, PROFILE) {
                Ok(child) => {
                    assert_eq!(wait(&mut user, child), (7, ExitReason::Exited));
                    assert_eq!(release(&mut user, child), Status::Ok);
                }
                Err(done) => {
                    // It was gone before it was read; never in between.
                    let gone = [Err(Status::Disconnected), Ok(ExceptionKind::Disconnected)];
                    assert!(gone.contains(&refusal(&done)), "{:?}", refusal(&done));
                    break;
                }
            }
            assert_eq!(account(&user), before);
        }
        assert_eq!(account(&user), before);
    })
    .with("endpoint", Grant::Endpoint);
    let ends = maker(move |mut user: User| {
        let file = program(0);
        let object = object_with(&mut user, &file).unwrap();
        user.write(0, &[7, object.to_bits(), COPY as u64]);
        let service = user.cap("service");
        let call = Sqe { transfers: 1, ..User::calling(service, 0, 8) };
        assert_eq!(user.call(call).status(), Status::Ok);
        for _ in 0..seed % 17 {
            user.compute();
        }
    })
    .with("service", Grant::Client(0, 0, 1));
    run(config(cpus), vec![spawner, ends], bodies(vec![]));
}

#[test]
fn an_object_whose_maker_ends_is_read_to_its_end() {
    for seed in 0..34 {
        for cpus in [1, 2, 3] {
            maker_ends(cpus, seed);
        }
    }
}
