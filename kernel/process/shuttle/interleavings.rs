//! Histories on two and three CPUs under random schedules: the kernel's own operations, processes and reaper
//! between CPUs that interleave at every atomic access and lock.

use abi_sync::{explore, random};
use abi_types::{NEVER, Opcode, Sqe, SqeFlags, Status};
use core_sched_policy::PolicyKind;
use kernel_ops::machine::Defect;
use test_machine::history::{Step, play};
use test_machine::{Config, Grant, Process, User, run};

/// A step, of numbers that are part of the schedule.
fn step(threads: u64) -> Step {
    let mut pick = |below: u64| random() % below;
    let us = |pick: &mut dyn FnMut(u64) -> u64| (pick(60)) as u16;
    match pick(20) {
        0..=4 => Step::Call((pick(3) == 0).then(|| us(&mut pick))),
        5 | 6 => Step::CallTooLarge,
        7 => Step::Sleep(us(&mut pick)),
        8 | 9 => Step::Park(pick(2) as u8, Some(us(&mut pick))),
        10 | 11 => Step::Unpark(pick(2) as u8, pick(3) as u8),
        12..=14 => Step::Cancel(pick(4) as u8),
        15 => Step::Enter(pick(2) as u8, us(&mut pick)),
        16 => Step::Await(pick(4) as u8),
        17 => Step::Spawn(pick(threads) as u8),
        18 => Step::Join(pick(4) as u8),
        _ if pick(4) == 0 => Step::ExitProcess,
        _ => Step::Compute(true),
    }
}

fn history(cpus: usize, length: u64, defect: Option<Defect>) {
    let programs: Vec<Vec<Step>> =
        (0..3).map(|_| (0..random() % length).map(|_| step(3)).collect()).collect();
    let policy = PolicyKind::ALL[(random() % 2) as usize];
    let config = Config { cpus, policy, threads: 10, defect, ..Config::default() };
    play(config, &programs);
}

#[test]
fn histories_on_two_cpus() {
    explore("two CPUs", &[], 400, || history(2, 8, None));
}

#[test]
fn histories_on_three_cpus() {
    explore("three CPUs", &[], 200, || history(3, 6, None));
}

fn sqe(opcode: Opcode) -> Sqe {
    Sqe { opcode: opcode as u8, ..Sqe::default() }
}

/// A client whose large call puts the receive back, beside one whose call takes it; the server answers, receives
/// again and gives that receive up.
fn receives_put_back(defect: Option<Defect>) {
    let server = move |mut user: User| {
        let cap = user.cap("endpoint").to_bits();
        let call = user.call(Sqe { cap, ..sqe(Opcode::Recv) });
        assert_eq!(call.status(), Status::Ok);
        let (flags, arg) = (SqeFlags::THEN_RECV, call.cqe.token);
        assert!(user.submit(Sqe { cap, flags, arg, user_data: 1, ..sqe(Opcode::Return) }));
        user.enter(0, 0);
        if defect.is_some() {
            user.linger();
        }
        assert!(user.submit(Sqe { arg: 1, user_data: 2, ..sqe(Opcode::Cancel) }));
        user.enter(2, NEVER);
        let ended = [user.take(), user.take()].map(|done| done.expect("both have ended").status());
        assert!(ended.contains(&Status::Cancelled), "{ended:?}");
    };
    let small = |mut user: User| {
        let service = user.cap("service");
        assert_eq!(user.call(User::calling(service, 0, 0)).status(), Status::Ok);
    };
    let large = |mut user: User| {
        user.space().map(0x10_0000, 1, true);
        let (flags, address) = (SqeFlags::BY_ADDRESS, 0x10_0000);
        let service = user.cap("service");
        let done = user.call(Sqe { flags, address, ..User::calling(service, 0, 1000) });
        assert!(matches!(done.status(), Status::ParamsTooLarge | Status::Disconnected));
    };
    let config = Config { cpus: 2, threads: 4, defect, ..Config::default() };
    let processes = vec![
        Process::new("server", server).with("endpoint", Grant::Endpoint),
        Process::new("large", large).with("service", Grant::Client(0, 0, 1)),
        Process::new("small", small).with("service", Grant::Client(0, 0, 2)),
    ];
    run(config, processes, vec![]);
}

/// A client that gives up a call which waits, and puts the next one where its words were; the server receives
/// meanwhile.
fn calls_given_up(defect: Option<Defect>) {
    let server = move |mut user: User| {
        let cap = user.cap("endpoint").to_bits();
        if defect.is_some() {
            user.linger();
        }
        loop {
            let call = user.call(Sqe { cap, ..sqe(Opcode::Recv) });
            assert_eq!(call.status(), Status::Ok);
            let answer = Sqe { arg: call.cqe.token, ..sqe(Opcode::Return) };
            assert!(matches!(user.call(answer).status(), Status::Ok | Status::NotFound));
            if call.words[0] == 2 {
                return;
            }
        }
    };
    let client = move |mut user: User| {
        let service = user.cap("service");
        user.write(0, &[1]);
        assert!(user.submit(Sqe { user_data: 1, ..User::calling(service, 0, 8) }));
        user.enter(0, 0);
        if defect.is_some() {
            user.linger();
        }
        assert!(user.submit(Sqe { arg: 1, user_data: 9, ..sqe(Opcode::Cancel) }));
        user.enter(2, NEVER);
        assert!(user.take().is_some() && user.take().is_some(), "both have ended");
        user.write(0, &[2]);
        let second = Sqe { user_data: 2, ..User::calling(service, 0, 8) };
        assert_eq!(user.call(second).status(), Status::Ok, "its words went with the first");
    };
    let config = Config { cpus: 2, threads: 4, fast_path: false, defect, ..Config::default() };
    let processes = vec![
        Process::new("server", server).with("endpoint", Grant::Endpoint),
        Process::new("client", client).with("service", Grant::Client(0, 0, 1)),
    ];
    run(config, processes, vec![]);
}

#[test]
fn receives_that_are_put_back() {
    explore("receives put back", &[], 300, || receives_put_back(None));
}

#[test]
fn calls_that_are_given_up() {
    explore("calls given up", &[], 300, || calls_given_up(None));
}

#[test]
#[should_panic]
fn a_receive_that_is_renamed_too_late_is_found() {
    explore("late retarget", &[], 1000, || {
        receives_put_back(Some(Defect::LateRetarget));
    });
}

#[test]
#[should_panic]
fn a_copy_that_goes_on_after_its_call_was_given_up_is_found() {
    explore("copy after cancel", &[], 1000, || calls_given_up(Some(Defect::CopyAfterCancel)));
}

#[test]
#[should_panic]
fn a_completion_that_wakes_nobody_is_found() {
    explore("lost wake", &[], 50, || history(2, 8, Some(Defect::LostWake)));
}
