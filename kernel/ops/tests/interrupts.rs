//! Interrupt lines of programs, on a machine of host threads: counted, waited for, given up, and gone with who has them.

use abi_types::{ExceptionKind, NEVER, Opcode, Sqe, Status};
use core_interrupt::{BURST, Trigger, WINDOW_NS};
use kernel_ops::interrupt::holders;
use kernel_ops::lines::Wiring;
use schema::interrupt::methods::{Acknowledge, Info, SetEnabled, Wait};
use schema::interrupt::{InfoResults, SetEnabledParams, WaitResults};
use schema_wire::{Exception, Message, Value};
use test_machine::{Config, Done, Grant, Host, Process, User, run};
use zerocopy::IntoBytes;

const LINE: u32 = 20;

fn wiring(trigger: Trigger) -> Grant {
    Grant::Line(Wiring { line: LINE, trigger, is_active_low: false })
}

fn driver(trigger: Trigger, main: impl Fn(User) + Send + Sync + 'static) -> Process {
    Process::new("driver", main).with("line", wiring(trigger))
}

fn results<T: for<'m> Value<'m>>(done: &Done) -> Result<T, ExceptionKind> {
    let bytes = &done.words.as_bytes()[..done.cqe.length as usize];
    match done.status() {
        Status::Ok => Ok(Message::new(bytes).unwrap().get().unwrap()),
        Status::Exception => Err(Exception::decode(bytes).unwrap().kind()),
        other => panic!("{other:?}"),
    }
}

fn waiting(user: &User, user_data: u64) -> Sqe {
    Sqe { user_data, ..User::calling_of::<Wait>(user.cap("line")) }
}

fn count(done: &Done) -> Result<u64, ExceptionKind> {
    results::<WaitResults>(done).map(|results| results.count)
}

/// Begins a wait that lasts.
fn begin_wait(user: &mut User, user_data: u64) {
    let wait = waiting(user, user_data);
    assert!(user.submit(wait));
    user.enter(0, 0);
    assert!(user.take().is_none(), "it waits");
}

/// The completion that comes next.
fn next(user: &mut User) -> Done {
    loop {
        match user.take() {
            Some(done) => return done,
            None => drop(user.enter(1, NEVER)),
        }
    }
}

fn enable(user: &mut User, enabled: bool) {
    let line = user.cap("line");
    let sqe = user.typed::<SetEnabled>(line, 0, &SetEnabledParams { enabled });
    assert_eq!(user.call(sqe).status(), Status::Ok);
}

fn acknowledge(user: &mut User) {
    let sqe = User::calling_of::<Acknowledge>(user.cap("line"));
    assert_eq!(user.call(sqe).status(), Status::Ok);
}

fn info(user: &mut User) -> InfoResults {
    results(&user.call(User::calling_of::<Info>(user.cap("line")))).unwrap()
}

fn ends_well(processes: Vec<Process>) {
    let report = run(Config::default(), processes, vec![]);
    assert!(report.ends.iter().all(|(_, code)| *code == 0), "{:?}", report.ends);
}

fn pause(user: &mut User, ns: u64) {
    let sleep = user.sleeping(0, ns);
    assert_eq!(user.call(sleep).status(), Status::Ok);
}

#[test]
fn a_line_is_masked_until_it_is_enabled_and_waits_take_all_there_are() {
    ends_well(vec![driver(Trigger::Edge, |mut user| {
        let m = user.machine();
        assert_eq!(m.routed(), [(LINE, false)]);
        assert!(!m.raise(LINE));
        enable(&mut user, true);
        for _ in 0..3 {
            assert!(m.raise(LINE));
        }
        let wait = waiting(&user, 5);
        assert_eq!(count(&user.call(wait)), Ok(3));
        begin_wait(&mut user, 6);
        let another = waiting(&user, 7);
        assert_eq!(count(&user.call(another)), Err(ExceptionKind::Overloaded));
        assert!(m.raise(LINE));
        let done = next(&mut user);
        assert_eq!((done.cqe.user_data, count(&done)), (6, Ok(1)));
        let seen = info(&mut user);
        assert_eq!((seen.line, seen.enabled, seen.total), (LINE, true, 4));
        enable(&mut user, false);
        assert!(!m.raise(LINE));
    })]);
}

#[test]
fn by_level_a_device_interrupts_once_for_each_acknowledgement() {
    ends_well(vec![driver(Trigger::Level, |mut user| {
        let m = user.machine();
        enable(&mut user, true);
        assert!(m.raise(LINE));
        assert!(!m.raise(LINE), "it was not answered");
        acknowledge(&mut user);
        acknowledge(&mut user);
        assert!(m.raise(LINE));
        let wait = waiting(&user, 1);
        assert_eq!(count(&user.call(wait)), Ok(2));
    })]);
}

