//! Programs that start programs, on a machine of host threads: spawn, wait, kill, exit, and what comes back.

use abi_types::{NEVER, Opcode, Sqe, Status};
use kernel_ops::machine::Defect;
use schema::manifest::ResourceProfile;
use schema::process_handle;
use schema::process_handle_capnp::ExitReason;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use test_machine::children::{
    PROFILE, account, body, copied, kill, release, spawn, spawn_as, spawner, wait,
};
use test_machine::{Body, Config, Report, User, run};

fn config(programs: u32) -> Config {
    Config { programs, ..Config::default() }
}

/// Programs: 0 exits with 7, 1 computes for good.
fn bodies() -> Vec<Body> {
    let exits = body(|user: User| user.exit(7));
    let spins = body(|mut user: User| {
        loop {
            user.compute();
        }
    });
    vec![exits, spins]
}

fn play(config: Config, main: impl Fn(User) + Send + Sync + 'static) -> Report {
    run(config, vec![spawner(main)], bodies())
}

#[test]
fn a_wait_is_answered_when_everything_has_come_back() {
    for cpus in 1..4 {
        let main = |mut user: User| {
            let before = account(&user);
            for _ in 0..5 {
                let child = spawn(&mut user, 0, &[]).expect("a child");
                assert_eq!(wait(&mut user, child), (7, ExitReason::Exited));
                assert_eq!(wait(&mut user, child), (7, ExitReason::Exited), "it stays");
                assert_eq!(release(&mut user, child), Status::Ok);
                assert_eq!(account(&user), before);
            }
        };
        let report = play(Config { cpus, ..config(2) }, main);
        assert_eq!(report.ends.len(), 6);
    }
}

#[test]
fn a_kill_ends_what_computes_and_a_stale_handle_nobody() {
    for cpus in 1..3 {
        let main = |mut user: User| {
            let child = spawn(&mut user, 1, &[]).expect("a child");
            user.compute_a_slice();
            assert_eq!(kill(&mut user, child, -3), Status::Ok);
            assert_eq!(wait(&mut user, child), (-3, ExitReason::Killed));
            assert_eq!(kill(&mut user, child, -4), Status::Ok);
            assert_eq!(wait(&mut user, child), (-3, ExitReason::Killed));
            assert_eq!(release(&mut user, child), Status::Ok);
            let next = spawn(&mut user, 1, &[]).expect("a child in the same record");
            assert_eq!(kill(&mut user, child, 9), Status::Disconnected);
            assert_eq!(kill(&mut user, next, 5), Status::Ok);
            assert_eq!(wait(&mut user, next), (5, ExitReason::Killed));
        };
        play(Config { cpus, ..config(2) }, main);
    }
}

#[test]
fn one_call_waits_and_its_cancel_lets_another() {
    let main = |mut user: User| {
        let child = spawn(&mut user, 1, &[]).expect("a child");
        let waiting = User::calling_of::<process_handle::methods::Wait>(child);
        assert!(user.submit(Sqe { user_data: 5, ..waiting }));
        user.enter(0, 0);
        assert_eq!(user.call(waiting).status(), Status::Exception, "a second waiter");
        let cancel = Sqe { opcode: Opcode::Cancel as u8, arg: 5, user_data: 6, ..Sqe::default() };
        assert!(user.submit(cancel));
        user.enter(2, NEVER);
        let mut seen: Vec<_> =
            std::iter::from_fn(|| user.take()).map(|d| (d.cqe.user_data, d.status())).collect();
        seen.sort_by_key(|(number, _)| *number);
        assert_eq!(seen, [(5, Status::Cancelled), (6, Status::Ok)]);
        assert_eq!(kill(&mut user, child, 1), Status::Ok);
        assert_eq!(wait(&mut user, child), (1, ExitReason::Killed));
    };
    play(config(2), main);
}

#[test]
fn a_copied_handle_keeps_the_status_when_the_first_is_released() {
    // The child is given a handle to another child, and is killed with it.
    let main = |mut user: User| {
        let before = account(&user);
        let first = spawn(&mut user, 1, &[]).expect("a child");
        let holder = spawn(&mut user, 1, &[copied("handle", first)]).expect("a child");
        assert_eq!(release(&mut user, first), Status::Ok);
        assert_eq!(kill(&mut user, holder, 1), Status::Ok);
        assert_eq!(wait(&mut user, holder), (1, ExitReason::Killed));
        assert_eq!(release(&mut user, holder), Status::Ok);
        // Nobody can end the first any more but the end of the run.
        assert_ne!(account(&user), before);
        user.exit(0)
    };
    let bodies = vec![
        body(|user: User| user.exit(7)),
        body(|mut user: User| {
            for _ in 0..200 {
                user.compute();
            }
            user.exit(0)
        }),
    ];
    run(config(2), vec![spawner(main)], bodies);
}

#[test]
fn lack_of_memory_at_every_step_leaves_everything_as_it_was() {
    let spawned = Arc::new(AtomicU64::new(0));
    let attempt = |out_of_memory_at| {
        let count = spawned.clone();
        let main = move |mut user: User| {
            let before = account(&user);
            let timer = user.cap("timer");
            match spawn(&mut user, 0, &[copied("timer", timer)]) {
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
            // And there is a next time.
            let child = spawn(&mut user, 0, &[]).expect("memory is there again");
            assert_eq!(wait(&mut user, child).0, 7);
        };
        play(Config { out_of_memory_at, ..config(2) }, main)
    };
    let all = attempt(None).allocations;
    assert!(all > 30, "{all} allocations");
    let mut places = BTreeSet::new();
    let refused = (0..all / 2).filter(|at| {
        let before = spawned.load(SeqCst);
        places.extend(attempt(Some(*at)).denied.map(Location::file));
        spawned.load(SeqCst) == before
    });
    assert!(refused.count() > 10, "allocations of a spawn that were denied");
    let heap = [
        "kernel/ops/src/capability.rs",
        "kernel/ops/src/pending.rs",
        "kernel/smp/timer/src/lib.rs",
    ];
    for place in heap {
        assert!(places.contains(place), "{place} never ran out of memory: {places:?}");
    }
}

#[test]
fn a_child_whose_table_does_not_fit_its_account_takes_no_record() {
    let main = |mut user: User| {
        let before = account(&user);
        // More often than there are records.
        for _ in 0..20 {
            let profile = ResourceProfile { cap_slots: 32, kernel_bytes: 4096, ..PROFILE };
            let small = ResourceProfile { cap_slots: 40, ..profile };
            let refused = spawn_as(&mut user, 0, &[], small).expect_err("no room for 64 slots");
            assert_eq!(refused.status(), Status::Exception);
            assert_eq!(account(&user), before);
        }
        let child = spawn(&mut user, 0, &[]).expect("a record is left");
        assert_eq!(wait(&mut user, child).0, 7);
    };
    play(config(2), main);
}

/// Whether lives of children find a bug.
fn is_found(defect: Defect) -> bool {
    let main = |mut user: User| {
        let before = account(&user);
        let child = spawn(&mut user, 0, &[]).expect("a child");
        assert_eq!(wait(&mut user, child).0, 7);
        assert_eq!(release(&mut user, child), Status::Ok);
        assert_eq!(account(&user), before);
    };
    let config = Config { defect: Some(defect), ..config(2) };
    catch_unwind(AssertUnwindSafe(|| play(config, main))).is_err()
}

#[test]
fn planted_bugs_are_found() {
    for defect in [Defect::LoanKept, Defect::EndNotTold] {
        assert!(is_found(defect), "{defect:?} is not noticed");
    }
}
