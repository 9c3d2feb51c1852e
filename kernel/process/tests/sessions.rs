//! Sessions on a machine of host threads: who belongs to one, and what its end does.

use abi_types::{CapSlot, Opcode, Sqe, Status};
use kernel_ops::capability::ProcessKey;
use kernel_process::directory;
use schema::manifest::ResourceProfile;
use schema::process_handle;
use schema::process_spawner::{self, SpawnGrant, SpawnParams, SpawnResults};
use schema::process_spawner_capnp::GrantSource;
use schema::user_session::{InfoResults, LogoutResults, methods};
use schema_wire::{Encode, List, Message, Method};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use test_machine::{Body, Config, Done, Grant, HostObject, Process, User, run};
use zerocopy::IntoBytes;

const MESSAGE: u64 = 0x100_0000;

const PROFILE: ResourceProfile = ResourceProfile {
    cap_slots: 8,
    threads: 2,
    kernel_stack_pages: 2,
    frames: 100,
    sleep_waiters: 2,
    ring_entries: 8,
    ring_scratch_limit_bytes: 1 << 16,
    in_flight_call_limit: 4,
    endpoint_queue_limit: 4,
    kernel_bytes: 1 << 16,
    registered_buffers: 0,
};

fn body(body: impl Fn(User) + Send + Sync + 'static) -> Body {
    Arc::new(body)
}

/// A process that may start others.
fn spawner(name: &'static str, main: impl Fn(User) + Send + Sync + 'static) -> Process {
    let main = move |user: User| {
        user.space().map(MESSAGE, 1, true);
        main(user);
    };
    let mut process = Process::new(name, main);
    process.profile.cap_slots = 64;
    process.profile.threads = 40;
    process.profile.kernel_stack_pages = 40;
    process.profile.frames = 2_000;
    process.profile.sleep_waiters = 40;
    process.profile.kernel_bytes = 1 << 22;
    process.with("processes", Grant::Object(HostObject::ProcessSpawner))
}

fn bytes_of(done: &Done) -> &[u8] {
    assert_eq!(done.status(), Status::Ok);
    &done.words.as_bytes()[..done.cqe.length as usize]
}

fn spawn(user: &mut User, grants: &[SpawnGrant<'_>]) -> CapSlot {
    let params = SpawnParams {
        name: "child",
        binary: "0.elf",
        weight: 64,
        profile: PROFILE,
        grants: List::of(grants),
        arguments: List::EMPTY,
        environment: List::EMPTY,
    };
    let mut words = vec![0_u64; 256];
    let length = params.encode(words.as_mut_bytes()).unwrap() as u32;
    user.space().fill(MESSAGE, words.as_bytes()).unwrap();
    let (processes, spawn) = (user.cap("processes"), process_spawner::methods::Spawn::ORDINAL);
    let call = User::calling_a(process_spawner::INTERFACE_TAG, processes, spawn, length);
    let flags = abi_types::SqeFlags::BY_ADDRESS;
    let done = user.call(Sqe { flags, address: MESSAGE, ..call });
    let message = Message::new(bytes_of(&done)).unwrap();
    let handle: SpawnResults = message.get().unwrap();
    CapSlot::new(u32::from(handle.handle_index), handle.handle_generation)
}

fn wait(user: &mut User, handle: CapSlot) {
    let done = user.call(User::calling_of::<process_handle::methods::Wait>(handle));
    assert_eq!(done.status(), Status::Ok);
}

fn release(user: &mut User, slot: CapSlot) {
    let opcode = Opcode::Release as u8;
    let done = user.call(Sqe { opcode, cap: slot.to_bits(), ..Sqe::default() });
    assert_eq!(done.status(), Status::Ok);
}

fn info(user: &mut User, session: CapSlot) -> InfoResults {
    let done = user.call(User::calling_of::<methods::Info>(session));
    Message::new(bytes_of(&done)).unwrap().get().unwrap()
}

fn logout(user: &mut User, session: CapSlot) -> LogoutResults {
    let done = user.call(User::calling_of::<methods::Logout>(session));
    Message::new(bytes_of(&done)).unwrap().get().unwrap()
}

/// The session that the directory tells of the caller's process.
fn told(user: &User) -> u64 {
    let slot = user.process().slot();
    let seen = directory::process_at(user.machine(), slot).unwrap();
    seen.session.map_or(0, ProcessKey::to_bits)
}

fn copied(name: &str, slot: CapSlot) -> SpawnGrant<'_> {
    SpawnGrant {
        name,
        source: GrantSource::Slot,
        slot_index: slot.index() as u16,
        slot_generation: slot.generation(),
        moved: false,
        interface_id: 0,
    }
}

