//! Changes of address spaces, on a machine of host threads whose CPUs all remember every page: against a slow model,
//! out of memory at each page, at the end of their thread.

use abi_types::{ExceptionKind, NEVER, Opcode, Sqe, Status};
use schema::memory_capnp::MemoryAccess;
use schema::virtual_memory::methods::{Map, Protect, Reserve, Unmap};
use schema::virtual_memory::{MapParams, MapResults, ProtectParams, ReserveParams, UnmapParams};
use schema_wire::{Exception, Message};
use std::collections::BTreeMap;
use std::sync::Arc;
use test_machine::{Body, Config, Done, Grant, HostObject, Process, User, run};
use zerocopy::IntoBytes;

const PAGE: u64 = 4096;
const START: u64 = 0x40_0000;

fn body(body: impl Fn(User) + Send + Sync + 'static) -> Body {
    Arc::new(body)
}

fn process(main: impl Fn(User) + Send + Sync + 'static) -> Process {
    let mut process =
        Process::new("main", main).with("memory", Grant::Object(HostObject::VirtualMemory));
    process.profile.frames = 600;
    process
}

fn on(cpus: usize) -> Config {
    Config { cpus, ..Config::default() }
}

fn exception(done: &Done) -> (ExceptionKind, String) {
    let bytes = &done.words.as_bytes()[..done.cqe.length as usize];
    let said = Exception::decode(bytes).unwrap();
    (said.kind(), said.message().to_string())
}

fn map(user: &mut User, address: u64, pages: u64, fixed: bool) -> Result<u64, Done> {
    let memory = user.cap("memory");
    let access = MemoryAccess::Write;
    let params = MapParams { address, bytes: pages * PAGE, access, fixed };
    let sqe = user.typed::<Map>(memory, 0, &params);
    let done = user.call(sqe);
    if done.status() != Status::Ok {
        return Err(done);
    }
    let bytes = &done.words.as_bytes()[..done.cqe.length as usize];
    Ok(Message::new(bytes).unwrap().get::<MapResults>().unwrap().mapped)
}

fn unmapping(user: &mut User, address: u64, pages: u64) -> Sqe {
    let memory = user.cap("memory");
    user.typed::<Unmap>(memory, 0, &UnmapParams { address, bytes: pages * PAGE })
}

fn unmap(user: &mut User, address: u64, pages: u64) -> Status {
    let sqe = unmapping(user, address, pages);
    user.call(sqe).status()
}

/// What is mapped from [`START`] on, by page.
fn mapped(user: &User) -> Vec<u64> {
    user.space().mapped().into_iter().map(|page| page - START / PAGE).collect()
}

#[test]
fn pages_come_and_go() {
    for cpus in [1, 2, 4] {
        run(
            on(cpus),
            vec![process(|mut user: User| {
                assert_eq!(map(&mut user, START, 100, true).unwrap(), START);
                assert_eq!(mapped(&user), (0..100).collect::<Vec<_>>());
                assert_eq!(unmap(&mut user, START + PAGE, 70), Status::Ok);
                assert_eq!(mapped(&user), [0].into_iter().chain(71..100).collect::<Vec<_>>());
                assert_eq!(map(&mut user, START, 71, false).unwrap(), START + 100 * PAGE);
                assert_eq!(map(&mut user, START, 70, false).unwrap(), START + PAGE);
                assert_eq!(unmap(&mut user, START, 171), Status::Ok);
                assert_eq!(mapped(&user), []);
            })],
            vec![],
        );
    }
}

/// PB11, Q4: without memory for its n-th page a mapping leaves everything as it was.
#[test]
fn out_of_memory_at_each_page_changes_nothing() {
    for cpus in [1, 2] {
        run(
            on(cpus),
            vec![process(|mut user: User| {
                map(&mut user, START + 60 * PAGE, 3, true).unwrap();
                let before = mapped(&user);
                for left in 0..50 {
                    user.space().leave(left);
                    let refused = map(&mut user, START, 50, true).unwrap_err();
                    assert_eq!(refused.status(), Status::Exception);
                    let (kind, said) = exception(&refused);
                    assert_eq!(kind, ExceptionKind::Overloaded);
                    assert!(said.contains("memory"), "{said}");
                    assert_eq!(mapped(&user), before, "{left} pages were left");
                }
                user.space().leave(50);
                map(&mut user, START, 50, true).unwrap();
                user.space().leave(u64::MAX);
                assert_eq!(unmap(&mut user, START, 50), Status::Ok);
                assert_eq!(mapped(&user), before);
            })],
            vec![],
        );
    }
}

/// C6: the profile's frames are the limit, and come back with the pages.
#[test]
fn the_account_is_the_limit() {
    for cpus in [1, 2] {
        run(
            on(cpus),
            vec![process(|mut user: User| {
                for _ in 0..3 {
                    let refused = map(&mut user, START, 600, true).unwrap_err();
                    let (kind, said) = exception(&refused);
                    assert_eq!(kind, ExceptionKind::Overloaded);
                    assert!(said.contains("frames"), "{said}");
                    assert_eq!(mapped(&user), []);
                    map(&mut user, START, 500, true).unwrap();
                    assert_eq!(unmap(&mut user, START, 500), Status::Ok);
                }
            })],
            vec![],
        );
    }
}

