//! Capabilities in messages, on a machine of host threads: what arrives, what is refused, what comes back.

use abi_types::{CapSlot, Opcode, Sqe, SqeFlags, Status, Transfer, TransferMode};
use kernel_ops::machine::{Defect, Space};
use schema::timer;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use test_machine::{Config, Done, Grant, Process, Report, User, run};
use zerocopy::IntoBytes;

const PAGE: u64 = 0x10_0000;
/// The last method of a history: the server ends with it.
const LAST: u16 = 9;

fn sqe(opcode: Opcode) -> Sqe {
    Sqe { opcode: opcode as u8, ..Sqe::default() }
}

fn end_well(report: &Report) {
    assert!(report.ends.iter().all(|(_, code)| *code == 0), "{:?}", report.ends);
}

/// Puts `payload` words and then a list into inline slot 0.
fn write(user: &mut User, payload: &[u64], list: &[(CapSlot, TransferMode)]) {
    let mut words = payload.to_vec();
    for (slot, mode) in list {
        words.extend([slot.to_bits(), u64::from(*mode as u32)]);
    }
    user.write(0, &words);
}

/// A CALL with one word of payload and a list in inline slot 0.
fn sending(user: &mut User, target: CapSlot, list: &[(CapSlot, TransferMode)]) -> Sqe {
    write(user, &[7], list);
    Sqe { transfers: list.len() as u16, ..User::calling(target, 0, 8) }
}

/// The slots that came with a message.
fn slots(done: &Done) -> Vec<CapSlot> {
    let from = done.cqe.length.div_ceil(8) as usize;
    let count = usize::from(done.cqe.transfers());
    (0..count).map(|n| CapSlot::from_bits(done.words[from + 2 * n])).collect()
}

fn receiving(user: &User, accepts: u16) -> Sqe {
    let cap = user.cap("endpoint").to_bits();
    Sqe { cap, user_data: 7, result_transfers: accepts, ..sqe(Opcode::Recv) }
}

fn returning(done: &Done) -> Sqe {
    Sqe { arg: done.cqe.token, user_data: 8, ..sqe(Opcode::Return) }
}

/// Whether a slot of the user's is a clock.
fn is_timer(user: &mut User, slot: CapSlot) -> bool {
    let now = Sqe { user_data: 99, ..User::calling_of::<timer::methods::Now>(slot) };
    user.call(now).status() == Status::Ok
}

fn release(user: &mut User, slot: CapSlot) -> Status {
    user.call(Sqe { cap: slot.to_bits(), ..sqe(Opcode::Release) }).status()
}

/// Slots in use, asked of the table itself.
fn used(user: &User) -> u32 {
    user.process().ops.caps.lock().as_ref().unwrap().used()
}

/// A server that takes up to `accepts` capabilities a call, checks that each is a clock, releases it and
/// answers, until the last method.
fn clocks(accepts: u16) -> Process {
    Process::new("server", move |mut user| {
        loop {
            let next = receiving(&user, accepts);
            let done = user.call(next);
            assert_eq!(done.status(), Status::Ok);
            let got = slots(&done);
            assert!(got.len() <= usize::from(accepts));
            for slot in got {
                assert!(is_timer(&mut user, slot));
                assert_eq!(release(&mut user, slot), Status::Ok);
            }
            assert_eq!(user.call(returning(&done)).status(), Status::Ok);
            if done.cqe.method == LAST {
                return;
            }
        }
    })
    .with("endpoint", Grant::Endpoint)
}

fn client(accepts: u16, main: impl Fn(&mut User, CapSlot) + Send + Sync + 'static) {
    let main: Main = Arc::new(main);
    for (fast_path, cpus) in [(true, 1), (false, 1), (true, 3)] {
        let config = Config { fast_path, cpus, ..Config::default() };
        end_well(&run(config, pair(accepts, main.clone()), vec![]));
    }
}

