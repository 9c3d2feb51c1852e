//! The service by hand: each promise once, and the cases with a name.

use abi_types::{ReplyToken, Status};
use core_endpoint::*;

type Plain = Service<u32, char, Vec<Record<u32, char>>, Vec<Endpoint>>;

fn service(records: usize) -> Plain {
    Service::new(vec![Record::UNUSED; records], vec![Endpoint::UNUSED; 2])
}

const LIMITS: Limits = Limits { queued: 4, in_flight: 4 };

fn call(caller: u32) -> Call<u32> {
    Call { caller, badge: 0, deadline_ns: 0 }
}

fn none(ended: Ended<u32, char>) {
    panic!("nothing was to end: {ended:?}");
}

/// A receive that finds nobody.
fn waits(service: &mut Plain, on: EndpointKey, receiver: char) -> RecvKey {
    match service.recv(on, receiver, 0, none) {
        Ok(RecvVerdict::Waiting(key)) => key,
        other => panic!("{other:?}"),
    }
}

/// A call that finds nobody.
fn queues(service: &mut Plain, on: EndpointKey, caller: u32) -> CallKey {
    match service.call(on, call(caller), 0) {
        Ok(CallVerdict::Queued(key)) => key,
        other => panic!("{other:?}"),
    }
}

/// A receive that finds a caller.
fn receives(service: &mut Plain, on: EndpointKey, receiver: char) -> (u32, ReplyToken) {
    match service.recv(on, receiver, 0, none) {
        Ok(RecvVerdict::Deliver { caller, token, .. }) => (caller, token),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_goes_to_the_longest_waiting_receiver_and_its_answer_back() {
    let mut service = service(8);
    let on = service.open(LIMITS).unwrap();
    let _ = waits(&mut service, on, 'x');
    let _ = waits(&mut service, on, 'y');
    let Ok(CallVerdict::Deliver { to: 'x', token }) = service.call(on, call(1), 0) else {
        panic!()
    };
    assert_eq!(service.caller_of(token), Ok(Some(&1)));
    let complete = ReplyVerdict::Complete { caller: 1, donation: None };
    assert_eq!(service.reply(token), Ok(complete));
    assert_eq!(service.reply(token), Err(StaleToken), "answered once");
    service.check_invariants().unwrap();
}

#[test]
fn queued_calls_are_received_in_order_with_badge_and_deadline() {
    let mut service = service(8);
    let on = service.open(LIMITS).unwrap();
    for caller in 1..4 {
        let call = Call { caller, badge: 0xb0 + u64::from(caller), deadline_ns: 100 };
        assert!(matches!(service.call(on, call, 5), Ok(CallVerdict::Queued(_))));
    }
    for expected in 1..4 {
        let Ok(RecvVerdict::Deliver { caller, badge, deadline_ns, .. }) =
            service.recv(on, 'x', 6, none)
        else {
            panic!()
        };
        assert_eq!((caller, badge, deadline_ns), (expected, 0xb0 + u64::from(expected), 100));
    }
}

#[test]
fn limits_refuse_and_change_nothing() {
    let mut service = service(16);
    let on = service.open(Limits { queued: 2, in_flight: 2 }).unwrap();
    let _ = queues(&mut service, on, 1);
    let _ = queues(&mut service, on, 2);
    let before = service.clone();
    assert_eq!(service.call(on, call(3), 0), Err(CallError::Overloaded));
    assert_eq!(service, before);
    let (_, token) = receives(&mut service, on, 'x');
    let _ = receives(&mut service, on, 'x');
    let before = service.clone();
    assert_eq!(service.recv(on, 'x', 0, none), Err(RecvError::Overloaded));
    assert_eq!(service, before);
    // A waiting receive counts: it will be served.
    let _ = service.reply(token).unwrap();
    let _ = waits(&mut service, on, 'x');
    assert_eq!(service.recv(on, 'y', 0, none), Err(RecvError::Overloaded));
}

#[test]
fn running_out_of_records_is_an_answer() {
    let mut service = service(2);
    let on = service.open(LIMITS).unwrap();
    let _ = queues(&mut service, on, 1);
    let _ = queues(&mut service, on, 2);
    let before = service.clone();
    assert_eq!(service.call(on, call(3), 0), Err(CallError::Overloaded));
    assert_eq!(service, before);
    let (_, first) = receives(&mut service, on, 'x');
    let _ = receives(&mut service, on, 'x');
    assert_eq!(service.recv(on, 'x', 0, none), Err(RecvError::Overloaded));
    // Answering and receiving again needs no record beyond its own.
    assert!(service.reply_then_recv(first, on, 'x', 0, none).is_ok());
    service.check_invariants().unwrap();
}

/// I7: an expired call is never delivered, whoever notices first.
#[test]
fn an_expired_call_ends_undelivered() {
    let mut service = service(8);
    let on = service.open(LIMITS).unwrap();
    let timed = |caller, deadline_ns| Call { caller, badge: 0, deadline_ns };
    assert_eq!(service.call(on, timed(1, 10), 10), Err(CallError::DeadlineExpired));
    let Ok(CallVerdict::Queued(two)) = service.call(on, timed(2, 20), 10) else { panic!() };
    let Ok(CallVerdict::Queued(three)) = service.call(on, timed(3, 30), 10) else { panic!() };
    let four = queues(&mut service, on, 4);
    // The timer notices the second call ...
    assert_eq!(service.expire_call(two, 19), Err(ExpireError::NotDue));
    let end = CallEnd { caller: 2, donation: None, was_delivered: false };
    assert_eq!(service.expire_call(two, 20), Ok(end));
    assert_eq!(service.expire_call(two, 20), Err(ExpireError::NotFound));
    assert_eq!(service.expire_call(four, u64::MAX), Err(ExpireError::NotDue));
    // ... and the receiver passes the third.
    let mut ended = Vec::new();
    let received = service.recv(on, 'x', 30, |end| ended.push(end));
    assert!(matches!(received, Ok(RecvVerdict::Deliver { caller: 4, .. })));
    let end = CallEnd { caller: 3, donation: None, was_delivered: false };
    assert_eq!(ended, [Ended::Call { end, status: Status::DeadlineExpired }]);
    assert_eq!(service.expire_call(three, 31), Err(ExpireError::NotFound));
    service.check_invariants().unwrap();
}

/// PB9: whoever leaves the middle of a queue is out of it, its record is free again, and its
/// neighbours keep their order.
#[test]
fn pb9_cancel_and_expiry_unlink_by_identity() {
    let mut service = service(6);
    let on = service.open(Limits { queued: 6, in_flight: 6 }).unwrap();
    let keys: Vec<_> = (0..6).map(|caller| queues(&mut service, on, caller)).collect();
    for gone in [2, 0, 5] {
        let end = CallEnd { caller: gone as u32, donation: None, was_delivered: false };
        assert_eq!(service.cancel_call(keys[gone]), Ok(end));
        assert_eq!(service.cancel_call(keys[gone]), Err(NotFound), "cancelled once");
        service.check_invariants().unwrap();
    }
    for _ in 0..1000 {
        let key = queues(&mut service, on, 9);
        let _ = service.cancel_call(key).unwrap();
    }
    let order: Vec<_> = (0..3).map(|_| receives(&mut service, on, 'x').0).collect();
    assert_eq!(order, [1, 3, 4]);
    // The same for receivers.
    let other = service.open(LIMITS).unwrap();
    let x = waits(&mut service, other, 'x');
    let y = waits(&mut service, other, 'y');
    assert_eq!(service.cancel_recv(x), Ok('x'));
    assert_eq!(service.cancel_recv(x), Err(NotFound));
    let delivered = service.call(other, call(7), 0);
    assert!(matches!(delivered, Ok(CallVerdict::Deliver { to: 'y', .. })));
    assert_eq!(service.cancel_recv(y), Err(NotFound), "it was delivered to");
}

/// PB13: a token of an earlier call in the same record answers nothing, and a call to an
/// endpoint's predecessor does not reach its successor.
#[test]
fn pb13_nothing_from_before_reaches_what_came_after() {
    let mut service = service(1);
    let on = service.open(LIMITS).unwrap();
    let _ = queues(&mut service, on, 1);
    let (_, old) = receives(&mut service, on, 'x');
    let _ = service.reply(old).unwrap();
    let second = queues(&mut service, on, 2);
    let (_, new) = receives(&mut service, on, 'x');
    assert_eq!(new.index(), old.index(), "the record is used again");
    let before = service.clone();
    assert_eq!(service.reply(old), Err(StaleToken));
    let again = service.reply_then_recv(old, on, 'x', 0, none);
    assert_eq!(again, Err(ReplyThenRecvError::StaleToken));
    assert_eq!(service.cancel_call(CallKey::of(old)), Err(NotFound));
    assert_eq!(service.lend(CallKey::of(old), Donation(1)), Err(LendError::NotFound));
    assert_eq!(service, before);
    // The caller gives up; its record serves until the answer, which reaches nobody.
    assert!(service.cancel_call(second).unwrap().was_delivered);
    assert_eq!(service.reply(new), Ok(ReplyVerdict::Dropped));

    service.close(on, none).unwrap();
    let successor = service.open(LIMITS).unwrap();
    assert_eq!(service.call(on, call(3), 0), Err(CallError::Disconnected));
    assert_eq!(service.recv(on, 'x', 0, none), Err(RecvError::Disconnected));
    assert_eq!(service.close(on, none), Err(NotFound));
    let _ = queues(&mut service, successor, 3);
}

/// Generations come round to 1, not to 0, which names nothing.
#[test]
fn a_generation_that_comes_round_skips_zero() {
    let records = vec![Record::used_before(u32::MAX - 1)];
    let mut service: Plain = Service::new(records, vec![Endpoint::UNUSED; 1]);
    let on = service.open(LIMITS).unwrap();
    let _ = queues(&mut service, on, 1);
    let (_, last) = receives(&mut service, on, 'x');
    assert_eq!(last.generation(), u32::MAX);
    assert!(service.reply_then_recv(last, on, 'x', 0, none).is_ok());
    let Ok(CallVerdict::Deliver { token, .. }) = service.call(on, call(2), 0) else { panic!() };
    assert_eq!(token, ReplyToken::new(0, 1));
    assert_eq!(service.reply(last), Err(StaleToken));
    service.check_invariants().unwrap();
}

/// PB14: a server gets rid of a call in one step that cannot wait, whatever the caller did.
#[test]
fn pb14_an_answer_never_blocks_the_server() {
    let mut service = service(8);
    let on = service.open(LIMITS).unwrap();
    for caller_gives_up in [false, true] {
        let key = queues(&mut service, on, 1);
        let (_, token) = receives(&mut service, on, 'x');
        if caller_gives_up {
            let _ = service.cancel_call(key).unwrap();
            assert_eq!(service.caller_of(token), Ok(None));
        }
        assert!(service.reply(token).is_ok());
    }
    // Endpoint closed under the server: the answer still goes out.
    let _ = queues(&mut service, on, 2);
    let (_, token) = receives(&mut service, on, 'x');
    service.close(on, none).unwrap();
    assert_eq!(service.reply(token), Ok(ReplyVerdict::Complete { caller: 2, donation: None }));
    service.check_invariants().unwrap();
}

#[test]
fn a_refused_return_with_receive_does_neither() {
    let mut service = service(8);
    let on = service.open(LIMITS).unwrap();
    let full = service.open(Limits { queued: 1, in_flight: 0 }).unwrap();
    let _ = queues(&mut service, on, 1);
    let (_, token) = receives(&mut service, on, 'x');
    let before = service.clone();
    let overloaded = ReplyThenRecvError::Recv(RecvError::Overloaded);
    assert_eq!(service.reply_then_recv(token, full, 'x', 0, none), Err(overloaded));
    let disconnected = ReplyThenRecvError::Recv(RecvError::Disconnected);
    let nowhere = service.reply_then_recv(token, EndpointKey::NONE, 'x', 0, none);
    assert_eq!(nowhere, Err(disconnected));
    assert_eq!(service, before);
    assert!(service.reply(token).is_ok());
}

#[test]
fn what_was_lent_comes_back_with_the_end_of_the_call_whichever_it_is() {
    let lent = Some(Donation(5));
    for end in 0..5 {
        let mut service = service(8);
        let on = service.open(LIMITS).unwrap();
        let key = queues(&mut service, on, 1);
        assert_eq!(service.lend(key, Donation(5)), Err(LendError::NotFound), "not delivered");
        let (_, token) = receives(&mut service, on, 'x');
        assert_eq!(service.lend(key, Donation(5)), Ok(()));
        assert_eq!(service.lend(key, Donation(6)), Err(LendError::AlreadyLent));
        let mut ended = Vec::new();
        let back = match end {
            0 => match service.reply(token) {
                Ok(ReplyVerdict::Complete { donation, .. }) => donation,
                other => panic!("{other:?}"),
            },
            1 => match service.reply_then_recv(token, on, 'x', 0, none) {
                Ok((ReplyVerdict::Complete { donation, .. }, _)) => donation,
                other => panic!("{other:?}"),
            },
            2 => {
                let end = service.cancel_call(key).unwrap();
                assert_eq!(service.reply(token), Ok(ReplyVerdict::Dropped), "not given twice");
                end.donation
            }
            3 => {
                service.receiver_exit(|receiver| *receiver == 'x', |end| ended.push(end));
                None
            }
            _ => {
                service.shut();
                assert_eq!(service.drain(100, |end| ended.push(end)), DrainVerdict::Done);
                None
            }
        };
        let back = match ended.first() {
            Some(Ended::Call { end, status: Status::Disconnected }) => end.donation,
            _ => back,
        };
        assert_eq!(back, lent, "end {end}");
        service.check_invariants().unwrap();
    }
}

#[test]
fn a_thread_that_ends_disconnects_what_it_held_and_nothing_else() {
    let mut service = service(16);
    let on = service.open(Limits { queued: 8, in_flight: 8 }).unwrap();
    let keys: Vec<_> = (0..4).map(|caller| queues(&mut service, on, caller)).collect();
    let (_, token_x) = receives(&mut service, on, 'x');
    let (_, token_y) = receives(&mut service, on, 'y');
    let (_, given_up) = receives(&mut service, on, 'x');
    let _ = service.cancel_call(keys[2]).unwrap();
    let _ = receives(&mut service, on, 'y');
    let _ = waits(&mut service, on, 'x');
    let _ = waits(&mut service, on, 'y');
    let mut ended = Vec::new();
    service.receiver_exit(|receiver| *receiver == 'x', |end| ended.push(end));
    service.check_invariants().unwrap();
    let end = CallEnd { caller: 0, donation: None, was_delivered: true };
    let status = Status::Disconnected;
    assert_eq!(ended.len(), 2);
    assert!(ended.contains(&Ended::Call { end, status }));
    assert!(ended.contains(&Ended::Recv { receiver: 'x', status }));
    assert_eq!(service.reply(token_x), Err(StaleToken));
    assert_eq!(service.reply(given_up), Err(StaleToken));
    assert!(service.reply(token_y).is_ok());
}

#[test]
fn a_delivery_that_fails_puts_the_innocent_party_back_in_front() {
    // The caller's fault, nobody else calls: the receiver waits in front.
    let mut service = service(8);
    let on = service.open(LIMITS).unwrap();
    let _ = waits(&mut service, on, 'x');
    let _ = waits(&mut service, on, 'y');
    let Ok(CallVerdict::Deliver { token, .. }) = service.call(on, call(1), 0) else { panic!() };
    let rejected = service.reject_call(CallKey::of(token), 0, none).unwrap();
    assert_eq!((rejected.call, rejected.receiver), (Some((1, None)), 'x'));
    assert!(matches!(rejected.again, RecvAgain::Recv(RecvVerdict::Waiting(_))));
    service.check_invariants().unwrap();
    // Another caller queued meanwhile: it is served at once.
    let Ok(CallVerdict::Deliver { to: 'x', token }) = service.call(on, call(2), 0) else {
        panic!("x was in front")
    };
    let Ok(CallVerdict::Deliver { to: 'y', .. }) = service.call(on, call(3), 0) else { panic!() };
    let _ = queues(&mut service, on, 4);
    let rejected = service.reject_call(CallKey::of(token), 0, none).unwrap();
    let RecvAgain::Recv(RecvVerdict::Deliver { caller: 4, token, .. }) = rejected.again else {
        panic!("{rejected:?}")
    };
    service.check_invariants().unwrap();
    // The receiver's fault: the call is in front of the queue again, with the same key.
    let _ = queues(&mut service, on, 5);
    let rejected = service.reject_recv(CallKey::of(token), 0xb, 99).unwrap();
    assert_eq!(rejected.receiver, 'x');
    assert_eq!(rejected.again, CallAgain::Call(CallVerdict::Queued(CallKey::of(token))));
    service.check_invariants().unwrap();
    let Ok(RecvVerdict::Deliver { caller: 4, badge: 0xb, deadline_ns: 99, .. }) =
        service.recv(on, 'z', 0, none)
    else {
        panic!("4 was in front")
    };
    service.check_invariants().unwrap();
}

#[test]
fn a_receive_that_is_given_up_in_a_delivery_that_fails_ends() {
    let mut service = service(8);
    let on = service.open(LIMITS).unwrap();
    let x = waits(&mut service, on, 'x');
    assert!(!service.give_up_delivery(x), "nothing is on its way to it");
    let Ok(CallVerdict::Deliver { token, .. }) = service.call(on, call(1), 0) else { panic!() };
    assert_eq!((service.cancel_recv(x), RecvKey::of(token)), (Err(NotFound), x));
    assert!(service.give_up_delivery(x));
    let rejected = service.reject_call(CallKey::of(token), 0, none).unwrap();
    assert_eq!((rejected.call, rejected.again), (Some((1, None)), RecvAgain::GivenUp('x')));
    assert!(!service.give_up_delivery(x), "it has ended");
    service.check_invariants().unwrap();
    // The mark is that of one delivery: neither the record's next use nor the call's next receiver has it.
    let _ = waits(&mut service, on, 'y');
    let _ = waits(&mut service, on, 'z');
    let Ok(CallVerdict::Deliver { to: 'y', token }) = service.call(on, call(2), 0) else {
        panic!()
    };
    assert!(service.give_up_delivery(RecvKey::of(token)));
    let again = service.reject_recv(CallKey::of(token), 0, 0).unwrap().again;
    assert_eq!(again, CallAgain::Call(CallVerdict::Deliver { to: 'z', token }));
    let rejected = service.reject_call(CallKey::of(token), 0, none).unwrap();
    assert!(matches!(rejected.again, RecvAgain::Recv(RecvVerdict::Waiting(_))));
    service.check_invariants().unwrap();
}

#[test]
fn a_failed_delivery_meets_whatever_happened_meanwhile() {
    let fresh = || {
        let mut service = service(8);
        let on = service.open(Limits { queued: 1, in_flight: 3 }).unwrap();
        let _ = waits(&mut service, on, 'x');
        let Ok(CallVerdict::Deliver { token, .. }) = service.call(on, call(1), 0) else { panic!() };
        (service, on, CallKey::of(token))
    };
    let (mut service, on, key) = fresh();
    service.close(on, none).unwrap();
    let rejected = service.reject_call(key, 0, none).unwrap();
    assert_eq!(rejected.again, RecvAgain::Disconnected('x'));
    assert_eq!(service.reject_call(key, 0, none), Err(NotFound));
    let (mut service, on, key) = fresh();
    service.close(on, none).unwrap();
    assert_eq!(service.reject_recv(key, 0, 0).unwrap().again, CallAgain::Disconnected(1));
    assert_eq!(service.reject_recv(key, 0, 0), Err(NotFound));
    let (mut service, _, key) = fresh();
    let _ = service.cancel_call(key).unwrap();
    assert_eq!(service.reject_recv(key, 0, 0).unwrap().again, CallAgain::Abandoned);
    let (mut service, _, key) = fresh();
    let _ = service.cancel_call(key).unwrap();
    assert_eq!(service.reject_call(key, 0, none).unwrap().call, None);
    let (mut service, on, key) = fresh();
    let _ = queues(&mut service, on, 2);
    assert_eq!(service.reject_recv(key, 0, 0).unwrap().again, CallAgain::Overloaded(1));
    service.check_invariants().unwrap();
    let (mut service, on, key) = fresh();
    let _ = waits(&mut service, on, 'y');
    let again = service.reject_recv(key, 0, 0).unwrap().again;
    assert!(matches!(again, CallAgain::Call(CallVerdict::Deliver { to: 'y', .. })));
    service.check_invariants().unwrap();
}

#[test]
fn the_end_of_the_owner_ends_everything_once_in_bounded_steps() {
    let mut service = service(16);
    let on = service.open(Limits { queued: 8, in_flight: 8 }).unwrap();
    let other = service.open(LIMITS).unwrap();
    let keys: Vec<_> = (0..5).map(|caller| queues(&mut service, on, caller)).collect();
    let (_, token) = receives(&mut service, on, 'x');
    let _ = receives(&mut service, on, 'y');
    let _ = service.cancel_call(keys[1]).unwrap();
    let _ = waits(&mut service, other, 'z');
    service.shut();
    assert_eq!(service.call(on, call(9), 0), Err(CallError::Disconnected));
    assert_eq!(service.recv(on, 'x', 0, none), Err(RecvError::Disconnected));
    assert_eq!(service.open(LIMITS), Err(CreateError::Closed));
    // A caller may still give up, and a thread may still answer, before its turn comes.
    assert!(service.cancel_call(keys[4]).is_ok());
    service.check_invariants().unwrap();
    let mut ended = Vec::new();
    loop {
        let before = ended.len();
        let verdict = service.drain(3, |end| ended.push(end));
        assert!(ended.len() <= before + 3);
        service.check_invariants().unwrap();
        if verdict == DrainVerdict::Done {
            break;
        }
    }
    let mut callers: Vec<_> = ended
        .iter()
        .filter_map(|end| match end {
            Ended::Call { end, status: Status::Disconnected } => Some(end.caller),
            _ => None,
        })
        .collect();
    callers.sort_unstable();
    assert_eq!((callers, ended.len()), (vec![0, 2, 3], 4));
    assert_eq!(service.reply(token), Err(StaleToken));
}
