//! Random histories of a service against a slow, obvious model.
//!
//! The model keeps every call and receive there ever was, in plain maps and queues, and knows
//! nothing of records, links or generations. It says what each operation must answer; the
//! service must agree, and an answer that is an error must leave the service equal. Ends are
//! counted per call and per receive: at the close of the history each has exactly one.
#[path = "model/op.rs"]
mod op;
#[path = "model/world.rs"]
mod world;

use std::collections::{BTreeSet, VecDeque};

use abi_types::Status;
use core_endpoint::*;
use op::{Op, op};
use test_property::prelude::*;
use world::{CallState, ENDPOINTS, ModelCall, ModelEndpoint, Receiver, World, pick};

impl World {
    fn step(&mut self, op: &Op) {
        let before = self.real.clone();
        let changed = self.apply(op);
        if !changed {
            assert_eq!(self.real, before, "a refusal changed something: {op:?}");
        }
        self.real.check_invariants().unwrap();
    }

    /// Whether the service was to change.
    fn apply(&mut self, op: &Op) -> bool {
        let mut ended = Vec::new();
        match *op {
            Op::Pass(ns) => {
                self.now_ns += ns;
                false
            }
            Op::Open(queued, in_flight) => {
                let open = self.endpoints.iter().filter(|e| e.is_open).count();
                let limits = Limits { queued, in_flight };
                match self.real.open(limits) {
                    Ok(key) => {
                        assert!(open < ENDPOINTS);
                        self.endpoints.push(ModelEndpoint {
                            key,
                            is_open: true,
                            limits,
                            callers: VecDeque::new(),
                            receivers: VecDeque::new(),
                        });
                        true
                    }
                    Err(error) => {
                        assert_eq!((error, open), (CreateError::Full, ENDPOINTS));
                        false
                    }
                }
            }
            Op::Close(choice) => {
                let (at, key, is_open) = self.aim(choice);
                let closed = self.real.close(key, |end| ended.push(end));
                assert_eq!(closed.is_ok(), is_open);
                if is_open {
                    let endpoint = &mut self.endpoints[at];
                    endpoint.is_open = false;
                    let callers: Vec<_> = endpoint.callers.drain(..).collect();
                    let receivers: Vec<_> = endpoint.receivers.drain(..).collect();
                    self.match_disconnected(&ended, &callers, &receivers);
                }
                is_open
            }
            Op::Call { at, badge, deadline } => self.call(at, badge, deadline),
            Op::Recv { at, thread } => {
                let (at, key, is_open) = self.aim(at);
                let receiver = self.new_receiver(thread);
                match self.real.recv(key, receiver, self.now_ns, |end| ended.push(end)) {
                    Ok(verdict) => {
                        assert!(is_open && self.may_receive(at));
                        self.recvs.insert(receiver);
                        let (passed, next) = self.next_caller(at);
                        self.match_expired(at, &passed, &ended);
                        self.received(at, receiver, next, verdict, false);
                        true
                    }
                    Err(RecvError::Disconnected) => {
                        assert!(!is_open);
                        false
                    }
                    Err(RecvError::Overloaded) => {
                        let is_empty = self.endpoints[at].callers.is_empty();
                        let is_short = is_empty && self.free_records() == 0;
                        assert!(is_open && (!self.may_receive(at) || is_short));
                        false
                    }
                }
            }
            Op::Reply(choice) => {
                let Some((token, call)) = pick(&self.tokens, choice) else { return false };
                let waits = self.real.caller_of(token).map(|c| c.copied());
                let verdict = self.real.reply(token);
                self.replied(call, verdict, waits)
            }
            Op::ReplyThenRecv { token, at, thread } => {
                let Some((token, call)) = pick(&self.tokens, token) else { return false };
                let (at, key, is_open) = self.aim(at);
                let receiver = self.new_receiver(thread);
                let state = self.calls[&call].state;
                let is_served = matches!(state, CallState::Held(_) | CallState::Abandoned(_));
                let waits = self.real.caller_of(token).map(|c| c.copied());
                let is_same = self.calls[&call].at == at;
                let now_ns = self.now_ns;
                let mut fast = self.real.clone();
                let tried = fast.try_reply_then_wait(token, key, receiver);
                let is_plain = matches!(state, CallState::Held(_))
                    && is_same
                    && is_open
                    && self.endpoints[at].callers.is_empty();
                assert_eq!(tried.is_some(), is_plain);
                if tried.is_none() {
                    assert_eq!(fast, self.real, "the fast path gave up and left a trace");
                }
                let answer =
                    self.real.reply_then_recv(token, key, receiver, now_ns, |e| ended.push(e));
                match answer {
                    Ok((reply, recv)) => {
                        assert!(is_open && (is_same || self.may_receive(at)));
                        assert!(self.replied(call, Ok(reply), waits));
                        self.recvs.insert(receiver);
                        let (passed, next) = self.next_caller(at);
                        self.match_expired(at, &passed, &ended);
                        self.received(at, receiver, next, recv, false);
                        true
                    }
                    Err(ReplyThenRecvError::StaleToken) => {
                        assert!(!is_served);
                        false
                    }
                    Err(ReplyThenRecvError::Recv(RecvError::Disconnected)) => {
                        assert!(is_served && !is_open);
                        false
                    }
                    Err(ReplyThenRecvError::Recv(RecvError::Overloaded)) => {
                        assert!(is_served && is_open && !is_same && !self.may_receive(at));
                        false
                    }
                }
            }
            Op::CancelCall(choice) => {
                let Some((key, call)) = pick(&self.call_keys, choice) else { return false };
                let state = self.calls[&call].state;
                match self.real.cancel_call(key) {
                    Ok(end) => {
                        assert_eq!(end.caller, call);
                        let next = match state {
                            CallState::Queued => CallState::Over,
                            CallState::Held(holder) => CallState::Abandoned(holder),
                            other => panic!("cancelled a call that is {other:?}"),
                        };
                        assert_eq!(end.was_delivered, next != CallState::Over);
                        self.unqueue(call);
                        self.end_call(call, end.donation, next);
                        true
                    }
                    Err(NotFound) => {
                        assert!(matches!(state, CallState::Abandoned(_) | CallState::Over));
                        false
                    }
                }
            }
            Op::CancelRecv(choice) => {
                let Some((key, receiver)) = pick(&self.recv_keys, choice) else { return false };
                let at = self.endpoints.iter().position(|e| e.receivers.contains(&receiver));
                // A receive that went on under another key is not found under the old one.
                let latest = self.recv_keys.iter().rev().find(|(_, r)| *r == receiver).unwrap().0;
                match self.real.cancel_recv(key) {
                    Ok(found) => {
                        assert_eq!((found, latest), (receiver, key));
                        self.endpoints[at.unwrap()].receivers.retain(|r| *r != receiver);
                        self.end_recv(receiver);
                        true
                    }
                    Err(NotFound) => {
                        assert!(at.is_none() || latest != key);
                        false
                    }
                }
            }
            Op::GiveUpDelivery(choice) => {
                let Some((token, call)) = pick(&self.tokens, choice) else { return false };
                let is_held =
                    !matches!(self.calls[&call].state, CallState::Queued | CallState::Over);
                assert_eq!(self.real.give_up_delivery(RecvKey::of(token)), is_held);
                if is_held {
                    self.given_up.insert(call);
                }
                is_held
            }
            Op::Expire(choice) => {
                let Some((key, call)) = pick(&self.call_keys, choice) else { return false };
                let is_queued = self.calls[&call].state == CallState::Queued;
                match self.real.expire_call(key, self.now_ns) {
                    Ok(end) => {
                        assert!(is_queued && self.is_expired(call) && !end.was_delivered);
                        self.unqueue(call);
                        self.end_call(end.caller, end.donation, CallState::Over);
                        true
                    }
                    Err(ExpireError::NotDue) => {
                        assert!(is_queued && !self.is_expired(call));
                        false
                    }
                    Err(ExpireError::NotFound) => {
                        assert!(!is_queued);
                        false
                    }
                }
            }
            Op::Lend(choice) => {
                let Some((key, call)) = pick(&self.call_keys, choice) else { return false };
                let known = self.calls.get_mut(&call).unwrap();
                let is_held = matches!(known.state, CallState::Held(_));
                match self.real.lend(key, Donation(self.lendings)) {
                    Ok(()) => {
                        assert!(is_held && known.donation.is_none());
                        known.donation = Some(Donation(self.lendings));
                        self.open_lendings.insert(self.lendings);
                        self.lendings += 1;
                        true
                    }
                    Err(LendError::AlreadyLent) => {
                        assert!(is_held && known.donation.is_some());
                        false
                    }
                    Err(LendError::NotFound) => {
                        assert!(!is_held);
                        false
                    }
                }
            }
            Op::RejectCall(choice) => self.reject_call(choice),
            Op::RejectRecv(choice) => self.reject_recv(choice),
            Op::ThreadExit(thread) => {
                self.real.receiver_exit(|r| r.1 == thread, |end| ended.push(end));
                let mut callers = Vec::new();
                for (call, known) in &mut self.calls {
                    match known.state {
                        CallState::Held(holder) if holder.1 == thread => callers.push(*call),
                        CallState::Abandoned(holder) if holder.1 == thread => {
                            known.state = CallState::Over;
                        }
                        _ => {}
                    }
                }
                let mut receivers = Vec::new();
                for endpoint in &mut self.endpoints {
                    receivers.extend(endpoint.receivers.iter().filter(|r| r.1 == thread));
                    endpoint.receivers.retain(|r| r.1 != thread);
                }
                self.match_disconnected(&ended, &callers, &receivers);
                true
            }
        }
    }