type Main = Arc<dyn Fn(&mut User, CapSlot) + Send + Sync>;

/// The server of clocks, and a client that does something and ends it.
fn pair(accepts: u16, main: Main) -> Vec<Process> {
    let client = Process::new("client", move |mut user| {
        let service = user.cap("service");
        main(&mut user, service);
        assert_eq!(user.call(User::calling(service, LAST, 0)).status(), Status::Ok);
    });
    vec![clocks(accepts), client.with("service", Grant::Client(0, 0, 77))]
}

#[test]
fn copies_stay_and_moves_leave() {
    client(8, |user, service| {
        let timer = user.cap("timer");
        let before = used(user);
        for count in 0..=7 {
            let send = sending(user, service, &vec![(timer, TransferMode::Copy); count]);
            assert_eq!(user.call(send).status(), Status::Ok);
        }
        assert!(is_timer(user, timer));
        assert_eq!(used(user), before);
        let send = sending(user, service, &[(timer, TransferMode::Move)]);
        assert_eq!(user.call(send).status(), Status::Ok);
        assert!(!is_timer(user, timer));
        assert_eq!(used(user), before - 1);
        assert_eq!(user.call(send).status(), Status::Disconnected, "it is not there any more");
    });
}

#[test]
fn a_list_with_a_bad_line_sends_nothing() {
    client(8, |user, service| {
        let (timer, control) = (user.cap("timer"), user.cap("control"));
        let threads = user.cap("threads");
        let before = used(user);
        let nothing = CapSlot::new(30, 1);
        let copy = TransferMode::Copy;
        let take = TransferMode::Move;
        for (list, status) in [
            (vec![(timer, take), (nothing, copy)], Status::Disconnected),
            (vec![(timer, take), (CapSlot::NONE, take)], Status::Disconnected),
            (vec![(timer, take), (control, copy)], Status::NotTransferable),
            (vec![(timer, take), (threads, take)], Status::NotTransferable),
            (vec![(timer, take), (timer, take)], Status::InvalidArgument),
            (vec![(timer, copy), (timer, take)], Status::InvalidArgument),
        ] {
            let send = sending(user, service, &list);
            assert_eq!(user.call(send).status(), status, "{list:?}");
            assert_eq!(used(user), before, "{list:?}");
            assert!(is_timer(user, timer), "{list:?}");
        }
        // A mode that is none, and a reserved field that is not zero.
        for word in [2, 1 << 32, u64::MAX] {
            user.write(0, &[7, timer.to_bits(), word]);
            let send = Sqe { transfers: 1, ..User::calling(service, 0, 8) };
            assert_eq!(user.call(send).status(), Status::InvalidArgument);
        }
    });
}

#[test]
fn nobody_gets_more_than_it_takes() {
    for accepts in [0, 1, 3] {
        client(accepts, move |user, service| {
            let timer = user.cap("timer");
            for count in 0..=4_u16 {
                let list = vec![(timer, TransferMode::Copy); usize::from(count)];
                let send = sending(user, service, &list);
                let expected = if count <= accepts { Status::Ok } else { Status::TransferRefused };
                assert_eq!(user.call(send).status(), expected, "{count} of {accepts}");
            }
        });
    }
}

#[test]
fn a_server_that_is_forced_is_found() {
    let main: Main = Arc::new(|user: &mut User, service| {
        let timer = user.cap("timer");
        let send = sending(user, service, &[(timer, TransferMode::Copy)]);
        assert_eq!(user.call(send).status(), Status::TransferRefused);
    });
    let config = Config { defect: Some(Defect::TransferForced), ..Config::default() };
    let planted = AssertUnwindSafe(|| run(config, pair(0, main), vec![]));
    assert!(catch_unwind(planted).is_err());
}

