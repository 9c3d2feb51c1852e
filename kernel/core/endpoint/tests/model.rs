//! Random histories of a service against a slow, obvious model.
//!
//! The model keeps every call and receive there ever was, in plain maps and queues, and knows
//! nothing of records, links or generations. It says what each operation must answer; the
//! service must agree, and an answer that is an error must leave the service equal. Ends are
//! counted per call and per receive: at the close of the history each has exactly one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use abi_types::{ReplyToken, Status};
use core_endpoint::*;
use proptest::prelude::*;

const RECORDS: usize = 7;
const ENDPOINTS: usize = 2;

/// A receive: its number and its thread.
type Receiver = (u32, u8);
type Real = Service<u32, Receiver, Vec<Record<u32, Receiver>>, Vec<Endpoint>>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum CallState {
    Queued,
    Held(Receiver),
    Abandoned(Receiver),
    Over,
}

struct ModelCall {
    at: usize,
    badge: u64,
    deadline_ns: u64,
    donation: Option<Donation>,
    state: CallState,
}

struct ModelEndpoint {
    key: EndpointKey,
    is_open: bool,
    limits: Limits,
    callers: VecDeque<u32>,
    receivers: VecDeque<Receiver>,
}

#[derive(Clone, Debug)]
enum Op {
    Open(u32, u32),
    Close(usize),
    Call { at: usize, badge: u64, deadline: Option<u64> },
    Recv { at: usize, thread: u8 },
    Reply(usize),
    ReplyThenRecv { token: usize, at: usize, thread: u8 },
    CancelCall(usize),
    CancelRecv(usize),
    Expire(usize),
    Lend(usize),
    RejectCall(usize),
    RejectRecv(usize),
    ThreadExit(u8),
    Pass(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let some = any::<usize>;
    let thread = || 0..3_u8;
    prop_oneof![
        1 => (0..4_u32, 0..4_u32).prop_map(|(q, f)| Op::Open(q, f)),
        1 => some().prop_map(Op::Close),
        8 => (some(), any::<u64>(), prop::option::of(0..20_u64))
            .prop_map(|(at, badge, deadline)| Op::Call { at, badge, deadline }),
        8 => (some(), thread()).prop_map(|(at, thread)| Op::Recv { at, thread }),
        4 => some().prop_map(Op::Reply),
        4 => (some(), some(), thread())
            .prop_map(|(token, at, thread)| Op::ReplyThenRecv { token, at, thread }),
        2 => some().prop_map(Op::CancelCall),
        2 => some().prop_map(Op::CancelRecv),
        2 => some().prop_map(Op::Expire),
        2 => some().prop_map(Op::Lend),
        1 => some().prop_map(Op::RejectCall),
        1 => some().prop_map(Op::RejectRecv),
        1 => thread().prop_map(Op::ThreadExit),
        2 => (0..10_u64).prop_map(Op::Pass),
    ]
}

struct World {
    real: Real,
    now_ns: u64,
    endpoints: Vec<ModelEndpoint>,
    calls: BTreeMap<u32, ModelCall>,
    call_keys: Vec<(CallKey, u32)>,
    tokens: Vec<(ReplyToken, u32)>,
    recv_keys: Vec<(RecvKey, Receiver)>,
    ended_calls: BTreeSet<u32>,
    recvs: BTreeSet<Receiver>,
    ended_recvs: BTreeSet<Receiver>,
    lendings: u64,
    open_lendings: BTreeSet<u64>,
}

fn pick<T: Copy>(from: &[T], choice: usize) -> Option<T> {
    if from.is_empty() { None } else { Some(from[choice % from.len()]) }
}

impl World {
    fn new() -> Self {
        // Generations near their end, so that they come round on the way.
        let records = (0..RECORDS as u32).map(|n| Record::used_before(u32::MAX - n)).collect();
        Self {
            real: Service::new(records, vec![Endpoint::UNUSED; ENDPOINTS]),
            now_ns: 1,
            endpoints: Vec::new(),
            calls: BTreeMap::new(),
            call_keys: Vec::new(),
            tokens: Vec::new(),
            recv_keys: Vec::new(),
            ended_calls: BTreeSet::new(),
            recvs: BTreeSet::new(),
            ended_recvs: BTreeSet::new(),
            lendings: 0,
            open_lendings: BTreeSet::new(),
        }
    }

