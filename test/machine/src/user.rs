//! User mode: a thread of the machine, with its ring.

use crate::PLAIN;
use crate::machine::Host;
use crate::space::HostSpace;
use abi_ring::{INLINE_WORDS, Memory, UserRing};
use abi_ring_testing::PlainMemory;
use abi_types::{CapSlot, Cqe, EnterResult, InterfaceTag, NEVER, Opcode, RingWord, Sqe, Status};
use core_sched_policy::QUANTUM_NS;
use kernel_dispatch::Here;
use kernel_ops::{Machine as _, enter};
use kernel_process::machine::process_of;
use kernel_process::{Thread, end};
use schema::{thread_handle, thread_spawner, timer};
use schema_wire::{Encode, Message, Method};
use std::sync::atomic::Ordering::SeqCst;
use zerocopy::IntoBytes;

/// A completion, with its inline payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The entry.
    pub cqe: Cqe,
    /// The words of its slot.
    pub words: [u64; INLINE_WORDS],
}

impl Done {
    /// How it ended.
    pub fn status(&self) -> Status {
        Status::from_number(self.cqe.status).expect("the kernel says what it knows")
    }
}

/// A thread in user mode.
pub struct User {
    m: Host,
    thread: &'static Thread<Host>,
    ring: UserRing<&'static PlainMemory>,
    /// What its maker gave it.
    pub argument: u64,
}

impl User {
    pub(crate) fn new(
        m: Host,
        thread: &'static Thread<Host>,
        ring: &'static PlainMemory,
        argument: u64,
    ) -> Self {
        Self { m, thread, ring: UserRing::new(ring), argument }
    }

    /// The machine.
    pub fn machine(&self) -> Host {
        self.m
    }