#[test]
fn a_kernel_object_takes_none() {
    client(0, |user, _| {
        let timer = user.cap("timer");
        write(user, &[], &[(timer, TransferMode::Move)]);
        let send = Sqe { transfers: 1, ..User::calling_of::<timer::methods::Now>(timer) };
        assert_eq!(user.call(send).status(), Status::TransferRefused);
        assert!(is_timer(user, timer));
    });
}

/// A client that lets a server fill its table up to the last slot, and then asks for more than fits.
#[test]
fn results_come_in_slots_of_the_caller_until_there_are_none() {
    let server = Process::new("server", |mut user| {
        let timer = user.cap("timer");
        loop {
            let next = receiving(&user, 0);
            let done = user.call(next);
            let count = usize::from(done.cqe.method);
            if count == usize::from(LAST) {
                assert_eq!(user.call(returning(&done)).status(), Status::Ok);
                return;
            }
            write(&mut user, &[1, 2], &vec![(timer, TransferMode::Copy); count]);
            let answer = Sqe { length: 16, transfers: count as u16, ..returning(&done) };
            let status = user.call(answer).status();
            if status == Status::TransferRefused {
                // The call is still there to be answered.
                assert_eq!(user.call(returning(&done)).status(), Status::Ok);
            } else {
                assert_eq!(status, Status::Ok);
            }
        }
    })
    .with("endpoint", Grant::Endpoint);
    let main = |mut user: User| {
        let service = user.cap("service");
        let before = used(&user);
        let mut mine = Vec::new();
        let refused = user.call(User::calling(service, 3, 0));
        assert_eq!((refused.status(), refused.cqe.length), (Status::Ok, 0), "none was accepted");
        loop {
            let ask = Sqe { result_transfers: 3, ..User::calling(service, 3, 0) };
            let done = user.call(ask);
            if done.status() == Status::Overloaded {
                break;
            }
            assert_eq!((done.status(), done.cqe.length), (Status::Ok, 16));
            assert_eq!(&done.words[..2], &[1, 2]);
            mine.extend(slots(&done));
            assert_eq!(used(&user), before + mine.len() as u32);
        }
        assert!(used(&user) + 3 > 32, "there was room for three more");
        for slot in mine {
            assert!(is_timer(&mut user, slot));
            assert_eq!(release(&mut user, slot), Status::Ok);
        }
        assert_eq!(used(&user), before);
        assert_eq!(user.call(User::calling(service, LAST, 0)).status(), Status::Ok);
    };
    let client = Process::new("client", main).with("service", Grant::Client(0, 0, 1));
    end_well(&run(Config::default(), vec![server, client], vec![]));
}

/// By address on both sides, behind a payload that is no multiple of eight bytes.
#[test]
fn a_list_follows_the_payload_at_the_next_multiple_of_eight() {
    let server = Process::new("server", |mut user| {
        user.space().map(PAGE, 1, true);
        let into = Sqe {
            flags: SqeFlags::RESULT_BY_ADDRESS,
            result_address: PAGE + 8,
            result_capacity: 64,
            ..receiving(&user, 2)
        };
        let done = user.call(into);
        assert_eq!((done.status(), done.cqe.length), (Status::Ok, 13));
        assert_eq!(done.cqe.transfers(), 2);
        let mut words = [0_u64; 6];
        user.space().copy_in(words.as_mut_bytes(), PAGE + 8).unwrap();
        for slot in [words[2], words[4]] {
            assert!(is_timer(&mut user, CapSlot::from_bits(slot)));
        }
        assert_eq!((words[3], words[5]), (0, 0));
        assert_eq!(user.call(returning(&done)).status(), Status::Ok);
        // A room that the payload fits, and the list does not.
        let small = Sqe { result_capacity: 40, user_data: 7, ..into };
        let done = user.call(small);
        assert_eq!((done.status(), done.cqe.method), (Status::Ok, LAST));
        assert_eq!(user.call(returning(&done)).status(), Status::Ok);
    })
    .with("endpoint", Grant::Endpoint);
    let main = |mut user: User| {
        user.space().map(PAGE, 1, true);
        let timer = user.cap("timer");
        let one = Transfer { slot: timer.to_bits(), mode: 0, reserved: 0 };
        user.space().copy_out(PAGE + 3, b"thirteen byte").unwrap();
        user.space().copy_out(PAGE + 19, [one, one].as_bytes()).unwrap();
        let service = user.cap("service");
        let send = Sqe {
            flags: SqeFlags::BY_ADDRESS,
            address: PAGE + 3,
            transfers: 2,
            ..User::calling(service, 0, 13)
        };
        assert_eq!(user.call(send).status(), Status::Ok);
        assert_eq!(user.call(send).status(), Status::ParamsTooLarge);
        let before = used(&user);
        let unmapped = Sqe { address: PAGE + 4096 - 20, transfers: 1, ..send };
        assert_eq!(user.call(unmapped).status(), Status::BadAddress);
        assert_eq!(used(&user), before);
        assert_eq!(user.call(User::calling(service, LAST, 0)).status(), Status::Ok);
    };
    let client = Process::new("client", main).with("service", Grant::Client(0, 0, 1));
    end_well(&run(Config::default(), vec![server, client], vec![]));
}