#[test]
fn whom_a_process_starts_belongs_to_its_session_and_is_counted_while_it_is_there() {
    static SEEN: AtomicU64 = AtomicU64::new(0);
    let child = body(|user| {
        SEEN.store(told(&user), SeqCst);
        user.exit(0)
    });
    let main = |mut user: User| {
        let session = user.cap("session");
        let before = info(&mut user, session);
        assert!(before.live && before.processes == 1, "{before:?}");
        assert_eq!(before.session_id, told(&user));
        let children = [spawn(&mut user, &[]), spawn(&mut user, &[])];
        assert_eq!(info(&mut user, session).processes, 3);
        for child in children {
            wait(&mut user, child);
        }
        assert_eq!(SEEN.load(SeqCst), before.session_id);
        assert_eq!(info(&mut user, session), before);
        for child in children {
            release(&mut user, child);
        }
        let ended = logout(&mut user, session);
        let counts = (ended.revoked_contexts, ended.skipped_donated, ended.revoked_leases);
        assert!(ended.was_live && counts == (0, 0, 0), "{ended:?}");
        assert!(!logout(&mut user, session).was_live);
        assert_eq!(info(&mut user, session), InfoResults { live: false, ..before });
        // It goes on, and whom it starts now belongs to the session that was.
        let late = spawn(&mut user, &[]);
        wait(&mut user, late);
        assert_eq!(SEEN.load(SeqCst), before.session_id);
        user.exit(0)
    };
    let config = Config { programs: 1, ..Config::default() };
    run(config, vec![spawner("main", main).with("session", Grant::Session)], vec![child]);
}

#[test]
fn sessions_do_not_reach_each_other_and_without_one_there_is_none() {
    let first = |mut user: User| {
        let session = user.cap("session");
        let own = info(&mut user, session);
        assert!(logout(&mut user, session).was_live);
        let sleep = user.sleeping(0, 10_000_000);
        user.call(sleep);
        assert_eq!(own.session_id, told(&user));
        user.exit(0)
    };
    let second = |mut user: User| {
        let sleep = user.sleeping(0, 5_000_000);
        user.call(sleep);
        let session = user.cap("session");
        assert!(info(&mut user, session).live, "another one's end");
        user.exit(0)
    };
    let third = |user: User| {
        assert_eq!(told(&user), 0);
        user.exit(0)
    };
    let processes = vec![
        Process::new("first", first).with("session", Grant::Session),
        Process::new("second", second).with("session", Grant::Session),
        Process::new("third", third),
    ];
    run(Config::default(), processes, vec![]);
}

/// Who began a session may be gone: it is told of, and its name is not another's, as long as somebody holds it.
#[test]
fn a_session_outlives_who_began_it() {
    let child = body(|mut user| {
        // Until who began it is gone.
        user.enter(1, 50_000_000);
        // Its only grant is the session.
        let caps = user.process().ops.caps.lock().as_ref().map(|table| table.held_at(0).unwrap().0);
        let session = caps.unwrap();
        let seen = info(&mut user, session);
        assert_eq!((seen.processes, seen.session_id), (1, told(&user)));
        assert!(logout(&mut user, session).was_live);
        user.exit(0)
    });
    let main = |mut user: User| {
        let session = user.cap("session");
        let child = spawn(&mut user, &[copied("session", session)]);
        release(&mut user, child);
        user.exit(0)
    };
    let config = Config { programs: 1, ..Config::default() };
    run(config, vec![spawner("main", main).with("session", Grant::Session)], vec![child]);
}