    fn call(&mut self, at: usize, badge: u64, deadline: Option<u64>) -> bool {
        let (at, key, is_open) = self.aim(at);
        let id = self.calls.len() as u32;
        let deadline_ns = deadline.map_or(0, |ns| (self.now_ns + ns).saturating_sub(3));
        let known = ModelCall { at, badge, deadline_ns, donation: None, state: CallState::Queued };
        self.calls.insert(id, known);
        let expired = self.is_expired(id);
        let mut fast = self.real.clone();
        let tried = fast.try_deliver(key, id, deadline_ns, self.now_ns);
        let mut general = self.real.clone();
        let verdict = general.call(key, Call { caller: id, badge, deadline_ns }, self.now_ns);
        match tried {
            Some((to, token)) => {
                assert_eq!(verdict, Ok(CallVerdict::Deliver { to, token }));
                assert_eq!(fast, general, "the fast path does something else");
            }
            None => assert_eq!(fast, self.real, "the fast path gave up and left a trace"),
        }
        match self.real.call(key, Call { caller: id, badge, deadline_ns }, self.now_ns) {
            Ok(CallVerdict::Deliver { to, token }) => {
                assert!(is_open && !expired);
                assert_eq!(self.endpoints[at].receivers.pop_front(), Some(to));
                self.end_recv(to);
                self.calls.get_mut(&id).unwrap().state = CallState::Held(to);
                self.tokens.push((token, id));
                self.call_keys.push((CallKey::of(token), id));
                true
            }
            Ok(CallVerdict::Queued(key)) => {
                assert!(is_open && !expired && self.endpoints[at].receivers.is_empty());
                self.endpoints[at].callers.push_back(id);
                self.call_keys.push((key, id));
                true
            }
            Err(error) => {
                // Taken out first: a refused call holds no record.
                self.calls.remove(&id);
                match error {
                    CallError::Disconnected => assert!(!is_open),
                    CallError::DeadlineExpired => assert!(is_open && expired),
                    CallError::Overloaded => {
                        let e = &self.endpoints[at];
                        let is_full = e.callers.len() >= e.limits.queued as usize;
                        assert!(is_full || self.free_records() == 0);
                        assert!(e.receivers.is_empty());
                    }
                }
                false
            }
        }
    }