/// Facets: a copy works like the original, and falls with it, on its way or arrived.
#[test]
fn a_facet_that_is_revoked_falls_wherever_it_was_sent() {
    use schema::endpoint::{RevokeFacetsParams, methods};
    let steps = Arc::new(AtomicU32::new(0));
    let (server_steps, holder_steps) = (steps.clone(), steps.clone());
    let server = Process::new("server", move |mut user| {
        let next = receiving(&user, 0);
        // One call through the copy.
        let done = user.call(next);
        assert_eq!((done.status(), done.cqe.badge), (Status::Ok, 5));
        assert_eq!(user.call(returning(&done)).status(), Status::Ok);
        let endpoint = user.cap("endpoint");
        let revoke =
            user.typed::<methods::RevokeFacets>(endpoint, 0, &RevokeFacetsParams { badge: 5 });
        assert_eq!(user.call(revoke).status(), Status::Ok);
        server_steps.store(1, SeqCst);
    })
    .with("endpoint", Grant::Endpoint);
    let holder = Process::new("holder", move |mut user| {
        let next = receiving(&user, 1);
        let done = user.call(next);
        let [copy] = slots(&done)[..] else { panic!("one was sent") };
        assert_eq!(user.call(User::calling(copy, 0, 0)).status(), Status::Ok);
        while holder_steps.load(SeqCst) == 0 {
            user.compute_a_slice();
        }
        assert_eq!(user.call(User::calling(copy, 0, 0)).status(), Status::Disconnected);
        assert_eq!(user.call(returning(&done)).status(), Status::Ok);
    })
    .with("endpoint", Grant::Endpoint);
    let sender = Process::new("sender", move |mut user| {
        let (holder, facet) = (user.cap("holder"), user.cap("facet"));
        let send = sending(&mut user, holder, &[(facet, TransferMode::Copy)]);
        assert_eq!(user.call(send).status(), Status::Ok);
        // What is revoked cannot be sent any more.
        let again = user.call(send).status();
        assert_eq!(again, Status::Disconnected);
    })
    .with("holder", Grant::Client(1, 0, 1))
    .with("facet", Grant::Client(0, 0, 5));
    end_well(&run(Config::default(), vec![server, holder, sender], vec![]));
}

