//! User mode: a thread does what its program says, with operations of its ring.

use crate::gate::Arrival;
use crate::kernel::Ring;
use crate::sim::{Record, Sim};
use crate::{Rule, Step};
use abi_ring::{INLINE_WORDS, UserRing};
use abi_types::{CapSlot, Cqe, NEVER, Opcode, Sqe, SqeFlags, Status};
use core_sched::CpuSet;
use core_sched_policy::Policy;
use kernel_dispatch::{self as dispatch, Here, WayOut};
use kernel_ops::enter;
use kernel_process::end;
use schema::timer::{SleepParams, methods::Sleep};
use schema_wire::{Encode, Method};
use smp_ring_testing::CoroutineContext;
use std::convert::Infallible;
use test_machine::PLAIN;
use zerocopy::IntoBytes;

/// Of so many operations of IPC one is not alone in its ring, and takes the general path.
const IN_COMPANY: u64 = 4;
/// The user data of what keeps an operation company.
const COMPANY: u64 = 1;

/// A completion, with the first word that came along.
struct Completed {
    cqe: Cqe,
    word: u64,
}

impl Completed {
    fn status(&self) -> Option<Status> {
        Status::from_number(self.cqe.status)
    }
}

/// A thread in user mode.
struct User<P: Policy + 'static> {
    sim: Sim<P>,
    thread: &'static Record<P>,
    ring: UserRing<Ring>,
    /// The number of its process, and where the capabilities of that are.
    process: u32,
    timer: CapSlot,
    park: CapSlot,
    endpoint: Option<CapSlot>,
    /// The call it serves.
    serving: Option<u64>,
}

impl<P: Policy + 'static> Sim<P> {
    /// The life of a thread, from the bottom of its stack.
    pub(crate) fn live(self, slot: u32, ring: Ring) -> Infallible {
        self.arrive();
        let (thread, process) = (self.record(slot), self.with(|w| w.thread(slot).process));
        let home = self.with(|w| w.homes.get(&process).map(|h| (h.timer, h.park, h.endpoint)));
        let (timer, park, endpoint) = self.must("finding a thread's process", home.ok_or("none"));
        let ring = UserRing::new(ring);
        let mut user =
            User { sim: self, thread, ring, process, timer, park, endpoint, serving: None };
        self.user_step(thread);
        loop {
            user.step();
        }
    }

    /// What comes between two instructions of user mode.
    fn user_step(self, thread: &'static Record<P>) {
        loop {
            while self.take_interrupt(true) {}
            if dispatch::way_out(self, thread) == WayOut::Free {
                return;
            }
        }
    }

    fn next_step(self, slot: u32) -> Step {
        self.with(|w| {
            let thread = &mut w.threads[slot as usize];
            let (now_ns, work_ns) = (w.now_ns, thread.work_ns);
            let Some(program) = &mut thread.program else { return Step::Exit };
            let (rng, shared) = (&mut w.rng, &mut w.shared[..]);
            program(&mut crate::Context { rng, shared, now_ns, work_ns, slot })
        })
    }
}

