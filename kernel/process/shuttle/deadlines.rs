//! Deadlines that fire on one CPU while the operation they bound ends on another, by a wake, a cancel or the
//! end of its thread, and its cell is used again, under random schedules.

use abi_sync::{explore, random};
use abi_types::{NEVER, Opcode, Sqe, Status};
use kernel_ops::machine::Defect;
use std::sync::Arc;
use test_machine::{Body, Config, Process, User, run};

/// Where threads park.
const PAGE: u64 = 0x10_0000;

fn sqe(opcode: Opcode) -> Sqe {
    Sqe { opcode: opcode as u8, ..Sqe::default() }
}

fn parking(user: &User, timeout_ns: u64) -> Sqe {
    let cap = user.cap("park").to_bits();
    Sqe { cap, arg: PAGE, result_address: timeout_ns, ..sqe(Opcode::Park) }
}

/// A thread that wakes who parks at the page, after a while.
fn waker() -> Body {
    Arc::new(|mut user: User| {
        // About as long as those whom it wakes sleep.
        for _ in 0..random() % 20 {
            user.compute();
        }
        user.space().store_u32(PAGE, 1);
        let cap = user.cap("park").to_bits();
        let unpark = Sqe { cap, arg: PAGE, address: 1, ..sqe(Opcode::Unpark) };
        assert_eq!(user.call(unpark).status(), Status::Ok);
    })
}

/// Takes completions until the one with that name; how it ended.
fn until(user: &mut User, user_data: u64) -> Status {
    loop {
        match user.take() {
            Some(done) if done.cqe.user_data == user_data => return done.status(),
            Some(_) => {}
            None => drop(user.enter(1, NEVER)),
        }
    }
}

/// A thread begins a short sleep, is woken from elsewhere, gives the sleep up and begins a long one, whose cell
/// is that of the first or of the park.
fn sleeps_given_up(defect: Option<Defect>) {
    const LONG_NS: u64 = 400_000_000;
    let main = |mut user: User| {
        user.space().map(PAGE, 1, true);
        let waker = user.spawn(0, 0).expect("a thread");
        let short = Sqe { user_data: 1, ..user.sleeping(1, 1_000 + random() % 30_000) };
        assert!(user.submit(short));
        assert!(user.submit(Sqe { user_data: 2, ..parking(&user, NEVER) }));
        let parked = until(&mut user, 2);
        assert!(matches!(parked, Status::Woken | Status::Mismatch), "{parked:?}");
        assert!(user.submit(Sqe { arg: 1, user_data: 3, ..sqe(Opcode::Cancel) }));
        let begun = user.machine().now();
        let long = Sqe { user_data: 4, ..user.sleeping(2, LONG_NS) };
        assert!(user.submit(long));
        assert_eq!(until(&mut user, 4), Status::Ok);
        assert!(user.machine().now() >= begun + LONG_NS, "a sleep ended before its time");
        let join = user.joining(waker);
        assert_eq!(user.call(join).status(), Status::Ok);
    };
    let config = Config { cpus: 2, threads: 4, defect, ..Config::default() };
    run(config, vec![Process::new("main", main)], vec![waker()]);
}

/// A thread parks for a short time and is woken meanwhile, then parks for a long one.
fn parks_woken(defect: Option<Defect>) {
    const LONG_NS: u64 = 400_000_000;
    let main = |mut user: User| {
        user.space().map(PAGE, 1, true);
        let waker = user.spawn(0, 0).expect("a thread");
        assert!(user.submit(Sqe { user_data: 2, ..parking(&user, 1_000 + random() % 60_000) }));
        let parked = until(&mut user, 2);
        assert!(matches!(parked, Status::Woken | Status::Mismatch | Status::TimedOut));
        let join = user.joining(waker);
        assert_eq!(user.call(join).status(), Status::Ok);
        user.space().store_u32(PAGE, 0);
        let begun = user.machine().now();
        assert!(user.submit(Sqe { user_data: 3, ..parking(&user, LONG_NS) }));
        assert_eq!(until(&mut user, 3), Status::TimedOut);
        assert!(user.machine().now() >= begun + LONG_NS, "a park ended before its time");
    };
    let config = Config { cpus: 2, threads: 4, defect, ..Config::default() };
    run(config, vec![Process::new("main", main)], vec![waker()]);
}

/// Threads end with sleeps, parks and calls under way whose time is up about then; the next takes their ring.
fn threads_that_end(defect: Option<Defect>) {
    let ends: Body = Arc::new(|mut user: User| {
        for n in 0..3 {
            let ns = 1_000 + random() % 40_000;
            let sleep = Sqe { user_data: n, ..user.sleeping(n as u16, ns) };
            assert!(user.submit(sleep));
        }
        assert!(user.submit(Sqe { user_data: 9, ..parking(&user, 1_000 + random() % 40_000) }));
        user.enter(0, 0);
        if random() % 2 == 0 {
            user.enter(1, random() % 20_000);
        }
    });
    let main = |mut user: User| {
        user.space().map(PAGE, 1, true);
        for _ in 0..2 {
            let ended = [user.spawn(0, 0), user.spawn(0, 0)];
            for handle in ended.into_iter().flatten() {
                let join = user.joining(handle);
                assert_eq!(user.call(join).status(), Status::Ok);
            }
        }
    };
    let config = Config { cpus: 2, threads: 6, defect, ..Config::default() };
    run(config, vec![Process::new("main", main)], vec![ends]);
}

#[test]
fn sleeps_that_are_given_up_while_they_fire() {
    explore("sleeps given up", &[], 300, || sleeps_given_up(None));
}

#[test]
fn parks_that_are_woken_while_they_time_out() {
    explore("parks woken", &[], 300, || parks_woken(None));
}

#[test]
fn threads_that_end_while_their_deadlines_fire() {
    explore("threads that end", &[], 200, || threads_that_end(None));
}

#[test]
#[should_panic]
fn a_deadline_that_is_served_for_another_operation_is_found() {
    explore("stale deadline", &[], 1000, || sleeps_given_up(Some(Defect::StaleDeadline)));
}

#[test]
#[should_panic]
fn a_timer_that_stays_armed_is_found() {
    explore("timer kept", &[], 200, || parks_woken(Some(Defect::TimerKept)));
}
