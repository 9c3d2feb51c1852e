//! Memory objects on a machine of host threads: made, mapped, passed on, and gone with who pays for them.

use abi_types::{CapSlot, ExceptionKind, NEVER, Opcode, Sqe, Status, TransferMode};
use core_ledger::Line;
use kernel_ops::machine::Space;
use kernel_ops::shared::{MemoryFacet, ReadError};
use kernel_process::shared;
use schema::frame_allocator::methods::CreateObject;
use schema::frame_allocator::{CreateObjectParams, CreateObjectResults};
use schema::memory_capnp::MemoryAccess;
use schema::memory_object::methods::{Info, Map, Protect, Restrict, Unmap};
use schema::memory_object::{
    InfoResults, MapParams, MapResults, ProtectParams, RestrictParams, RestrictResults, UnmapParams,
};
use schema_wire::{Exception, Message, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use test_machine::{Config, Done, Grant, HostObject, Process, User, run};
use zerocopy::IntoBytes;

const PAGE: u64 = 4096;
const START: u64 = 0x40_0000;

fn process(name: &'static str, main: impl Fn(User) + Send + Sync + 'static) -> Process {
    let mut process = Process::new(name, main)
        .with("memory", Grant::Object(HostObject::VirtualMemory))
        .with("frames", Grant::Object(HostObject::FrameAllocator));
    process.profile.frames = 200;
    process
}

fn on(cpus: usize) -> Config {
    Config { cpus, ..Config::default() }
}

fn results<T: for<'m> Value<'m>>(done: &Done) -> Result<T, ExceptionKind> {
    let bytes = &done.words.as_bytes()[..done.cqe.length as usize];
    match done.status() {
        Status::Ok => Ok(Message::new(bytes).unwrap().get().unwrap()),
        Status::Exception => Err(Exception::decode(bytes).unwrap().kind()),
        other => panic!("{other:?}"),
    }
}

fn create(user: &mut User, pages: u64) -> Result<CapSlot, ExceptionKind> {
    let frames = user.cap("frames");
    let sqe = user.typed::<CreateObject>(frames, 0, &CreateObjectParams { bytes: pages * PAGE });
    let made: CreateObjectResults = results(&user.call(sqe))?;
    Ok(CapSlot::new(made.object_index.into(), made.object_generation))
}

fn map(
    user: &mut User,
    object: CapSlot,
    address: u64,
    (first, pages): (u64, u64),
    access: MemoryAccess,
) -> Result<u64, ExceptionKind> {
    let (offset, bytes) = (first * PAGE, pages * PAGE);
    let params = MapParams { address, fixed: true, offset, bytes, access };
    let sqe = user.typed::<Map>(object, 0, &params);
    results::<MapResults>(&user.call(sqe)).map(|results| results.mapped)
}

fn unmap(user: &mut User, object: CapSlot, address: u64, pages: u64) -> Result<(), ExceptionKind> {
    let params = UnmapParams { address, bytes: pages * PAGE };
    let sqe = user.typed::<Unmap>(object, 0, &params);
    status(&user.call(sqe))
}

fn status(done: &Done) -> Result<(), ExceptionKind> {
    if done.status() == Status::Ok { Ok(()) } else { results::<MapResults>(done).map(|_| ()) }
}

fn info(user: &mut User, object: CapSlot) -> Result<InfoResults, ExceptionKind> {
    results(&user.call(User::calling_of::<Info>(object)))
}

fn release(user: &mut User, slot: CapSlot) -> Status {
    let sqe = Sqe { opcode: Opcode::Release as u8, cap: slot.to_bits(), ..Sqe::default() };
    user.call(sqe).status()
}

fn used(user: &User, line: Line) -> u32 {
    user.process().ops.ledger.reading(line).used
}

/// The object behind a slot.
fn facet(user: &User, slot: CapSlot) -> MemoryFacet {
    match user.process().ops.lookup(slot).unwrap().object {
        kernel_ops::capability::Object::Other(HostObject::MemoryObject(facet)) => facet,
        other => panic!("{other:?}"),
    }
}

fn load(user: &User, address: u64) -> u32 {
    user.space().load_u32(address).unwrap()
}

const WRITE: MemoryAccess = MemoryAccess::Write;
const READ: MemoryAccess = MemoryAccess::Read;

/// C11: one object, seen at two places and by a reader of its own; gone with its last capability and page.
#[test]
fn an_object_is_the_same_wherever_it_is_mapped() {
    for cpus in [1, 2, 4] {
        let main = |mut user: User| {
            let (m, before) = (user.machine(), used(&user, Line::Frames));
            let bytes = used(&user, Line::KernelBytes);
            let left = m.shared_left();
            let object = create(&mut user, 20).unwrap();
            assert_eq!(used(&user, Line::Frames), before + 21, "pages, and what finds them");
            assert_eq!(map(&mut user, object, START, (0, 20), WRITE), Ok(START));
            let other = START + 0x10_0000;
            assert_eq!(map(&mut user, object, other, (3, 2), READ), Ok(other));
            assert_eq!(used(&user, Line::Frames), before + 21, "who made it pays once");
            user.space().store_u32(START + 4 * PAGE + 8, 77);
            assert_eq!(load(&user, other + PAGE + 8), 77);
            assert!(user.space().copy_out(other, &[1]).is_err(), "mapped for reading");
            let told = info(&mut user, object).unwrap();
            assert_eq!((told.bytes, told.mapped_pages), (20 * PAGE, 22));
            let mut copy = [0; 12];
            let facet = facet(&user, object);
            shared::read(m, facet, 4 * PAGE, &mut copy).unwrap();
            assert_eq!(copy, [0, 0, 0, 0, 0, 0, 0, 0, 77, 0, 0, 0]);
            assert_eq!(shared::read(m, facet, 20 * PAGE - 11, &mut copy), Err(ReadError::TooShort));
            assert_eq!(shared::read(m, facet, u64::MAX, &mut copy), Err(ReadError::TooShort));
            assert_eq!(unmap(&mut user, object, START, 20), Ok(()));
            assert_eq!(release(&mut user, object), Status::Ok);
            assert_eq!(load(&user, other + PAGE + 8), 77, "a page keeps it");
            assert!(m.shared_left() < left);
            let memory = user.cap("memory");
            let params = schema::virtual_memory::UnmapParams { address: other, bytes: 2 * PAGE };
            let sqe = user.typed::<schema::virtual_memory::methods::Unmap>(memory, 0, &params);
            assert_eq!(user.call(sqe).status(), Status::Ok);
            assert_eq!((m.shared_left(), used(&user, Line::Frames)), (left, before));
            assert_eq!(shared::read(m, facet, 0, &mut copy), Err(ReadError::Gone));
            // The list of regions has grown.
            assert!(used(&user, Line::KernelBytes) >= bytes);
        };
        run(on(cpus), vec![process("main", main)], vec![]);
    }
}

#[test]
fn wrong_arguments_are_refused_and_change_nothing() {
    let main = |mut user: User| {
        use ExceptionKind::{Failed, InvalidArgument, Overloaded};
        let object = create(&mut user, 4).unwrap();
        map(&mut user, object, START, (0, 2), READ).unwrap();
        let before = (used(&user, Line::Frames), user.space().mapped());
        for (first, pages) in [(4, 1), (0, 5), (3, 2), (u64::MAX / PAGE, 1)] {
            let refused = map(&mut user, object, START + 8 * PAGE, (first, pages), READ);
            assert_eq!(refused, Err(InvalidArgument), "{first} {pages}");
        }
        assert_eq!(map(&mut user, object, START + PAGE, (0, 1), READ), Err(Failed));
        assert_eq!(unmap(&mut user, object, START, 3), Err(Failed));
        // Pages of the process's own, and of another object.
        let memory = user.cap("memory");
        let own = schema::virtual_memory::MapParams {
            address: START + 2 * PAGE,
            bytes: PAGE,
            access: WRITE,
            fixed: true,
        };
        let sqe = user.typed::<schema::virtual_memory::methods::Map>(memory, 0, &own);
        assert_eq!(user.call(sqe).status(), Status::Ok);
        assert_eq!(unmap(&mut user, object, START + 2 * PAGE, 1), Err(Failed));
        let another = create(&mut user, 1).unwrap();
        assert_eq!(unmap(&mut user, another, START, 1), Err(Failed));
        assert_eq!(release(&mut user, another), Status::Ok);
        assert_eq!(create(&mut user, 300), Err(Overloaded), "more than the profile's frames");
        // A facet that allows reading alone.
        let params = RestrictParams { write: false, execute: false };
        let sqe = user.typed::<Restrict>(object, 0, &params);
        let made: RestrictResults = results(&user.call(sqe)).unwrap();
        let reader = CapSlot::new(made.facet_index.into(), made.facet_generation);
        assert_eq!(map(&mut user, reader, START + 8 * PAGE, (0, 1), WRITE), Err(Failed));
        let place = START + 8 * PAGE;
        assert_eq!(map(&mut user, reader, place, (0, 1), READ), Ok(place));
        let protect = ProtectParams { address: place, bytes: PAGE, access: WRITE };
        // Not more than the facet it was mapped by, by whichever it is asked.
        for by in [reader, object] {
            let sqe = user.typed::<Protect>(by, 0, &protect);
            assert_eq!(status(&user.call(sqe)), Err(Failed));
        }
        assert_eq!(unmap(&mut user, reader, place, 1), Ok(()));
        let told = info(&mut user, reader).unwrap();
        assert_eq!((told.can_write, told.can_execute, told.mapped_pages), (false, false, 2));
        assert_eq!(release(&mut user, reader), Status::Ok);
        assert_eq!(used(&user, Line::Frames), before.0 + 1);
    };
    run(on(1), vec![process("main", main)], vec![]);
}

/// PB11, Q4: without memory for its n-th frame an object is not made, and nothing is lost.
#[test]
fn out_of_memory_at_each_frame_changes_nothing() {
    for cpus in [1, 2] {
        let main = |mut user: User| {
            let m = user.machine();
            // The record's storage is there from then on.
            let first = create(&mut user, 1).unwrap();
            assert_eq!(release(&mut user, first), Status::Ok);
            let before = (used(&user, Line::Frames), used(&user, Line::KernelBytes));
            let slots = used(&user, Line::CapSlots);
            let left = m.shared_left();
            for frames in 0..31 {
                m.leave_shared(frames);
                assert_eq!(create(&mut user, 30), Err(ExceptionKind::Overloaded), "{frames}");
                assert_eq!(m.shared_left(), frames, "what was made is free again");
                let now = (used(&user, Line::Frames), used(&user, Line::KernelBytes));
                assert_eq!((now, used(&user, Line::CapSlots)), (before, slots));
            }
            m.leave_shared(31);
            let object = create(&mut user, 30).unwrap();
            // Nor is it mapped without tables.
            user.space().leave(0);
            let refused = map(&mut user, object, START, (0, 30), WRITE);
            assert_eq!(refused, Err(ExceptionKind::Overloaded));
            assert_eq!(info(&mut user, object).unwrap().mapped_pages, 0);
            user.space().leave(u64::MAX);
            assert_eq!(release(&mut user, object), Status::Ok);
            assert_eq!(m.shared_left(), 31);
            m.leave_shared(left);
        };
        run(on(cpus), vec![process("main", main)], vec![]);
    }
}

/// Slots that are used up are told before anything stays.
#[test]
fn a_full_table_makes_no_object() {
    let main = |mut user: User| {
        let mut made = Vec::new();
        let refused = loop {
            match create(&mut user, 1) {
                Ok(object) => made.push(object),
                Err(refused) => break refused,
            }
        };
        assert_eq!(refused, ExceptionKind::Overloaded);
        let frames = used(&user, Line::Frames);
        assert_eq!(create(&mut user, 1), Err(ExceptionKind::Overloaded));
        assert_eq!(used(&user, Line::Frames), frames);
        let sqe =
            user.typed::<Restrict>(made[0], 0, &RestrictParams { write: true, execute: true });
        assert_eq!(status(&user.call(sqe)), Err(ExceptionKind::Overloaded));
        assert!(info(&mut user, made[0]).is_ok());
    };
    run(on(1), vec![process("main", main)], vec![]);
}

fn receiving(user: &User) -> Sqe {
    let cap = user.cap("endpoint").to_bits();
    let opcode = Opcode::Recv as u8;
    Sqe { opcode, cap, user_data: 7, result_transfers: 8, ..Sqe::default() }
}

/// Receives a call that brings one capability, and answers it.
fn receive_one(user: &mut User) -> CapSlot {
    let next = receiving(user);
    let done = user.call(next);
    assert_eq!((done.status(), done.cqe.transfers()), (Status::Ok, 1));
    let slot = CapSlot::from_bits(done.words[done.cqe.length.div_ceil(8) as usize]);
    let opcode = Opcode::Return as u8;
    let answer = Sqe { opcode, arg: done.cqe.token, user_data: 8, ..Sqe::default() };
    assert_eq!(user.call(answer).status(), Status::Ok);
    slot
}

/// Calls with one capability.
fn send(user: &mut User, service: CapSlot, object: CapSlot, mode: TransferMode) -> Status {
    user.write(0, &[7, object.to_bits(), u64::from(mode as u32)]);
    user.call(Sqe { transfers: 1, ..User::calling(service, 0, 8) }).status()
}

/// What the maker of an object does with it before it ends.
type Before = fn(&mut User, CapSlot);

/// A maker that sends its object and ends, and a process that gets it.
fn maker_ends(
    cpus: usize,
    mode: TransferMode,
    before: Before,
    after: impl Fn(&mut User, CapSlot, &AtomicU32) + Send + Sync + 'static,
) {
    let said = Arc::new(AtomicU32::new(0));
    let getter = {
        let said = said.clone();
        process("getter", move |mut user: User| {
            let object = receive_one(&mut user);
            after(&mut user, object, &said);
        })
        .with("endpoint", Grant::Endpoint)
    };
    let maker = process("maker", move |mut user: User| {
        let object = create(&mut user, 3).unwrap();
        map(&mut user, object, START, (0, 3), WRITE).unwrap();
        user.space().store_u32(START + PAGE, 5);
        before(&mut user, object);
        let service = user.cap("service");
        assert_eq!(send(&mut user, service, object, mode), Status::Ok);
        while said.load(SeqCst) == 0 {
            user.compute();
        }
    })
    .with("service", Grant::Client(0, 0, 1));
    run(on(cpus), vec![getter, maker], vec![]);
}

/// Waits until nobody but the caller's process is there.
fn alone(user: &mut User) {
    while user.machine().live() > 1 {
        user.compute();
    }
}

/// ADR 300: whoever maps an object pays, and keeps it when its maker ends.
#[test]
fn a_mapping_outlives_its_objects_maker() {
    for (cpus, mode) in [(1, TransferMode::Copy), (1, TransferMode::Move), (3, TransferMode::Copy)]
    {
        maker_ends(
            cpus,
            mode,
            |_, _| {},
            |user, object, said| {
                let before = used(user, Line::Frames);
                let at = 3 * START;
                assert_eq!(map(user, object, at, (1, 1), WRITE), Ok(at));
                assert_eq!(
                    used(user, Line::Frames),
                    before + 4,
                    "all of it, although a page is mapped"
                );
                assert_eq!(load(user, at), 5);
                said.store(1, SeqCst);
                alone(user);
                assert_eq!(load(user, at), 5);
                assert_eq!(info(user, object).unwrap().mapped_pages, 1);
                // Mapped again without anybody's leave but its own.
                assert_eq!(map(user, object, at + PAGE, (0, 1), READ), Ok(at + PAGE));
                assert_eq!(unmap(user, object, at, 2), Ok(()));
                assert_eq!(used(user, Line::Frames), before);
                // Nobody pays: the capability names nothing.
                assert_eq!(info(user, object), Err(ExceptionKind::Disconnected));
                assert_eq!(map(user, object, at, (0, 1), READ), Err(ExceptionKind::Disconnected));
                assert_eq!(unmap(user, object, at, 1), Err(ExceptionKind::Disconnected));
                assert_eq!(release(user, object), Status::Ok);
            },
        );
    }
}

/// A capability alone keeps nothing, and costs nobody anything.
#[test]
fn a_capability_does_not_outlive_who_pays() {
    for cpus in [1, 3] {
        maker_ends(
            cpus,
            TransferMode::Copy,
            |_, _| {},
            |user, object, said| {
                let before = used(user, Line::Frames);
                said.store(1, SeqCst);
                alone(user);
                assert_eq!(info(user, object), Err(ExceptionKind::Disconnected));
                assert_eq!(used(user, Line::Frames), before);
                // The record is another object's by now, and the old name is not.
                let another = create(user, 1).unwrap();
                assert!(info(user, another).is_ok());
                assert_eq!(info(user, object), Err(ExceptionKind::Disconnected));
                assert_eq!(release(user, object), Status::Ok);
                assert!(info(user, another).is_ok(), "a stale capability releases nothing");
            },
        );
    }
}

/// The last capability is released by somebody else: its maker pays no more.
#[test]
fn who_releases_last_frees_the_makers_object() {
    for cpus in [1, 3] {
        let before: Before = |user, object| {
            assert_eq!(unmap(user, object, START, 3), Ok(()));
        };
        maker_ends(cpus, TransferMode::Move, before, |user, object, said| {
            let left = user.machine().shared_left();
            assert_eq!(release(user, object), Status::Ok);
            assert_eq!(user.machine().shared_left(), left + 4);
            said.store(1, SeqCst);
        });
    }
}

/// A copy counts: what its sender releases is not the last.
#[test]
fn a_copy_keeps_an_object_that_its_sender_released() {
    for cpus in [1, 3] {
        let has_released = Arc::new(AtomicU32::new(0));
        let getter = {
            let has_released = has_released.clone();
            process("getter", move |mut user: User| {
                let object = receive_one(&mut user);
                while has_released.load(SeqCst) == 0 {
                    user.compute();
                }
                assert_eq!(map(&mut user, object, START, (0, 2), WRITE), Ok(START));
                has_released.store(2, SeqCst);
            })
            .with("endpoint", Grant::Endpoint)
        };
        let maker = process("maker", move |mut user: User| {
            let object = create(&mut user, 2).unwrap();
            let service = user.cap("service");
            assert_eq!(send(&mut user, service, object, TransferMode::Copy), Status::Ok);
            assert_eq!(release(&mut user, object), Status::Ok);
            has_released.store(1, SeqCst);
            while has_released.load(SeqCst) == 1 {
                user.compute();
            }
        })
        .with("service", Grant::Client(0, 0, 1));
        run(on(cpus), vec![getter, maker], vec![]);
    }
}

/// A transfer that is refused leaves as many capabilities as there were.
#[test]
fn a_refused_transfer_retains_nothing() {
    let server = process("server", |mut user: User| {
        // Takes none.
        let next = Sqe { result_transfers: 0, ..receiving(&user) };
        let done = user.call(next);
        assert_eq!((done.status(), done.cqe.transfers()), (Status::Ok, 0));
        let opcode = Opcode::Return as u8;
        let answer = Sqe { opcode, arg: done.cqe.token, user_data: 8, ..Sqe::default() };
        assert_eq!(user.call(answer).status(), Status::Ok);
    })
    .with("endpoint", Grant::Endpoint);
    let client = process("client", |mut user: User| {
        let left = user.machine().shared_left();
        let object = create(&mut user, 2).unwrap();
        let service = user.cap("service");
        let refused = send(&mut user, service, object, TransferMode::Copy);
        assert_eq!(refused, Status::TransferRefused);
        assert_eq!(release(&mut user, object), Status::Ok);
        assert_eq!(user.machine().shared_left(), left);
        assert_eq!(user.call(User::calling(service, 0, 0)).status(), Status::Ok);
    })
    .with("service", Grant::Client(0, 0, 1));
    run(on(1), vec![server, client], vec![]);
}

fn parking(user: &User, word: u64, expected: u32) -> Sqe {
    let cap = user.cap("park").to_bits();
    let (opcode, arg, address) = (Opcode::Park as u8, word, u64::from(expected));
    Sqe { opcode, cap, arg, address, result_address: NEVER, user_data: 5, ..Sqe::default() }
}

/// K3: a word of an object is one place, whatever its address; a word of a process's own is its own.
#[test]
fn a_word_of_an_object_is_one_park_key() {
    for cpus in [1, 2] {
        let sleeper = process("sleeper", |mut user: User| {
            let object = receive_one(&mut user);
            let at = 3 * START;
            assert_eq!(map(&mut user, object, at, (0, 1), WRITE), Ok(at));
            let park = parking(&user, at + 8, 0);
            let woken = user.call(park).status();
            assert!(matches!(woken, Status::Woken | Status::Mismatch), "{woken:?}");
        })
        .with("endpoint", Grant::Endpoint);
        let waker = process("waker", |mut user: User| {
            let object = create(&mut user, 2).unwrap();
            map(&mut user, object, START, (0, 2), WRITE).unwrap();
            // The same address as the sleeper's, and private.
            user.space().map(3 * START, 1, true);
            let service = user.cap("service");
            assert_eq!(send(&mut user, service, object, TransferMode::Copy), Status::Ok);
            user.linger();
            let cap = user.cap("park").to_bits();
            let unpark = |arg| Sqe {
                opcode: Opcode::Unpark as u8,
                cap,
                arg,
                address: 1,
                user_data: 6,
                ..Sqe::default()
            };
            for other in [3 * START + 8, START + 12, START + PAGE + 8] {
                let done = user.call(unpark(other));
                assert_eq!((done.status(), done.cqe.length), (Status::Ok, 0), "{other:#x}");
            }
            user.space().store_u32(START + 8, 1);
            while user.machine().live() > 1 {
                let done = user.call(unpark(START + 8));
                assert_eq!(done.status(), Status::Ok);
                user.compute();
            }
        })
        .with("service", Grant::Client(0, 0, 1));
        run(on(cpus), vec![sleeper, waker], vec![]);
    }
}

/// A step of a history, by small numbers.
fn next(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

/// Objects that come and go, against a map from each page to the page of an object behind it, whose bytes say which it is.
#[test]
fn histories_agree_with_a_slow_model() {
    for seed in 0..40 {
        let main = move |mut user: User| {
            let m = user.machine();
            let mut state = seed + 1;
            let mut objects: Vec<Option<(CapSlot, u64, u64)>> = vec![None; 4];
            let mut pages: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
            let mut named = 0;
            for _ in 0..120 {
                let which = next(&mut state, 4) as usize;
                let (first, count) = (next(&mut state, 6), 1 + next(&mut state, 4));
                let place = next(&mut state, 24);
                let at = START + place * PAGE;
                let range = place..place + count;
                match (next(&mut state, 5), objects[which]) {
                    (0, None) => {
                        named += 1;
                        let length = 1 + next(&mut state, 8);
                        let object = create(&mut user, length).unwrap();
                        objects[which] = Some((object, length, named));
                    }
                    (1, Some((object, ..))) if next(&mut state, 3) == 0 => {
                        assert_eq!(release(&mut user, object), Status::Ok);
                        objects[which] = None;
                    }
                    (2 | 3, Some((object, length, name))) => {
                        let got = map(&mut user, object, at, (first, count), WRITE);
                        let is_free = range.clone().all(|page| !pages.contains_key(&page));
                        if first + count > length {
                            assert_eq!(got, Err(ExceptionKind::InvalidArgument));
                        } else if !is_free {
                            assert_eq!(got, Err(ExceptionKind::Failed));
                        } else {
                            assert_eq!(got, Ok(at));
                            for (page, of) in range.zip(first..) {
                                pages.insert(page, (name, of));
                                let word = (name << 8 | of) as u32;
                                user.space().store_u32(START + page * PAGE, word);
                            }
                        }
                    }
                    (4, Some((object, _, name))) => {
                        let got = unmap(&mut user, object, at, count);
                        let all = range.clone();
                        let mut all = all.map(|page| pages.get(&page).map(|(of, _)| *of));
                        let is_its = all.all(|of| of == Some(name));
                        assert_eq!(got, if is_its { Ok(()) } else { Err(ExceptionKind::Failed) });
                        if is_its {
                            pages.retain(|page, _| !range.contains(page));
                        }
                    }
                    _ => {}
                }
                for (page, (name, of)) in &pages {
                    assert_eq!(load(&user, START + page * PAGE), (name << 8 | of) as u32);
                }
                for (object, length, name) in objects.clone().into_iter().flatten() {
                    let told = info(&mut user, object).unwrap();
                    let mapped = pages.values().filter(|(of, _)| *of == name).count() as u64;
                    assert_eq!((told.bytes, told.mapped_pages), (length * PAGE, mapped));
                }
                // Whatever has a capability or a page is there, and nothing else.
                let mut lives: Vec<u64> =
                    objects.iter().flatten().map(|(.., name)| *name).collect();
                lives.extend(pages.values().map(|(name, _)| *name));
                lives.sort_unstable();
                lives.dedup();
                assert_eq!(m.objects_in_use(), lives.len());
            }
        };
        run(on(1 + seed as usize % 2), vec![process("main", main)], vec![]);
    }
}
