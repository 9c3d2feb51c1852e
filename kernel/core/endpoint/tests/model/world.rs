//! What the model knows: every call and receive, in plain maps and queues.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use abi_types::{ReplyToken, Status};
use core_endpoint::*;

pub const RECORDS: usize = 7;
pub const ENDPOINTS: usize = 2;

/// A receive: its number and its thread.
pub type Receiver = (u32, u8);
pub type Real = Service<u32, Receiver, Vec<Record<u32, Receiver>>, Vec<Endpoint>>;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CallState {
    Queued,
    Held(Receiver),
    Abandoned(Receiver),
    Over,
}

pub struct ModelCall {
    pub at: usize,
    pub badge: u64,
    pub deadline_ns: u64,
    pub donation: Option<Donation>,
    pub state: CallState,
}

pub struct ModelEndpoint {
    pub key: EndpointKey,
    pub is_open: bool,
    pub limits: Limits,
    pub callers: VecDeque<u32>,
    pub receivers: VecDeque<Receiver>,
}

pub struct World {
    pub real: Real,
    pub now_ns: u64,
    pub endpoints: Vec<ModelEndpoint>,
    pub calls: BTreeMap<u32, ModelCall>,
    pub call_keys: Vec<(CallKey, u32)>,
    pub tokens: Vec<(ReplyToken, u32)>,
    pub recv_keys: Vec<(RecvKey, Receiver)>,
    pub ended_calls: BTreeSet<u32>,
    pub recvs: BTreeSet<Receiver>,
    pub ended_recvs: BTreeSet<Receiver>,
    /// Calls whose receiver gave up while the message was on its way.
    pub given_up: BTreeSet<u32>,
    pub lendings: u64,
    pub open_lendings: BTreeSet<u64>,
}

pub fn pick<T: Copy>(from: &[T], choice: usize) -> Option<T> {
    if from.is_empty() { None } else { Some(from[choice % from.len()]) }
}

impl World {
    pub fn new() -> Self {
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
            given_up: BTreeSet::new(),
            lendings: 0,
            open_lendings: BTreeSet::new(),
        }
    }

    // ---- the model's own knowledge ----

    pub fn in_flight(&self, at: usize) -> usize {
        let is_served = |c: &&ModelCall| {
            c.at == at && matches!(c.state, CallState::Held(_) | CallState::Abandoned(_))
        };
        self.calls.values().filter(is_served).count()
    }

    pub fn free_records(&self) -> usize {
        let pending = self.calls.values().filter(|c| c.state != CallState::Over).count();
        let waiting: usize = self.endpoints.iter().map(|e| e.receivers.len()).sum();
        RECORDS - pending - waiting
    }

    pub fn is_expired(&self, call: u32) -> bool {
        let deadline = self.calls[&call].deadline_ns;
        deadline != 0 && deadline <= self.now_ns
    }

    pub fn end_call(&mut self, call: u32, donation: Option<Donation>, state: CallState) {
        assert!(self.ended_calls.insert(call), "call {call} ended twice");
        let known = self.calls.get_mut(&call).unwrap();
        assert_eq!(donation, known.donation, "call {call} ended without what it had lent");
        if let Some(Donation(lent)) = donation {
            assert!(self.open_lendings.remove(&lent), "given back twice");
        }
        known.state = state;
    }

    pub fn end_recv(&mut self, receiver: Receiver) {
        assert!(self.ended_recvs.insert(receiver), "receive {receiver:?} ended twice");
    }

    pub fn may_receive(&self, at: usize) -> bool {
        let endpoint = &self.endpoints[at];
        self.in_flight(at) + endpoint.receivers.len() < endpoint.limits.in_flight as usize
    }

    /// The expired calls a receive at `at` passes, and the call it gets.
    pub fn next_caller(&self, at: usize) -> (Vec<u32>, Option<u32>) {
        let queue = &self.endpoints[at].callers;
        let next = queue.iter().copied().find(|call| !self.is_expired(*call));
        (queue.iter().copied().take_while(|call| self.is_expired(*call)).collect(), next)
    }

    pub fn match_expired(&mut self, at: usize, expected: &[u32], ended: &[Ended<u32, Receiver>]) {
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
    pub fn received(
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
    pub fn aim(&self, choice: usize) -> (usize, EndpointKey, bool) {
        match self.endpoints.get(choice % (self.endpoints.len() + 1)) {
            Some(e) => (choice % (self.endpoints.len() + 1), e.key, e.is_open),
            None => (usize::MAX, EndpointKey::NONE, false),
        }
    }

    pub fn new_receiver(&mut self, thread: u8) -> Receiver {
        (self.recvs.len() as u32, thread)
    }
}