/// CANCEL ends a wait once; what comes after is for the next.
#[test]
fn a_wait_is_given_up_by_cancel() {
    ends_well(vec![driver(Trigger::Edge, |mut user| {
        let m = user.machine();
        enable(&mut user, true);
        begin_wait(&mut user, 6);
        let cancel = Sqe { opcode: Opcode::Cancel as u8, arg: 6, user_data: 9, ..Sqe::default() };
        assert!(user.submit(cancel));
        user.enter(2, NEVER);
        let mut ends = [next(&mut user), next(&mut user)].map(|d| (d.cqe.user_data, d.status()));
        ends.sort_by_key(|(user_data, _)| *user_data);
        assert_eq!(ends, [(6, Status::Cancelled), (9, Status::Ok)]);
        assert!(m.raise(LINE));
        assert!(user.submit(Sqe { user_data: 10, ..cancel }));
        assert_eq!(next(&mut user).status(), Status::NotFound);
        let wait = waiting(&user, 7);
        assert_eq!(count(&user.call(wait)), Ok(1));
    })]);
}

/// A device that never stops: it is heard so often in a window, and again when somebody waits and the window is over.
#[test]
fn a_storm_is_cut_off_and_comes_back_with_who_waits() {
    ends_well(vec![driver(Trigger::Edge, |mut user| {
        let m = user.machine();
        enable(&mut user, true);
        // A window begins with its first interrupt; time passes with each look at the clock.
        let heard = |m: Host| (0..10 * BURST).filter(|_| m.raise(LINE)).count() as u64;
        assert_eq!(heard(m), u64::from(BURST));
        assert_eq!(m.routed(), [(LINE, false)]);
        let wait = waiting(&user, 1);
        assert_eq!(count(&user.call(wait)), Ok(BURST.into()));
        acknowledge(&mut user);
        enable(&mut user, true);
        assert!(!m.raise(LINE), "neither helps before the window is over");
        begin_wait(&mut user, 2);
        assert!(!m.raise(LINE));
        pause(&mut user, WINDOW_NS);
        assert_eq!(m.routed(), [(LINE, true)], "the deadline of the wait has opened it");
        assert!(user.take().is_none(), "and not ended it");
        assert!(m.raise(LINE));
        let done = next(&mut user);
        assert_eq!((done.cqe.user_data, count(&done)), (2, Ok(1)));
        // A wait with such a deadline is given up, and its deadline with it.
        assert_eq!(heard(m), u64::from(BURST) - 1);
        let wait = waiting(&user, 3);
        assert_eq!(count(&user.call(wait)), Ok(u64::from(BURST) - 1));
        begin_wait(&mut user, 4);
        let cancel = Sqe { opcode: Opcode::Cancel as u8, arg: 4, user_data: 9, ..Sqe::default() };
        assert!(user.submit(cancel));
        for _ in 0..2 {
            let _ = next(&mut user);
        }
        pause(&mut user, 2 * WINDOW_NS);
        assert_eq!(m.routed(), [(LINE, false)], "nobody asks for it");
        acknowledge(&mut user);
        assert_eq!(m.routed(), [(LINE, true)]);
    })]);
}

/// A thread ends while it waits: its wait is nobody's, and a sibling's is the next.
#[test]
fn a_thread_that_ends_leaves_no_wait_behind() {
    let body = |mut user: User| {
        begin_wait(&mut user, 1);
    };
    let main = |mut user: User| {
        let m = user.machine();
        enable(&mut user, true);
        let handle = user.spawn(0, 0).unwrap();
        let join = user.joining(handle);
        assert_eq!(user.call(join).status(), Status::Ok);
        let wait = waiting(&user, 3);
        assert!(user.submit(wait));
        user.enter(0, 0);
        assert!(m.raise(LINE));
        assert_eq!(count(&next(&mut user)), Ok(1));
    };
    let report =
        run(Config::default(), vec![driver(Trigger::Edge, main)], vec![std::sync::Arc::new(body)]);
    assert!(report.ends.iter().all(|(_, code)| *code == 0), "{:?}", report.ends);
}

/// A process ends with its line enabled, unanswered and waited for: it is masked and nobody's. One that another holds too
/// stays, and the last takes it along.
#[test]
fn the_last_holder_takes_the_line_along() {
    for trigger in [Trigger::Edge, Trigger::Level] {
        ends_well(vec![
            driver(trigger, |mut user| {
                let m = user.machine();
                enable(&mut user, true);
                assert!(m.raise(LINE));
                let wait = waiting(&user, 1);
                assert_eq!(count(&user.call(wait)), Ok(1));
                begin_wait(&mut user, 2);
                // It ends.
            }),
            driver(trigger, |mut user| {
                let m = user.machine();
                assert_eq!(holders(m), 2);
                pause(&mut user, 10_000_000);
                assert_eq!((holders(m), m.routed()), (1, vec![(LINE, true)]));
                acknowledge(&mut user);
                begin_wait(&mut user, 3);
                assert!(m.raise(LINE));
                assert_eq!(count(&next(&mut user)), Ok(1));
                assert_eq!(info(&mut user).total, 2);
                begin_wait(&mut user, 4);
                let cap = user.cap("line").to_bits();
                let release =
                    Sqe { opcode: Opcode::Release as u8, cap, user_data: 5, ..Sqe::default() };
                assert!(user.submit(release));
                user.enter(2, NEVER);
                let ends = [next(&mut user), next(&mut user)];
                let of = |user_data| {
                    ends.iter().find(|done| done.cqe.user_data == user_data).unwrap().status()
                };
                assert_eq!((of(4), of(5)), (Status::Disconnected, Status::Ok));
                assert_eq!((holders(m), m.routed()), (0, vec![]));
                assert!(!m.raise(LINE));
            }),
        ]);
    }
}