impl<P: Policy + 'static> User<P> {
    fn slot(&self) -> u32 {
        self.thread.slot()
    }

    /// Does the next thing, and is in user mode again.
    fn step(&mut self) {
        let (sim, slot) = (self.sim, self.slot());
        let step = sim.next_step(slot);
        let costs = sim.0.config.costs;
        sim.with(|w| {
            w.touched.push(slot);
            match step {
                Step::Run(_) => {}
                Step::Call { .. } | Step::Serve { .. } => w.pay(costs.call_ns + costs.ipc_ns),
                _ => w.pay(costs.call_ns),
            }
        });
        match step {
            Step::Run(ns) => self.compute(ns.max(1)),
            Step::Sleep(ns) => self.sleep(ns),
            Step::Yield => drop(self.complete(self.operation(Opcode::Yield), false)),
            Step::Call { service, work_ns } => self.call(service, work_ns),
            Step::Serve { service } => self.serve(service),
            Step::Meet { gate } => self.meet(gate),
            Step::Spawn { share, process, program } => {
                let process = process.unwrap_or(self.process);
                sim.spawn(share, process, CpuSet::ALL, program);
                sim.user_step(self.thread);
            }
            Step::Reweigh { slot: whose, share } => sim.reweigh(whose, share),
            Step::Confine { slot: whose, mask } => {
                sim.confine(whose, mask);
                sim.user_step(self.thread);
            }
            Step::Kill { slot: whom } => {
                sim.kill(whom);
                sim.user_step(self.thread);
            }
            Step::Exit => end::exit_thread(sim, self.thread, 0),
        }
    }

    /// Computes for so long; interrupts come in.
    fn compute(&mut self, ns: u64) {
        let (sim, slot) = (self.sim, self.slot());
        sim.with(|w| w.thread(slot).left_ns = ns);
        while sim.with(|w| w.thread(slot).left_ns > 0) {
            CoroutineContext::suspend();
            sim.user_step(self.thread);
        }
    }

    fn operation(&self, opcode: Opcode) -> Sqe {
        Sqe { opcode: opcode as u8, ..Sqe::default() }
    }

    /// Submits an operation and waits for its completion: alone in the ring, or in company.
    fn complete(&mut self, sqe: Sqe, in_company: bool) -> Completed {
        let company = Sqe { user_data: COMPANY, ..self.operation(Opcode::Nop) };
        let submitted = in_company.then_some(company).into_iter().chain([sqe]);
        let mut missing = 0;
        for sqe in submitted {
            self.sim.must("submitting to an empty ring", self.ring.push(sqe));
            missing += 1;
        }
        self.ring.publish();
        let mut completed = None;
        loop {
            enter::cap_enter(self.sim, Here::now(self.sim), missing, NEVER);
            self.sim.user_step(self.thread);
            while let Some(done) = self.ring.pop() {
                missing -= 1;
                let word = done.inline_word(0);
                let cqe = done.take();
                if cqe.user_data != COMPANY {
                    completed = Some(Completed { cqe, word });
                }
            }
            match completed.take_if(|_| missing == 0) {
                Some(completed) => return completed,
                None if missing == 0 => self.sim.fail(Rule::Stuck, "a completion was lost"),
                None => {}
            }
        }
    }

    fn is_in_company(&self) -> bool {
        self.sim.with(|w| w.rng.one_in(IN_COMPANY))
    }

    /// Says what came of an operation that has to be possible.
    fn refused(&self, what: &str, done: &Completed) -> ! {
        let (slot, status) = (self.slot(), done.status());
        self.sim.fail(Rule::Refused, format!("{what} of thread {slot} ends with {status:?}"))
    }

    /// `Timer.sleep`.
    fn sleep(&mut self, ns: u64) {
        let mut words = [0_u64; INLINE_WORDS];
        let encoded = SleepParams { ns }.encode(words.as_mut_bytes());
        let length = self.sim.must("encoding a sleep", encoded);
        self.ring.write_inline(0, &words[..length.div_ceil(8)]);
        let (cap, method) = (self.timer.to_bits(), <Sleep as Method>::ORDINAL);
        let interface = <Sleep as Method>::INTERFACE.to_bits();
        let length = length as u32;
        let sqe = Sqe { cap, interface, method, length, ..self.operation(Opcode::Call) };
        let done = self.complete(sqe, false);
        if done.status() != Some(Status::Ok) {
            self.refused("a sleep", &done);
        }
    }

    /// CALL: the message is how long the server has to compute. A service whose process has ended answers as
    /// the kernel does; one that nobody has served yet cannot be called.
    fn call(&mut self, service: usize, work_ns: u64) {
        let Some(facet) = self.sim.facet(self.process, service) else { return };
        self.ring.write_inline(0, &[work_ns]);
        let (cap, length) = (facet.to_bits(), size_of_val(&work_ns) as u32);
        let interface = PLAIN.to_bits();
        let sqe = Sqe { cap, interface, length, ..self.operation(Opcode::Call) };
        let done = self.complete(sqe, self.is_in_company());
        match done.status() {
            Some(Status::Ok | Status::Disconnected | Status::Cancelled) => {}
            _ => self.refused("a call", &done),
        }
    }

    /// RETURN of the call that is being served, and RECV of the next.
    fn serve(&mut self, service: usize) {
        let own = self.endpoint.ok_or("its process serves nothing");
        let cap = self.sim.must(&format!("serving {service}"), own).to_bits();
        let then_recv = SqeFlags::THEN_RECV;
        let sqe = match self.serving.take() {
            Some(arg) => Sqe { cap, arg, flags: then_recv, ..self.operation(Opcode::Return) },
            None => Sqe { cap, ..self.operation(Opcode::Recv) },
        };
        let done = self.complete(sqe, self.is_in_company());
        if done.status() != Some(Status::Ok) {
            self.refused("a receive", &done);
        }
        self.serving = Some(done.cqe.token);
        let slot = self.slot();
        self.sim.with(|w| w.thread(slot).work_ns = done.word);
    }

    /// PARK at a gate until it opens, or UNPARK of those that wait there.
    fn meet(&mut self, gate: usize) {
        match self.sim.come(self.process, gate) {
            Arrival::Opens { word } => {
                let (cap, address) = (self.park.to_bits(), u64::from(u32::MAX));
                let sqe = Sqe { cap, arg: word, address, ..self.operation(Opcode::Unpark) };
                let done = self.complete(sqe, false);
                if done.status() != Some(Status::Ok) {
                    self.refused("an unpark", &done);
                }
            }
            Arrival::Waits { word, round } => {
                while !self.sim.has_opened(gate, round) {
                    let (cap, address) = (self.park.to_bits(), u64::from(round));
                    let park = self.operation(Opcode::Park);
                    let sqe = Sqe { cap, arg: word, address, result_address: NEVER, ..park };
                    let done = self.complete(sqe, false);
                    if !matches!(done.status(), Some(Status::Woken | Status::Mismatch)) {
                        self.refused("a park", &done);
                    }
                }
            }
        }
    }
}
