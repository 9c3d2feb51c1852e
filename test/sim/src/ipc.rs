//! Threads that wait for each other: endpoints with direct hand-off, and gates.

use crate::event::Event;
use crate::machine::id;
use crate::thread::Wait;
use crate::{Done, Machine, Rule};
use abi_types::ReplyToken;
use core_endpoint::{
    Call, CallKey, CallVerdict, Endpoint, EndpointKey, Limits, Record, RecvVerdict, ReplyVerdict,
    Service,
};
use core_sched::DirectOffer;
use core_sched_policy::Policy;
use core_thread::{ParkVerdict, ResumeVerdict, Ticket};

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

impl<'n, P: Policy> Machine<'n, P> {
    /// Makes a service with room for that many calls; its number.
    pub fn add_service(&mut self, calls: u32) -> usize {
        let records = vec![Record::UNUSED; 2 * calls as usize];
        let mut service = Service::new(records, vec![Endpoint::UNUSED; 1]);
        let limits = Limits { queued: calls, in_flight: calls };
        let endpoint = service.open(limits).expect("a new service has room for an endpoint");
        self.servers.push(Server { service, endpoint });
        self.servers.len() - 1
    }

    /// Makes a gate for that many; its number.
    pub fn add_gate(&mut self, size: u64) -> usize {
        self.gates.push(Gate { size, missing: size, waiting: Vec::new() });
        self.gates.len() - 1
    }

    /// The current thread announces a wait; `None` if it dies instead.
    pub(crate) fn begin_wait(&mut self, cpu: usize, slot: u32) -> Done<Option<Ticket>> {
        match self.must("announcing a wait", self.word(slot).begin_park())? {
            ParkVerdict::Parking(ticket) => {
                self.thread(slot).ticket = Some(ticket);
                Ok(Some(ticket))
            }
            ParkVerdict::Die => self.die(cpu, slot).map(|()| None),
        }
    }

    /// The current thread does not wait after all.
    pub(crate) fn resume(&mut self, cpu: usize, slot: u32) -> Done {
        self.thread(slot).ticket = None;
        self.thread(slot).wait = Wait::Nothing;
        match self.must("taking a wait back", self.word(slot).cancel_park())? {
            ResumeVerdict::Resume => Ok(()),
            ResumeVerdict::Die => self.die(cpu, slot),
        }
    }

    /// The current thread switches away; its wait becomes real after the switch.
    pub(crate) fn block(&mut self, cpu: usize, slot: u32) -> Done {
        let (node, now_ns) = (self.node(slot), self.now_ns);
        self.pay_lock(cpu, cpu);
        let said = self.queues[cpu].lock().with(node, |q, item, e| q.block(item, e, now_ns));
        let _ = self.must("blocking the current thread", said)?;
        self.left(cpu, slot);
        self.commit_later(slot);
        Ok(())
    }

    fn commit_later(&mut self, slot: u32) {
        let generation = self.thread(slot).generation;
        let at_ns = self.thread(slot).off_cpu_ns;
        self.events.push(at_ns, Event::Commit { slot, generation }, &mut self.rng);
    }

    pub(crate) fn call(&mut self, cpu: usize, slot: u32, service: usize, work_ns: u64) -> Done {
        self.pay(cpu, self.config.costs.ipc_ns);
        let Some(ticket) = self.begin_wait(cpu, slot)? else { return Ok(()) };
        let generation = self.thread(slot).generation;
        let caller = Party { slot, generation, ticket, work_ns };
        let Server { service: s, endpoint } = &mut self.servers[service];
        let said = s.call(*endpoint, Call { caller, badge: 0, deadline_ns: 0 }, self.now_ns);
        match self.must("calling", said)? {
            CallVerdict::Deliver { to, token } => {
                self.thread(slot).wait = Wait::Call { service, key: CallKey::of(token) };
                self.deliver(to.slot, service, token, work_ns);
                self.hand_over(cpu, slot, to)
            }
            CallVerdict::Queued(key) => {
                self.thread(slot).wait = Wait::Call { service, key };
                self.block(cpu, slot)
            }
        }
    }