/// A queued call whose receiver comes later is judged then: by the slots and the list of that moment.
#[test]
fn a_call_that_waits_is_judged_when_it_is_delivered() {
    let main = |mut user: User| {
        let (timer, own) = (user.cap("timer"), user.cap("own"));
        let send = Sqe { user_data: 1, ..sending(&mut user, own, &[(timer, TransferMode::Move)]) };
        assert!(user.submit(send));
        user.enter(0, 0);
        assert!(user.take().is_none() && is_timer(&mut user, timer), "it has not left yet");
        let next = receiving(&user, 1);
        let done = user.call(next);
        let [moved] = slots(&done)[..] else { panic!("one was sent") };
        assert!(!is_timer(&mut user, timer) && is_timer(&mut user, moved));
        assert!(user.submit(returning(&done)));
        user.enter(2, 0);
        let ends = [user.take(), user.take()].map(|done| done.map(|done| done.status()));
        assert_eq!(ends, [Some(Status::Ok); 2]);
        // Released before the receive: the call ends, and the receive goes on.
        let send = Sqe { user_data: 1, ..sending(&mut user, own, &[(moved, TransferMode::Move)]) };
        assert!(user.submit(send));
        user.enter(0, 0);
        assert_eq!(release(&mut user, moved), Status::Ok);
        assert!(user.submit(receiving(&user, 1)));
        user.enter(1, 0);
        let ended = user.take().unwrap();
        assert_eq!((ended.cqe.user_data, ended.status()), (1, Status::Disconnected));
        assert!(user.submit(Sqe { arg: 7, ..sqe(Opcode::Cancel) }));
        user.enter(2, 0);
        assert_eq!(user.take().map(|done| done.status()), Some(Status::Cancelled));
        assert_eq!(user.take().map(|done| done.status()), Some(Status::Ok));
    };
    let main = Process::new("main", main)
        .with("endpoint", Grant::Endpoint)
        .with("own", Grant::Client(0, 0, 1));
    end_well(&run(Config::default(), vec![main], vec![]));
}

/// The receiving side of an endpoint moves and is not copied; its release closes it wherever it is.
#[test]
fn an_endpoint_moves_and_closes_where_it_is_released() {
    let main = |mut user: User| {
        let (own, second) = (user.cap("own"), user.cap("second"));
        let copy = Sqe { user_data: 1, ..sending(&mut user, own, &[(second, TransferMode::Copy)]) };
        assert!(user.submit(copy) && user.submit(receiving(&user, 1)));
        user.enter(1, 0);
        let refused = user.take().unwrap();
        assert_eq!((refused.cqe.user_data, refused.status()), (1, Status::NotTransferable));
        let take = Sqe { user_data: 1, ..sending(&mut user, own, &[(second, TransferMode::Move)]) };
        assert!(user.submit(take));
        user.enter(1, 0);
        let done = user.take().unwrap();
        let [moved] = slots(&done)[..] else { panic!("one was sent") };
        assert!(user.submit(returning(&done)));
        user.enter(2, 0);
        let _ = (user.take(), user.take());
        let to_second = user.cap("to_second");
        let call = Sqe { user_data: 3, ..User::calling(to_second, 0, 0) };
        assert!(user.submit(call));
        user.enter(0, 0);
        assert!(user.take().is_none(), "it is open");
        assert_eq!(release_beside(&mut user, moved), [(3, Status::Disconnected), (4, Status::Ok)]);
    };
    let main = Process::new("main", main)
        .with("endpoint", Grant::Endpoint)
        .with("second", Grant::Endpoint)
        .with("own", Grant::Client(0, 0, 1))
        .with("to_second", Grant::Client(0, 1, 1));
    end_well(&run(Config::default(), vec![main], vec![]));
}