    fn unqueue(&mut self, call: u32) {
        for endpoint in &mut self.endpoints {
            endpoint.callers.retain(|queued| *queued != call);
        }
    }

    fn replied(
        &mut self,
        call: u32,
        verdict: Result<ReplyVerdict<u32>, StaleToken>,
        waits: Result<Option<u32>, StaleToken>,
    ) -> bool {
        match (verdict, self.calls[&call].state) {
            (Ok(ReplyVerdict::Complete { caller, donation }), CallState::Held(_)) => {
                assert_eq!((caller, waits), (call, Ok(Some(call))));
                self.end_call(call, donation, CallState::Over);
                true
            }
            (Ok(ReplyVerdict::Dropped), CallState::Abandoned(_)) => {
                assert_eq!(waits, Ok(None));
                self.calls.get_mut(&call).unwrap().state = CallState::Over;
                true
            }
            (Err(StaleToken), CallState::Over | CallState::Queued) => {
                assert_eq!(waits, Err(StaleToken));
                false
            }
            (real, model) => panic!("reply: {real:?}, the model says {model:?}"),
        }
    }

    fn reject_call(&mut self, choice: usize) -> bool {
        let Some((token, call)) = pick(&self.tokens, choice) else { return false };
        let (state, at) = (self.calls[&call].state, self.calls[&call].at);
        let mut ended = Vec::new();
        let now_ns = self.now_ns;
        let rejected = self.real.reject_call(CallKey::of(token), now_ns, |e| ended.push(e));
        let holder = match state {
            CallState::Held(holder) | CallState::Abandoned(holder) => holder,
            _ => {
                assert_eq!(rejected, Err(NotFound));
                return false;
            }
        };
        let rejected = rejected.unwrap();
        assert_eq!(rejected.receiver, holder);
        match (rejected.call, state) {
            (Some((caller, donation)), CallState::Held(_)) => {
                assert_eq!(caller, call);
                self.end_call(call, donation, CallState::Over);
            }
            (None, CallState::Abandoned(_)) => {
                self.calls.get_mut(&call).unwrap().state = CallState::Over;
            }
            other => panic!("{other:?}"),
        }
        // The receive that had ended in this delivery goes on.
        assert!(self.ended_recvs.remove(&holder));
        match rejected.again {
            RecvAgain::GivenUp(receiver) => {
                assert!(self.given_up.contains(&call) && receiver == holder);
                self.end_recv(receiver);
            }
            _ if self.given_up.contains(&call) => panic!("a receive that was given up goes on"),
            RecvAgain::Disconnected(receiver) => {
                assert!(!self.endpoints[at].is_open);
                self.end_recv(receiver);
            }
            RecvAgain::Recv(verdict) => {
                assert!(self.endpoints[at].is_open);
                let (passed, next) = self.next_caller(at);
                self.match_expired(at, &passed, &ended);
                self.received(at, holder, next, verdict, true);
            }
        }
        true
    }