    // ---- the model's own knowledge ----

    fn in_flight(&self, at: usize) -> usize {
        let is_served = |c: &&ModelCall| {
            c.at == at && matches!(c.state, CallState::Held(_) | CallState::Abandoned(_))
        };
        self.calls.values().filter(is_served).count()
    }

    fn free_records(&self) -> usize {
        let pending = self.calls.values().filter(|c| c.state != CallState::Over).count();
        let waiting: usize = self.endpoints.iter().map(|e| e.receivers.len()).sum();
        RECORDS - pending - waiting
    }

    fn is_expired(&self, call: u32) -> bool {
        let deadline = self.calls[&call].deadline_ns;
        deadline != 0 && deadline <= self.now_ns
    }

    fn end_call(&mut self, call: u32, donation: Option<Donation>, state: CallState) {
        assert!(self.ended_calls.insert(call), "call {call} ended twice");
        let known = self.calls.get_mut(&call).unwrap();
        assert_eq!(donation, known.donation, "call {call} ended without what it had lent");
        if let Some(Donation(lent)) = donation {
            assert!(self.open_lendings.remove(&lent), "given back twice");
        }
        known.state = state;
    }

    fn end_recv(&mut self, receiver: Receiver) {
        assert!(self.ended_recvs.insert(receiver), "receive {receiver:?} ended twice");
    }

    fn may_receive(&self, at: usize) -> bool {
        let endpoint = &self.endpoints[at];
        self.in_flight(at) + endpoint.receivers.len() < endpoint.limits.in_flight as usize
    }

    /// The expired calls a receive at `at` passes, and the call it gets.
    fn next_caller(&self, at: usize) -> (Vec<u32>, Option<u32>) {
        let queue = &self.endpoints[at].callers;
        let next = queue.iter().copied().find(|call| !self.is_expired(*call));
        (queue.iter().copied().take_while(|call| self.is_expired(*call)).collect(), next)
    }

    fn match_expired(&mut self, at: usize, expected: &[u32], ended: &[Ended<u32, Receiver>]) {
        let passed: Vec<_> = ended
            .iter()
            .map(|end| match end {
                Ended::Call { end, status: Status::DeadlineExpired } => {
                    assert!(!end.was_delivered);
                    end.caller
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(passed, expected);
        for call in passed {
            assert_eq!(self.endpoints[at].callers.pop_front(), Some(call));
            self.end_call(call, None, CallState::Over);
        }
    }

    /// A receive was accepted: the verdict must be what the queue says.
    fn received(
        &mut self,
        at: usize,
        receiver: Receiver,
        next: Option<u32>,
        verdict: RecvVerdict<u32>,
        in_front: bool,
    ) {
        match (verdict, next) {
            (RecvVerdict::Deliver { caller, badge, deadline_ns, token }, Some(call)) => {
                assert_eq!(caller, call);
                assert_eq!(self.endpoints[at].callers.pop_front(), Some(call));
                let known = self.calls.get_mut(&call).unwrap();
                assert_eq!((badge, deadline_ns), (known.badge, known.deadline_ns));
                known.state = CallState::Held(receiver);
                self.tokens.push((token, call));
                self.end_recv(receiver);
            }
            (RecvVerdict::Waiting(key), None) => {
                let queue = &mut self.endpoints[at].receivers;
                if in_front {
                    queue.push_front(receiver)
                } else {
                    queue.push_back(receiver)
                }
                self.recv_keys.push((key, receiver));
            }
            (real, model) => panic!("received {real:?}, the model says {model:?}"),
        }
    }

    /// Endpoints to aim at: those there ever were, and one there never was.
    fn aim(&self, choice: usize) -> (usize, EndpointKey, bool) {
        match self.endpoints.get(choice % (self.endpoints.len() + 1)) {
            Some(e) => (choice % (self.endpoints.len() + 1), e.key, e.is_open),
            None => (usize::MAX, EndpointKey::NONE, false),
        }
    }

    fn new_receiver(&mut self, thread: u8) -> Receiver {
        (self.recvs.len() as u32, thread)
    }

    // ---- one step ----

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
    #![proptest_config(ProptestConfig {
        cases: 1500, failure_persistence: None, ..ProptestConfig::default()
    })]
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