    /// Its process.
    pub fn process(&self) -> &'static kernel_process::Process<Host> {
        process_of(self.m, self.thread)
    }

    /// The position of its record.
    pub fn slot(&self) -> u32 {
        self.thread.slot()
    }

    /// Its memory.
    pub fn space(&self) -> &'static HostSpace {
        &self.process().ops.space
    }

    /// The slot that a grant of its process went to.
    pub fn cap(&self, name: &str) -> CapSlot {
        self.m.0.cap(process_of(self.m, self.thread).slot(), name)
    }

    /// Puts an SQE into the queue and shows it to the kernel; `false` if the queue is full.
    pub fn submit(&mut self, sqe: Sqe) -> bool {
        let is_pushed = self.ring.push(sqe).is_ok();
        self.ring.publish();
        is_pushed
    }

    /// Writes words into an inline slot.
    pub fn write(&mut self, slot: u16, words: &[u64]) {
        self.ring.write_inline(slot, words);
    }

    /// `cap_enter`.
    pub fn enter(&mut self, min_complete: u64, timeout_ns: u64) -> EnterResult {
        self.m.user_step(self.thread);
        let is_in_kernel = self.m.0.is_in_kernel(self.thread.slot());
        is_in_kernel.store(true, SeqCst);
        let entered = enter::cap_enter(self.m, Here::now(self.m), min_complete, timeout_ns);
        is_in_kernel.store(false, SeqCst);
        self.m.user_step(self.thread);
        EnterResult(entered)
    }

    /// Takes the oldest completion.
    pub fn take(&mut self) -> Option<Done> {
        let done = self.ring.pop()?;
        let mut words = [0; INLINE_WORDS];
        done.read_inline((INLINE_WORDS * 8) as u32, &mut words);
        Some(Done { cqe: *done.cqe(), words })
    }

    /// Checks that the cells in use are as many as the completions that are owed.
    pub fn check_cells(&self) {
        let held = self.thread.ops.home.completions().expect("a thread that runs has a ring");
        let memory = self.ring.memory();
        let consumed = memory.load_relaxed(RingWord::SqHead);
        let owed = consumed.wrapping_sub(memory.load_relaxed(RingWord::CqTail));
        let busy = held.ring().shared.cells.busy(0).count();
        assert_eq!(busy as u32, owed, "cells in use and completions owed");
    }

    /// Whether operations are pending or submitted.
    pub fn has_pending(&self) -> bool {
        let memory = self.ring.memory();
        memory.load_relaxed(RingWord::SqTail) != memory.load_relaxed(RingWord::CqTail)
    }

    /// Submits, waits for one completion, and takes it: for a thread with nothing else under way.
    pub fn call(&mut self, sqe: Sqe) -> Done {
        assert!(self.submit(sqe), "the queue is full");
        loop {
            if let Some(done) = self.take() {
                assert_eq!(done.cqe.user_data, sqe.user_data, "another operation completed");
                return done;
            }
            self.enter(1, NEVER);
        }
    }

    /// Computes for a moment: interrupts come in.
    pub fn compute(&mut self) {
        self.m.0.relax();
        self.m.0.clock.fetch_add(QUANTUM_NS / 8, SeqCst);
        self.m.user_step(self.thread);
    }

    /// Does nothing for a while, in which others go far.
    pub fn linger(&mut self) {
        self.m.linger();
        self.m.user_step(self.thread);
    }

    /// Computes for longer than a slice.
    pub fn compute_a_slice(&mut self) {
        self.m.0.clock.fetch_add(2 * QUANTUM_NS, SeqCst);
        self.m.user_step(self.thread);
    }

    /// Ends the process.
    pub fn exit(self, code: i64) -> ! {
        self.m.user_step(self.thread);
        end::exit_process(self.m, self.thread, code)
    }

    /// The SQE of a call of an endpoint with an inline payload of so many bytes in slot 0.
    pub fn calling(target: CapSlot, method: u16, length: u32) -> Sqe {
        Self::calling_a(PLAIN, target, method, length)
    }

    /// The same for another interface than that of the machine's endpoints.
    pub fn calling_a(interface: InterfaceTag, target: CapSlot, method: u16, length: u32) -> Sqe {
        let (opcode, interface) = (Opcode::Call as u8, interface.to_bits());
        Sqe { opcode, cap: target.to_bits(), interface, method, length, ..Sqe::default() }
    }

    /// The SQE of a call with these parameters, which it puts into an inline slot.
    pub fn typed<'p, M: Method>(
        &mut self,
        target: CapSlot,
        slot: u16,
        params: &M::Params<'p>,
    ) -> Sqe {
        let mut words = [0_u64; INLINE_WORDS];
        let length = params.encode(words.as_mut_bytes()).expect("it fits") as u32;
        self.write(slot, &words);
        Sqe { buffer: slot, ..Self::calling_a(M::INTERFACE, target, M::ORDINAL, length) }
    }

    /// The SQE of a call of a method without parameters.
    pub fn calling_of<M: Method>(target: CapSlot) -> Sqe {
        Self::calling_a(M::INTERFACE, target, M::ORDINAL, 0)
    }

    /// The SQE of `Timer.sleep`.
    pub fn sleeping(&mut self, slot: u16, ns: u64) -> Sqe {
        let timer = self.cap("timer");
        self.typed::<timer::methods::Sleep>(timer, slot, &timer::SleepParams { ns })
    }

    /// A thread of the process that does what the body at `entry` does; its handle, or why not.
    pub fn spawn(&mut self, entry: u64, arg: u64) -> Result<CapSlot, Status> {
        let spawner = self.cap("threads");
        let params =
            thread_spawner::CreateParams { entry, stack_top: 0, arg, fs_base: 0, flags: 0 };
        let sqe = self.typed::<thread_spawner::methods::Create>(spawner, 0, &params);
        let done = self.call(sqe);
        if done.status() != Status::Ok {
            return Err(done.status());
        }
        let bytes = &done.words.as_bytes()[..done.cqe.length as usize];
        let message = Message::new(bytes).expect("what was encoded");
        let handle: thread_spawner::CreateResults = message.get().expect("what was encoded");
        Ok(CapSlot::new(u32::from(handle.handle_index), handle.handle_generation))
    }

    /// The SQE of a join.
    pub fn joining(&mut self, handle: CapSlot) -> Sqe {
        Self::calling_of::<thread_handle::methods::Join>(handle)
    }
}
