//! A kernel for host tests: the real protocol over plain memory, with answers from
//! `schema_testing`.
//!
//! Slot 1 is a Console, slot 2 a Timer, slot 3 a SystemInfo, slot 4 an endpoint whose calls come
//! from a script. A sleep for ever completes when a thread waits and nothing else is left.

use std::collections::VecDeque;
use std::vec::Vec;

use abi_ring::{
    Accepted, Call, CqProducer, Credit, KernelRing, Outcome, Payload, Request, Return, Room, Stop,
    Visitor,
};
use abi_ring_testing::PlainMemory;
use abi_types::{CapSlot, CqeFlags, EnterFlags, EnterResult, Status};
use schema::{console, system_info, timer};
use schema_testing::Everything;
use schema_wire::Served;
use zerocopy::IntoBytes;

use crate::{Enter, Io, Ring};

pub const CONSOLE: CapSlot = CapSlot::new(1, 1);
pub const TIMER: CapSlot = CapSlot::new(2, 1);
pub const SYSTEM_INFO: CapSlot = CapSlot::new(3, 1);
pub const ENDPOINT: CapSlot = CapSlot::new(4, 1);

pub struct TestKernel<'m> {
    ring: KernelRing<&'m PlainMemory>,
    cq: CqProducer,
    pub service: Everything,
    /// Operations that complete when somebody waits, the latest first.
    later: Vec<Credit>,
    /// Calls that will be received: method and parameters.
    pub calls: VecDeque<(u16, Vec<u64>)>,
    /// Answers that came: whether an exception, its kind, the bytes.
    pub answers: Vec<(Option<u16>, Vec<u8>)>,
    /// Statuses that answers are refused with before they are taken.
    pub refusals: VecDeque<Status>,
    /// How many bytes the console takes at once.
    pub console_takes: u64,
    /// How often the program entered.
    pub entries: u32,
}

impl<'m> TestKernel<'m> {
    pub fn new(memory: &'m PlainMemory) -> Self {
        let (ring, cq) = KernelRing::new(memory, 4096, 4096);
        Self {
            ring,
            cq,
            service: Everything::default(),
            later: Vec::new(),
            calls: VecDeque::new(),
            answers: Vec::new(),
            refusals: VecDeque::new(),
            console_takes: u64::MAX,
            entries: 0,
        }
    }

    fn complete(&mut self, credit: Credit, outcome: Outcome, payload: &[u64]) {
        let _ = self.ring.post_words(&mut self.cq, credit, &outcome, payload);
    }

    fn plain(&mut self, credit: Credit, status: Status) {
        self.complete(credit, Outcome::plain(status), &[]);
    }

    fn read(&self, payload: Payload) -> Vec<u64> {
        let mut words = [0; 16];
        match payload {
            Payload::Inline { slot, length } => {
                self.ring.read_inline(slot, length, &mut words);
                words[..length.div_ceil(8) as usize].to_vec()
            }
            Payload::Address { address, length } => {
                let from = core::ptr::with_exposed_provenance::<u64>(address as usize);
                // SAFETY: the program under test named its own memory, which it holds until the
                // call completes.
                unsafe { core::slice::from_raw_parts(from, length.div_ceil(8) as usize) }.to_vec()
            }
            Payload::Registered { .. } => panic!("there are no registered buffers"),
        }
    }