    fn reject_recv(&mut self, choice: usize) -> bool {
        let Some((token, call)) = pick(&self.tokens, choice) else { return false };
        let &ModelCall { state, at, badge, deadline_ns, donation } = &self.calls[&call];
        let rejected = self.real.reject_recv(CallKey::of(token), badge, deadline_ns);
        let holder = match state {
            CallState::Held(holder) | CallState::Abandoned(holder) => holder,
            _ => {
                assert_eq!(rejected, Err(NotFound));
                return false;
            }
        };
        let rejected = rejected.unwrap();
        assert_eq!(rejected.receiver, holder);
        self.given_up.remove(&call);
        if matches!(state, CallState::Held(_)) {
            assert_eq!(rejected.donation, donation);
            if let Some(Donation(lent)) = donation {
                assert!(self.open_lendings.remove(&lent));
            }
            self.calls.get_mut(&call).unwrap().donation = None;
        }
        let is_open = self.endpoints[at].is_open;
        match rejected.again {
            CallAgain::Abandoned => {
                assert!(matches!(state, CallState::Abandoned(_)));
                self.calls.get_mut(&call).unwrap().state = CallState::Over;
            }
            CallAgain::Disconnected(caller) => {
                assert!(!is_open && caller == call);
                self.end_call(call, None, CallState::Over);
            }
            CallAgain::Overloaded(caller) => {
                let e = &self.endpoints[at];
                assert!(is_open && caller == call && e.receivers.is_empty());
                assert!(e.callers.len() >= e.limits.queued as usize);
                self.end_call(call, None, CallState::Over);
            }
            CallAgain::Call(CallVerdict::Deliver { to, token: again }) => {
                assert!(is_open && again == token);
                assert_eq!(self.endpoints[at].receivers.pop_front(), Some(to));
                self.end_recv(to);
                self.calls.get_mut(&call).unwrap().state = CallState::Held(to);
            }
            CallAgain::Call(CallVerdict::Queued(key)) => {
                assert!(is_open && key == CallKey::of(token));
                assert!(self.endpoints[at].receivers.is_empty());
                self.endpoints[at].callers.push_front(call);
                self.calls.get_mut(&call).unwrap().state = CallState::Queued;
            }
        }
        true
    }