/// An unmap that waits for other CPUs: its thread, or its process, ends before it.
#[test]
fn a_change_outlives_who_asked_for_it() {
    for cpus in [2, 4] {
        let bodies = vec![body(|mut user: User| {
            let start = START + user.argument * 200 * PAGE;
            map(&mut user, start, 150, true).unwrap();
            let unmap = unmapping(&mut user, start, 150);
            assert!(user.submit(unmap));
            // Taken, and not waited for.
            user.enter(0, 0);
        })];
        for exits in [false, true] {
            let main = move |mut user: User| {
                let handles: Vec<_> = (0..2).map(|n| user.spawn(0, n).unwrap()).collect();
                if exits {
                    user.linger();
                    user.exit(0);
                }
                for handle in handles {
                    let join = user.joining(handle);
                    assert_eq!(user.call(join).status(), Status::Ok);
                }
                while !mapped(&user).is_empty() {
                    user.compute();
                }
            };
            run(on(cpus), vec![process(main)], bodies.clone());
        }
    }
}

/// CANCEL does not call a change off, and its call completes once.
#[test]
fn a_change_is_not_called_off() {
    run(
        on(2),
        vec![process(|mut user: User| {
            map(&mut user, START, 100, true).unwrap();
            let unmap = Sqe { user_data: 7, ..unmapping(&mut user, START, 100) };
            let cancel =
                Sqe { opcode: Opcode::Cancel as u8, arg: 7, user_data: 8, ..Sqe::default() };
            assert!(user.submit(unmap) && user.submit(cancel));
            let mut seen = BTreeMap::new();
            while seen.len() < 2 {
                match user.take() {
                    Some(done) => assert_eq!(seen.insert(done.cqe.user_data, done.status()), None),
                    None => _ = user.enter(1, NEVER),
                }
            }
            assert_eq!(seen, BTreeMap::from([(7, Status::Ok), (8, Status::NotFound)]));
            assert_eq!(mapped(&user), []);
        })],
        vec![],
    );
}

/// Numbers that look random.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 11
}

/// What a page is to the model.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Page {
    Reserved,
    Mapped,
}

/// One thread's changes of its own pages, each compared with a map from page to use.
fn play(user: &mut User, seed: u64, base: u64, steps: u32) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut model: BTreeMap<u64, Page> = BTreeMap::new();
    let memory = user.cap("memory");
    for step in 0..steps {
        let first = random(&mut state) % 40;
        let pages = random(&mut state) % 60 + 1;
        let (address, bytes) = (base + first * PAGE, pages * PAGE);
        let range = || first..first + pages;
        let all = |wanted: &dyn Fn(Option<&Page>) -> bool| range().all(|p| wanted(model.get(&p)));
        let (is_right, new, sqe) = match random(&mut state) % 4 {
            0 => {
                let is_free = all(&|page| !matches!(page, Some(Page::Mapped)));
                let access = MemoryAccess::Write;
                let params = MapParams { address, bytes, access, fixed: true };
                let sqe = user.typed::<Map>(memory, 0, &params);
                (is_free, Some(Some(Page::Mapped)), sqe)
            }
            1 => {
                let params = ReserveParams { address, bytes, fixed: true };
                let sqe = user.typed::<Reserve>(memory, 0, &params);
                (all(&|page| page.is_none()), Some(Some(Page::Reserved)), sqe)
            }
            2 => {
                let sqe = unmapping(user, address, pages);
                (all(&|page| page.is_some()), Some(None), sqe)
            }
            _ => {
                let params = ProtectParams { address, bytes, access: MemoryAccess::Read };
                let sqe = user.typed::<Protect>(memory, 0, &params);
                (all(&|page| page == Some(&Page::Mapped)), None, sqe)
            }
        };
        let status = user.call(sqe).status();
        let expected = if is_right { Status::Ok } else { Status::Exception };
        assert_eq!(status, expected, "seed {seed}, step {step}");
        if let (true, Some(new)) = (is_right, new) {
            for page in range() {
                match new {
                    Some(new) => model.insert(page, new),
                    None => model.remove(&page),
                };
            }
        }
        let there: Vec<u64> = user.space().mapped();
        let own = base / PAGE..base / PAGE + 200;
        let there: Vec<u64> =
            there.into_iter().filter(|p| own.contains(p)).map(|p| p - base / PAGE).collect();
        let expected: Vec<u64> =
            model.iter().filter(|(_, page)| **page == Page::Mapped).map(|(p, _)| *p).collect();
        assert_eq!(there, expected, "seed {seed}, step {step}");
    }
}

#[test]
fn changes_are_what_the_model_says() {
    for (seed, cpus) in [(1, 1), (2, 1), (3, 2), (4, 3)] {
        let bodies = vec![body(move |mut user: User| {
            let base = START + user.argument * 400 * PAGE;
            let own_seed = seed * 10 + user.argument;
            play(&mut user, own_seed, base, 60);
        })];
        let main = move |mut user: User| {
            let handles: Vec<_> = (1..3).map(|n| user.spawn(0, n).unwrap()).collect();
            play(&mut user, seed, START, 60);
            for handle in handles {
                let join = user.joining(handle);
                assert_eq!(user.call(join).status(), Status::Ok);
            }
        };
        run(on(cpus), vec![process(main)], bodies);
    }
}
