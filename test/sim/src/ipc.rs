//! Threads that wait for each other: endpoints with direct hand-over, and gates.

use crate::Machine;
use crate::Rule;
use crate::sim::Sim;
use crate::thread::Wait;
use abi_types::ReplyToken;
use core_endpoint::{
    Call, CallKey, CallVerdict, Endpoint, EndpointKey, Limits, Record, RecvVerdict, ReplyVerdict,
    Service,
};
use core_sched_policy::Policy;
use core_thread::{ResumeVerdict, Ticket, WaitVerdict};
use kernel_dispatch::{self as dispatch, Here};

/// Either side of a call, by its wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Party {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
    pub(crate) ticket: Ticket,
    pub(crate) work_ns: u64,
}

type Records = Vec<Record<Party, Party>>;

/// What one process serves.
pub(crate) struct Server {
    pub(crate) service: Service<Party, Party, Records, Vec<Endpoint>>,
    pub(crate) endpoint: EndpointKey,
}

/// A meeting point of a fixed number of threads.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    pub(crate) size: u64,
    pub(crate) missing: u64,
    pub(crate) waiting: Vec<(u32, u32, Ticket)>,
}

impl<P: Policy + 'static> Machine<P> {
    /// Makes a service with room for that many calls; its number.
    pub fn add_service(&mut self, calls: u32) -> usize {
        let records = vec![Record::UNUSED; 2 * calls as usize];
        let mut service = Service::new(records, vec![Endpoint::UNUSED; 1]);
        let limits = Limits { queued: calls, in_flight: calls };
        let endpoint = service.open(limits).expect("a new service has room for an endpoint");
        self.sim.with(|w| {
            w.servers.push(Server { service, endpoint });
            w.servers.len() - 1
        })
    }

    /// Makes a gate for that many; its number.
    pub fn add_gate(&mut self, size: u64) -> usize {
        self.sim.with(|w| {
            w.gates.push(Gate { size, missing: size, waiting: Vec::new() });
            w.gates.len() - 1
        })
    }
}