    fn deliver(&mut self, to: u32, service: usize, token: ReplyToken, work_ns: u64) {
        let thread = self.thread(to);
        thread.serving = Some((service, token));
        thread.work_ns = work_ns;
        thread.wait = Wait::Nothing;
    }

    pub(crate) fn serve(&mut self, cpu: usize, slot: u32, service: usize) -> Done {
        self.pay(cpu, self.config.costs.ipc_ns);
        let Some(ticket) = self.begin_wait(cpu, slot)? else { return Ok(()) };
        let generation = self.thread(slot).generation;
        let receiver = Party { slot, generation, ticket, work_ns: 0 };
        let serving = self.thread(slot).serving.take();
        let now_ns = self.now_ns;
        let Server { service: s, endpoint } = &mut self.servers[service];
        let (answered, received) = match serving {
            Some((_, token)) => {
                let said = s.reply_then_recv(token, *endpoint, receiver, now_ns, |_| {});
                let (reply, received) = self.must("answering", said)?;
                match reply {
                    ReplyVerdict::Complete { caller, .. } => (Some(caller), received),
                    ReplyVerdict::Dropped => (None, received),
                }
            }
            None => {
                let said = s.recv(*endpoint, receiver, now_ns, |_| {});
                (None, self.must("receiving", said)?)
            }
        };
        if let Some(caller) = answered {
            self.thread(caller.slot).wait = Wait::Nothing;
        }
        match received {
            RecvVerdict::Deliver { caller, token, .. } => {
                self.deliver(slot, service, token, caller.work_ns);
                if let Some(caller) = answered {
                    self.wake(cpu, caller.slot, caller.generation, caller.ticket)?;
                }
                self.resume(cpu, slot)
            }
            RecvVerdict::Waiting(key) => {
                self.thread(slot).wait = Wait::Recv { service, key };
                match answered {
                    Some(caller) => self.hand_over(cpu, slot, caller),
                    None => self.block(cpu, slot),
                }
            }
        }
    }

    /// The current thread waits for `to`, which runs next on this CPU if that can be.
    fn hand_over(&mut self, cpu: usize, slot: u32, to: Party) -> Done {
        self.touched.extend([slot, to.slot]);
        let may_run_here = self.allowed(to.slot).contains(id(cpu));
        // Some go through the slot, as on the path of a call that does more than one thing.
        if may_run_here && self.home(to.slot) == cpu && self.rng.one_in(4) {
            return self.through_slot(cpu, slot, to);
        }
        let word = self.word(to.slot);
        let is_that_wait = || word.load().ticket() == to.ticket;
        if !may_run_here || word.claim_if(to.generation, is_that_wait).is_err() {
            self.report.missed_hand_offs += 1;
            self.wake(cpu, to.slot, to.generation, to.ticket)?;
            return self.block(cpu, slot);
        }
        self.thread(to.slot).ticket = None;
        self.ready(to.slot);
        let (now_ns, home) = (self.now_ns, self.home(to.slot));
        let (from_node, to_node) = (self.node(slot), self.node(to.slot));
        let mut lag = None;
        if home != cpu {
            self.pay_lock(cpu, home);
            let sent = self.queues[home].lock().send(to_node, id(cpu), now_ns);
            lag = Some(self.must("bringing a thread for a hand-off", sent)?);
        }
        self.pay_lock(cpu, cpu);
        let handed = match lag {
            Some(lag) => self.queues[cpu].lock().hand_off_moved(from_node, to_node, lag, now_ns),
            None => self.queues[cpu].lock().hand_off(from_node, to_node, now_ns),
        };
        match handed {
            Ok(handed) => {
                self.report.hand_offs += 1;
                self.left(cpu, slot);
                self.commit_later(slot);
                self.cpus[cpu].slice_end_ns = handed.slice_end_ns;
                self.pay(cpu, self.config.costs.switch_ns / 2);
                self.began(cpu, to.slot)
            }
            Err(_) => {
                self.report.missed_hand_offs += 1;
                let _ = self.must("giving a claim up", self.word(to.slot).requeue())?;
                match lag {
                    Some(lag) => self.arrive(cpu, to.slot, cpu, lag)?,
                    None => {
                        let said = self.queues[cpu].lock().wake(to_node, now_ns);
                        let enqueued = self.must("queueing after a missed hand-off", said)?;
                        self.tell(cpu, cpu, enqueued);
                    }
                }
                self.block(cpu, slot)
            }
        }
    }