    fn call(&mut self, credit: Credit, call: &Call) {
        let (interface, tag) = match call.target() {
            CONSOLE => ("Console", console::INTERFACE_TAG),
            TIMER => ("Timer", timer::INTERFACE_TAG),
            SYSTEM_INFO => ("SystemInfo", system_info::INTERFACE_TAG),
            _ => return self.plain(credit, Status::Disconnected),
        };
        if call.interface() != tag.to_bits() {
            return self.plain(credit, Status::WrongInterface);
        }
        let params = self.read(call.params());
        let mut results = [0u64; 64];
        let room = match call.results() {
            Room::Inline => 128,
            Room::Address { capacity, .. } => capacity as usize,
            Room::Registered { .. } => panic!("there are no registered buffers"),
        };
        let bytes = &mut results.as_mut_bytes()[..room.min(512)];
        let served = schema_testing::serve(
            &mut self.service,
            interface,
            call.method(),
            params.as_bytes(),
            bytes,
        );
        let (status, length) = match served.expect("a known interface") {
            Ok(Served::Results(length)) => (Status::Ok, length),
            Ok(Served::Exception(length)) => (Status::Exception, length),
            Ok(Served::Later) => return self.later.push(credit),
            Err(status) => return self.plain(credit, status),
        };
        if (interface, call.method(), status) == ("Console", 0, Status::Ok) {
            results[1] = results[1].min(self.console_takes);
        }
        let mut outcome = Outcome { length: length as u32, ..Outcome::plain(status) };
        if let (Room::Address { address, .. }, Status::Ok) = (call.results(), status) {
            let to = core::ptr::with_exposed_provenance_mut::<u64>(address as usize);
            let words = length.div_ceil(8);
            // SAFETY: as for parameters, and `length` is within the capacity it named.
            unsafe { core::slice::from_raw_parts_mut(to, words) }
                .copy_from_slice(&results[..words]);
            outcome.flags = CqeFlags::BY_ADDRESS;
        }
        self.complete(credit, outcome, &results);
    }

    fn receive(&mut self, credit: Credit) {
        let Some((method, params)) = self.calls.pop_front() else {
            return self.plain(credit, Status::Disconnected);
        };
        let token = 1 << 32 | self.calls.len() as u64;
        let length = params.len() as u32 * 8;
        let outcome = Outcome { method, length, badge: 9, token, ..Outcome::plain(Status::Ok) };
        self.complete(credit, outcome, &params);
    }

    fn answer(&mut self, credit: Credit, answer: &Return) {
        if let Some(status) = self.refusals.pop_front() {
            return self.plain(credit, status);
        }
        if answer.then().is_some() && self.calls.is_empty() {
            // Both or neither: there is nothing more to receive.
            return self.plain(credit, Status::Disconnected);
        }
        let kind = answer.exception().map(|kind| kind as u16);
        let mut bytes = self.read(answer.results()).as_bytes().to_vec();
        bytes.truncate(answer.results().length() as usize);
        self.answers.push((kind, bytes));
        match answer.then() {
            Some(_) => self.receive(credit),
            None => self.plain(credit, Status::Ok),
        }
    }

    fn pass(&mut self) -> u32 {
        let mut taken = Vec::new();
        let stop = {
            let mut pass = self.ring.begin(Visitor::Syscall).expect("one consumer");
            while let Some(Accepted { credit, request }) = pass.next() {
                taken.push((credit, request));
            }
            pass.stop()
        };
        for (credit, request) in taken {
            match request {
                Ok(Request::Call(call)) => self.call(credit, &call),
                Ok(Request::Recv(_)) => self.receive(credit),
                Ok(Request::Return(answer)) => self.answer(credit, &answer),
                Ok(_) => self.plain(credit, Status::Ok),
                Err(status) => self.plain(credit, status),
            }
        }
        if stop == Stop::CqFull { EnterFlags::CQ_FULL } else { 0 }
    }
}

impl Enter for &mut TestKernel<'_> {
    fn cap_enter(&mut self, min_complete: u32, _: u64) -> EnterResult {
        self.entries += 1;
        let flags = self.pass();
        while self.ring.count() < min_complete {
            let Some(credit) = self.later.pop() else { panic!("the program waits for nothing") };
            self.plain(credit, Status::Ok);
        }
        EnterResult::new(self.ring.count(), flags)
    }
}

/// Runs `test` with an `Io` over a ring of so many entries; returns the kernel for a look at it.
pub fn with_io<R>(
    entries: u32,
    prepare: impl FnOnce(&mut TestKernel<'_>),
    test: impl FnOnce(&Io<&PlainMemory, &mut TestKernel<'_>>) -> R,
    look: impl FnOnce(&TestKernel<'_>, R),
) {
    let memory = PlainMemory::zeroed(entries);
    let mut kernel = TestKernel::new(&memory);
    prepare(&mut kernel);
    let result = {
        let io = Io::new(Ring::new(&memory, &mut kernel));
        let result = test(&io);
        assert_eq!(io.strays(), 0, "a completion came for nobody");
        result
    };
    look(&kernel, result);
}