    fn match_disconnected(
        &mut self,
        ended: &[Ended<u32, Receiver>],
        callers: &[u32],
        receivers: &[Receiver],
    ) {
        let (mut calls, mut recvs) = (BTreeSet::new(), BTreeSet::new());
        for end in ended {
            match *end {
                Ended::Call { end, status: Status::Disconnected } => {
                    assert!(calls.insert(end.caller));
                    let is_held = matches!(self.calls[&end.caller].state, CallState::Held(_));
                    assert_eq!(end.was_delivered, is_held);
                    self.end_call(end.caller, end.donation, CallState::Over);
                }
                Ended::Recv { receiver, status: Status::Disconnected } => {
                    assert!(recvs.insert(receiver));
                    self.end_recv(receiver);
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(calls, callers.iter().copied().collect());
        assert_eq!(recvs, receivers.iter().copied().collect());
    }

    /// The owner ends, in steps; afterwards everything that was accepted has ended once.
    fn finish(mut self) {
        self.real.shut();
        self.real.check_invariants().unwrap();
        let mut ended = Vec::new();
        while self.real.drain(3, |end| ended.push(end)) == DrainVerdict::More {
            self.real.check_invariants().unwrap();
        }
        let callers: Vec<_> = self
            .calls
            .iter()
            .filter(|(_, c)| matches!(c.state, CallState::Queued | CallState::Held(_)))
            .map(|(call, _)| *call)
            .collect();
        let receivers: Vec<_> =
            self.endpoints.iter().flat_map(|e| e.receivers.iter().copied()).collect();
        self.match_disconnected(&ended, &callers, &receivers);
        assert_eq!(self.ended_calls, self.calls.keys().copied().collect());
        assert_eq!(self.ended_recvs, self.recvs);
        assert!(self.open_lendings.is_empty(), "something lent was not given back");
        for (token, _) in &self.tokens {
            assert_eq!(self.real.reply(*token), Err(StaleToken));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn the_service_does_what_the_model_does(ops in prop::collection::vec(op(), 1..120)) {
        let mut world = World::new();
        world.step(&Op::Open(3, 3));
        for op in &ops {
            world.step(op);
        }
        world.finish();
    }
}
