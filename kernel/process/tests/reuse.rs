//! Records that another process has left: what was named in them before reaches nobody there.

use abi_types::{CapSlot, Opcode, Sqe, Status};
use kernel_process::end;
use kernel_process::process::Reason;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use test_machine::{Config, Grant, Process, User, run};

fn sqe(opcode: Opcode) -> Sqe {
    Sqe { opcode: opcode as u8, ..Sqe::default() }
}

/// A client keeps a facet of a server that ends; another server begins in the same record, with the same endpoint and
/// the same grant by number, and waits for calls.
fn stale_facet(config: Config, by_deadline: bool) {
    let stage = Arc::new(AtomicU32::new(0));
    let told = stage.clone();
    let client = move |mut user: User| {
        while told.load(SeqCst) == 0 {
            user.compute_a_slice();
        }
        let service = user.cap("service");
        let now = user.machine().now();
        let arg = if by_deadline { now + 1_000_000_000 } else { 0 };
        let ended = user.call(Sqe { arg, ..User::calling(service, 0, 8) });
        assert_eq!(ended.status(), Status::Disconnected, "a call went to another server");
        told.store(2, SeqCst);
    };
    let heir = |mut user: User| {
        let cap = user.cap("endpoint").to_bits();
        let done = user.call(Sqe { cap, ..sqe(Opcode::Recv) });
        panic!("a call for the server before: {done:?}");
    };
    let coordinator = move |mut user: User| {
        let m = user.machine();
        let batch = m.begin(vec![
            Process::new("server", |_| {}).with("endpoint", Grant::Endpoint),
            Process::new("client", client.clone()).with("service", Grant::Client(0, 0, 1)),
        ]);
        let before = batch[0].key();
        while m.live() > 2 || m.has_remains() {
            user.compute_a_slice();
        }
        let heir = Process::new("heir", heir)
            .with("endpoint", Grant::Endpoint)
            .with("own", Grant::Client(0, 0, 1));
        let heir = m.begin(vec![heir])[0];
        assert_eq!(heir.slot(), before.slot, "the record of the server");
        assert_ne!(heir.key(), before);
        for _ in 0..6 {
            user.compute_a_slice();
        }
        stage.store(1, SeqCst);
        while stage.load(SeqCst) == 1 {
            user.compute_a_slice();
        }
        end::close(m, heir, 0, Reason::Killed);
    };
    let report = run(config, vec![Process::new("coordinator", coordinator)], vec![]);
    assert_eq!(report.ends.len(), 4);
}

#[test]
fn a_facet_of_a_server_that_is_gone_reaches_nobody() {
    for fast_path in [true, false] {
        for by_deadline in [false, true] {
            stale_facet(Config { fast_path, ..Config::default() }, by_deadline);
        }
    }
}

/// A handle whose thread is gone, in a record that another thread of the process has by now, joins nobody.
#[test]
fn a_handle_of_a_thread_that_is_gone_joins_nobody() {
    let ends = Arc::new(|_: User| {});
    let stays = Arc::new(|mut user: User| {
        let sleep = user.sleeping(0, 1 << 40);
        user.call(sleep);
    });
    let main = |mut user: User| {
        let first = user.spawn(0, 0).unwrap();
        let join = user.joining(first);
        assert_eq!(user.call(join).status(), Status::Ok);
        let release = Sqe { cap: first.to_bits(), ..sqe(Opcode::Release) };
        assert_eq!(user.call(release).status(), Status::Ok);
        let made = user.machine().records_made();
        let second = user.spawn(1, 0).unwrap();
        assert_eq!(user.machine().records_made(), made, "the record of the first");
        assert_ne!(first, second);
        let stale = user.joining(first);
        assert_eq!(user.call(stale).status(), Status::Disconnected);
        assert_eq!(user.call(User::calling(CapSlot::NONE, 0, 0)).status(), Status::Disconnected);
        user.exit(0)
    };
    let report = run(Config::default(), vec![Process::new("main", main)], vec![ends, stays]);
    assert_eq!(report.ends, [("main".to_string(), 0)]);
}