/// Another process is not given the receiving side: nothing arrives, and it still receives where it was.
#[test]
fn an_endpoint_stays_with_the_process_that_serves_it() {
    let keeper = |mut user: User| {
        let next = receiving(&user, 2);
        let done = user.call(next);
        assert!(slots(&done).is_empty(), "only what came without it");
        user.call(returning(&done));
    };
    let main = |mut user: User| {
        let (to_keeper, timer) = (user.cap("to_keeper"), user.cap("timer"));
        let (endpoint, before) = (user.cap("endpoint"), used(&user));
        for list in [
            &[(endpoint, TransferMode::Move)][..],
            &[(timer, TransferMode::Move), (endpoint, TransferMode::Move)],
            &[(endpoint, TransferMode::Copy)],
        ] {
            let send = sending(&mut user, to_keeper, list);
            assert_eq!(user.call(send).status(), Status::NotTransferable);
            assert_eq!(used(&user), before);
        }
        assert!(is_timer(&mut user, timer), "moved with nothing");
        // It is this process's as it was.
        let own = user.cap("own");
        let call = Sqe { user_data: 3, ..User::calling(own, 0, 0) };
        assert!(user.submit(call) && user.submit(receiving(&user, 0)));
        user.enter(1, 0);
        assert_eq!(
            user.take().map(|done| (done.cqe.user_data, done.status())),
            Some((7, Status::Ok))
        );
        let plain = User::calling(to_keeper, 0, 0);
        assert!(user.submit(plain));
        user.enter(1, 0);
    };
    let main = Process::new("main", main)
        .with("endpoint", Grant::Endpoint)
        .with("own", Grant::Client(0, 0, 1))
        .with("to_keeper", Grant::Client(1, 0, 1));
    let keeper = Process::new("keeper", keeper).with("endpoint", Grant::Endpoint);
    run(Config::default(), vec![main, keeper], vec![]);
}

/// Releases a slot while something else is pending; what completed, by name.
fn release_beside(user: &mut User, slot: CapSlot) -> [(u64, Status); 2] {
    let release = Sqe { cap: slot.to_bits(), user_data: 4, ..sqe(Opcode::Release) };
    assert!(user.submit(release));
    user.enter(2, 0);
    [user.take().unwrap(), user.take().unwrap()].map(|done| (done.cqe.user_data, done.status()))
}

/// A receiver that ends while it is sent something: what was moved is the sender's again, or was delivered.
/// The receiver's process is killed by its sibling at any point of the delivery.
fn ends_on_the_way(cpus: usize, lingers: u32, defect: Option<Defect>) {
    let server = Process::new("server", move |mut user| {
        user.spawn(0, u64::from(lingers)).unwrap();
        let next = receiving(&user, 1);
        user.call(next);
        user.exit(0)
    })
    .with("endpoint", Grant::Endpoint);
    let sibling: test_machine::Body = Arc::new(|mut user: User| {
        for _ in 0..user.argument {
            user.compute();
        }
        user.exit(0)
    });
    let client = Process::new("client", |mut user| {
        let (timer, service) = (user.cap("timer"), user.cap("service"));
        let before = used(&user);
        let send = sending(&mut user, service, &[(timer, TransferMode::Move)]);
        let status = user.call(send).status();
        let left = before - used(&user);
        let is_here = is_timer(&mut user, timer);
        assert_eq!(left, u32::from(!is_here), "{status:?}");
        // A call that never reached its receiver leaves everything here.
        assert!(
            matches!(status, Status::Ok | Status::Disconnected | Status::Cancelled),
            "{status:?}"
        );
    })
    .with("service", Grant::Client(0, 0, 1));
    let config = Config { cpus, defect, ..Config::default() };
    end_well(&run(config, vec![server, client], vec![sibling]));
}

#[test]
fn what_is_sent_to_a_process_that_ends_is_in_one_place() {
    for cpus in [1, 2, 3] {
        for lingers in 0..12 {
            ends_on_the_way(cpus, lingers, None);
            ends_on_the_way(cpus, lingers, Some(Defect::SlowArrival));
        }
    }
}

#[test]
fn a_move_that_is_lost_is_found() {
    let is_found = |lingers| {
        let planted = || ends_on_the_way(2, lingers, Some(Defect::MoveLost));
        catch_unwind(AssertUnwindSafe(planted)).is_err()
    };
    assert!((0..40).any(is_found));
}
