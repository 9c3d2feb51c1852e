//! Finding a party and then committing is the same as doing both at once, in every state, and finding
//! one changes nothing.

use abi_types::ReplyToken;
use core_endpoint::*;
use test_property::prelude::*;

type Plain = Service<u32, u32, Vec<Record<u32, u32>>, Vec<Endpoint>>;

#[derive(Clone, Copy, Debug)]
enum Step {
    Call(usize),
    Recv(usize),
    Reply(usize),
    ReplyThenRecv(usize, usize),
    Cancel(usize),
    Lend(usize),
    Close(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0..2_usize).prop_map(Step::Call),
        5 => (0..2_usize).prop_map(Step::Recv),
        2 => any::<usize>().prop_map(Step::Reply),
        2 => (any::<usize>(), 0..2_usize).prop_map(|(token, on)| Step::ReplyThenRecv(token, on)),
        1 => any::<usize>().prop_map(Step::Cancel),
        1 => any::<usize>().prop_map(Step::Lend),
        1 => (0..2_usize).prop_map(Step::Close),
    ]
}

/// Compares both ways for every endpoint and every token there ever was.
fn compare(service: &Plain, endpoints: &[EndpointKey], tokens: &[ReplyToken]) {
    for &on in endpoints {
        let (mut found, mut tried) = (service.clone(), service.clone());
        let mut looked = service.clone();
        let by_finding = looked.find_receiver(on).map(|(receiver, token, _)| (receiver, token));
        assert_eq!(&looked, service);
        if let Some((.., found)) = found.find_receiver(on) {
            found.deliver(77);
        }
        assert_eq!(by_finding, tried.try_deliver(on, 77, 0, 0));
        assert_eq!(found, tried);
        for &token in tokens {
            let (mut found, mut tried) = (service.clone(), service.clone());
            let by_finding = looked.find_caller(token, on).map(|(caller, key, _)| (caller, key));
            assert_eq!(&looked, service);
            if let Some((.., found)) = found.find_caller(token, on) {
                found.answer_then_wait(88);
            }
            match (by_finding, tried.try_reply_then_wait(token, on, 88)) {
                (Some((caller, key)), Some((same, None, other))) => {
                    assert_eq!((caller, key), (same, other));
                    assert_eq!(found, tried);
                }
                // What was lent is given back on the other way.
                (None, Some((_, Some(_), _)) | None) => assert_eq!(&found, service),
                other => panic!("{other:?}"),
            }
        }
    }
}

proptest! {
    #[test]
    fn finding_then_committing_is_trying(steps in prop::collection::vec(step(), 1..60)) {
        let mut service =
            Plain::new(vec![Record::UNUSED; 8], vec![Endpoint::UNUSED; 2]);
        let limits = Limits { queued: 3, in_flight: 4 };
        let mut endpoints = [service.open(limits).unwrap(), service.open(limits).unwrap()];
        let mut tokens = vec![ReplyToken::NONE];
        let mut who = 0;
        for step in steps {
            who += 1;
            let token = |n: usize| tokens[n % tokens.len()];
            match step {
                Step::Call(on) => {
                    let call = Call { caller: who, badge: 0, deadline_ns: 0 };
                    if let Ok(CallVerdict::Deliver { token, .. }) =
                        service.call(endpoints[on], call, 0)
                    {
                        tokens.push(token);
                    }
                }
                Step::Recv(on) => {
                    if let Ok(RecvVerdict::Deliver { token, .. }) =
                        service.recv(endpoints[on], who, 0, |_| ())
                    {
                        tokens.push(token);
                    }
                }
                Step::Reply(n) => drop(service.reply(token(n))),
                Step::ReplyThenRecv(n, on) => {
                    let both = service.reply_then_recv(token(n), endpoints[on], who, 0, |_| ());
                    if let Ok((_, RecvVerdict::Deliver { token, .. })) = both {
                        tokens.push(token);
                    }
                }
                Step::Cancel(n) => drop(service.cancel_call(CallKey::of(token(n)))),
                Step::Lend(n) => drop(service.lend(CallKey::of(token(n)), Donation(5))),
                Step::Close(on) => {
                    let _ = service.close(endpoints[on], |_| ());
                    endpoints[on] = service.open(limits).unwrap();
                }
            }
            compare(&service, &endpoints, &tokens);
        }
    }
}