    fn through_slot(&mut self, cpu: usize, slot: u32, to: Party) -> Done {
        match self.word(to.slot).wake(to.generation, to.ticket) {
            Ok(core_thread::WakeVerdict::Enqueue) => {
                self.ready(to.slot);
                self.thread(to.slot).ticket = None;
                let (node, now_ns) = (self.node(to.slot), self.now_ns);
                let said = self.queues[cpu].lock().with(node, |q, item, e| {
                    let lag = q.rest_lag(e);
                    q.offer_direct(item, e, lag, now_ns)
                });
                match self.must("offering a thread to the slot", said)? {
                    DirectOffer::Taken { .. } => self.report.hand_offs += 1,
                    DirectOffer::Queued(_) => self.report.missed_hand_offs += 1,
                }
            }
            Ok(core_thread::WakeVerdict::Noted) => self.report.early_wakes += 1,
            Err(_) => {}
        }
        self.block(cpu, slot)
    }

    /// One less to come; the last one lets everybody go on.
    pub(crate) fn come(&mut self, cpu: usize, gate: usize) -> Done<bool> {
        let state = &mut self.gates[gate];
        state.missing -= 1;
        if state.missing > 0 {
            return Ok(false);
        }
        state.missing = state.size;
        for (slot, generation, ticket) in std::mem::take(&mut state.waiting) {
            self.thread(slot).wait = Wait::Nothing;
            self.wake(cpu, slot, generation, ticket)?;
        }
        Ok(true)
    }

    pub(crate) fn meet(&mut self, cpu: usize, slot: u32, gate: usize) -> Done {
        let Some(ticket) = self.begin_wait(cpu, slot)? else { return Ok(()) };
        if self.come(cpu, gate)? {
            return self.resume(cpu, slot);
        }
        let generation = self.thread(slot).generation;
        self.gates[gate].waiting.push((slot, generation, ticket));
        self.thread(slot).wait = Wait::Gate { gate };
        self.block(cpu, slot)
    }

    /// A dying thread waits for nothing any more.
    pub(crate) fn forget_wait(&mut self, by: usize, slot: u32) -> Done {
        let is_its = |party: &Party| party.slot == slot;
        match std::mem::replace(&mut self.thread(slot).wait, Wait::Nothing) {
            Wait::Nothing => {}
            Wait::Timer => {
                if let Some(queue) = self.slab.timers[slot as usize].queue() {
                    let timers = &self.slab.timers;
                    let said = self.deadlines[queue as usize].cancel(timers, slot);
                    let _ = self.must("cancelling a dead thread's timer", said)?;
                    self.arm(queue as usize);
                }
            }
            Wait::Call { service, key } => {
                let said = self.servers[service].service.cancel_call(key);
                let _ = self.must("cancelling a dead thread's call", said)?;
            }
            Wait::Recv { service, key } => {
                let said = self.servers[service].service.cancel_recv(key);
                let _ = self.must("cancelling a dead thread's receive", said)?;
            }
            Wait::Gate { .. } => {
                return self.fail(Rule::Stuck, "a thread was killed at a gate others wait at");
            }
        }
        if let Some((service, _)) = self.thread(slot).serving.take() {
            let mut ended = Vec::new();
            self.servers[service].service.receiver_exit(is_its, |end| ended.push(end));
            for end in ended {
                if let core_endpoint::Ended::Call { end, .. } = end {
                    let caller = end.caller;
                    self.thread(caller.slot).wait = Wait::Nothing;
                    self.wake(by, caller.slot, caller.generation, caller.ticket)?;
                }
            }
        }
        Ok(())
    }
}