impl<P: Policy + 'static> Sim<P> {
    /// The current thread announces a wait; `None` if it dies instead.
    pub(crate) fn begin_wait(self, slot: u32) -> Option<Ticket> {
        match self.must("announcing a wait", self.record(slot).word.begin_wait()) {
            WaitVerdict::AboutToWait(ticket) => {
                self.with(|w| w.thread(slot).ticket = Some(ticket));
                Some(ticket)
            }
            WaitVerdict::Die => {
                dispatch::end(self, self.record(slot));
                None
            }
        }
    }

    /// The current thread does not wait after all.
    fn resume(self, slot: u32) {
        self.with(|w| {
            w.thread(slot).ticket = None;
            w.thread(slot).wait = Wait::Nothing;
        });
        match self.must("taking a wait back", self.record(slot).word.cancel_wait()) {
            ResumeVerdict::Resume => {}
            ResumeVerdict::Die => dispatch::end(self, self.record(slot)),
        }
    }

    pub(crate) fn call(self, slot: u32, service: usize, work_ns: u64) {
        self.with(|w| w.pay(self.0.config.costs.ipc_ns));
        let Some(ticket) = self.begin_wait(slot) else { return };
        let said = self.with(|w| {
            let generation = w.thread(slot).generation;
            let caller = Party { slot, generation, ticket, work_ns };
            let Server { service, endpoint } = &mut w.servers[service];
            service.call(*endpoint, Call { caller, badge: 0, deadline_ns: 0 }, w.now_ns)
        });
        match self.must("calling", said) {
            CallVerdict::Deliver { to, token } => {
                self.with(|w| {
                    w.thread(slot).wait = Wait::Call { service, key: CallKey::of(token) };
                });
                self.deliver(to.slot, service, token, work_ns);
                self.hand_over(slot, to);
            }
            CallVerdict::Queued(key) => {
                self.with(|w| w.thread(slot).wait = Wait::Call { service, key });
                dispatch::block(self, self.record(slot));
            }
        }
    }

    fn deliver(self, to: u32, service: usize, token: ReplyToken, work_ns: u64) {
        self.with(|w| {
            let thread = w.thread(to);
            thread.serving = Some((service, token));
            thread.work_ns = work_ns;
            thread.wait = Wait::Nothing;
        });
    }

    pub(crate) fn serve_next(self, slot: u32, service: usize) {
        self.with(|w| w.pay(self.0.config.costs.ipc_ns));
        let Some(ticket) = self.begin_wait(slot) else { return };
        let (answered, received) = self.answer_and_receive(slot, service, ticket);
        if let Some(caller) = answered {
            self.with(|w| w.thread(caller.slot).wait = Wait::Nothing);
        }
        match received {
            RecvVerdict::Deliver { caller, token, .. } => {
                self.deliver(slot, service, token, caller.work_ns);
                if let Some(caller) = answered {
                    self.wake(caller.slot, caller.generation, caller.ticket);
                }
                self.resume(slot);
            }
            RecvVerdict::Waiting(key) => {
                self.with(|w| w.thread(slot).wait = Wait::Recv { service, key });
                match answered {
                    Some(caller) => self.hand_over(slot, caller),
                    None => dispatch::block(self, self.record(slot)),
                }
            }
        }
    }

    /// The server's call, if it has one in hand, is answered, and the next one received.
    fn answer_and_receive(
        self,
        slot: u32,
        service: usize,
        ticket: Ticket,
    ) -> (Option<Party>, RecvVerdict<Party>) {
        let (replied, received) = self.with(|w| {
            let receiver =
                Party { slot, generation: w.thread(slot).generation, ticket, work_ns: 0 };
            let serving = w.thread(slot).serving.take();
            let now_ns = w.now_ns;
            let Server { service, endpoint } = &mut w.servers[service];
            match serving {
                Some((_, token)) => {
                    let said = service.reply_then_recv(token, *endpoint, receiver, now_ns, |_| {});
                    (Some(said), None)
                }
                None => (None, Some(service.recv(*endpoint, receiver, now_ns, |_| {}))),
            }
        });
        match (replied, received) {
            (Some(said), _) => match self.must("answering", said) {
                (ReplyVerdict::Complete { caller, .. }, received) => (Some(caller), received),
                (ReplyVerdict::Dropped, received) => (None, received),
            },
            (None, Some(said)) => (None, self.must("receiving", said)),
            (None, None) => self.fail(Rule::Stuck, "a server neither answers nor receives"),
        }
    }

    /// The current thread waits for `to`, which runs next on this CPU if that can be.
    fn hand_over(self, slot: u32, to: Party) {
        self.with(|w| w.touched.extend([slot, to.slot]));
        let (thread, peer) = (self.record(slot), self.record(to.slot));
        // Some go through the slot, as on the path of a call that does more than one thing.
        if self.with(|w| w.rng.one_in(4)) {
            dispatch::wake(self, peer, to.generation, to.ticket, true);
            return dispatch::block(self, thread);
        }
        let is_that_wait = || peer.word.load().ticket() == to.ticket;
        let may_run_here = self.may_run_on(to.slot, self.with(|w| w.here));
        if !may_run_here || peer.word.claim_if(to.generation, is_that_wait).is_err() {
            self.with(|w| w.report.missed_hand_offs += 1);
            self.wake(to.slot, to.generation, to.ticket);
            return dispatch::block(self, thread);
        }
        dispatch::hand_over(self, Here::now(self), thread, peer);
    }

    /// One less to come; the last one lets everybody go on.
    pub(crate) fn come(self, gate: usize) -> bool {
        let waiting = self.with(|w| {
            let state = &mut w.gates[gate];
            state.missing -= 1;
            if state.missing > 0 {
                return None;
            }
            state.missing = state.size;
            Some(std::mem::take(&mut state.waiting))
        });
        let Some(waiting) = waiting else { return false };
        for (slot, generation, ticket) in waiting {
            self.with(|w| w.thread(slot).wait = Wait::Nothing);
            self.wake(slot, generation, ticket);
        }
        true
    }

    pub(crate) fn meet(self, slot: u32, gate: usize) {
        let Some(ticket) = self.begin_wait(slot) else { return };
        if self.come(gate) {
            return self.resume(slot);
        }
        self.with(|w| {
            let generation = w.thread(slot).generation;
            w.gates[gate].waiting.push((slot, generation, ticket));
            w.thread(slot).wait = Wait::Gate { gate };
        });
        dispatch::block(self, self.record(slot));
    }

    /// A dying thread waits for nothing any more.
    pub(crate) fn forget_wait(self, slot: u32) {
        let is_its = |party: &Party| party.slot == slot;
        let wait = self.with(|w| std::mem::replace(&mut w.thread(slot).wait, Wait::Nothing));
        match wait {
            Wait::Nothing => {}
            Wait::Timer => {
                let timer = &self.0.timers[slot as usize];
                if let Some(queue) = timer.queue() {
                    let said =
                        self.with(|w| w.deadlines[queue as usize].cancel(&self.0.timers, slot));
                    self.must("cancelling a dead thread's timer", said);
                }
            }
            Wait::Call { service, key } => {
                let said = self.with(|w| w.servers[service].service.cancel_call(key));
                let _ = self.must("cancelling a dead thread's call", said);
            }
            Wait::Recv { service, key } => {
                let said = self.with(|w| w.servers[service].service.cancel_recv(key));
                let _ = self.must("cancelling a dead thread's receive", said);
            }
            Wait::Gate { .. } => {
                self.fail(Rule::Stuck, "a thread was killed at a gate others wait at");
            }
        }
        let ended = self.with(|w| {
            let mut ended = Vec::new();
            if let Some((service, _)) = w.thread(slot).serving.take() {
                w.servers[service].service.receiver_exit(is_its, |end| ended.push(end));
            }
            ended
        });
        for end in ended {
            if let core_endpoint::Ended::Call { end, .. } = end {
                let caller = end.caller;
                self.with(|w| w.thread(caller.slot).wait = Wait::Nothing);
                self.wake(caller.slot, caller.generation, caller.ticket);
            }
        }
    }
}
