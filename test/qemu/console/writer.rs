//! Processes that write lines to the console, each in its own way: the name of its first grant says who it is.
//!
//! A line says who wrote it and the how-manieth it is, so `floods.rs` can count every one of them.
#![no_std]
#![no_main]

use abi_types::{CapSlot, Cqe, NEVER, Opcode, Sqe, Status};
use capos_rt::caller::call;
use capos_rt::io::status_of;
use capos_rt::{Env, Error, Ring, exit};
use schema::console::WriteParams;
use schema_wire::Encode;
use zerocopy::IntoBytes;

capos_rt::main!(main);

/// Bytes of a line, as many as one write takes.
const LINE: usize = 64;
/// Lines of a flood: with those of two others more than the kernel's log holds.
const FLOOD: u64 = 700;
/// Lines that fit into the ring of a process, with a few to spare.
const FEW: u64 = 60;
/// Writes that are under way at once.
const BATCH: u64 = 8;
/// Cancelled writes after which it is enough.
const CANCELS: u64 = 5;
/// How a CANCEL names itself.
const CANCEL: u64 = u64::MAX;

struct Writer<'r> {
    ring: &'r mut Ring,
    console: CapSlot,
    who: u8,
}

impl Writer<'_> {
    /// Submits the line of that number from an inline slot.
    fn submit(&mut self, slot: u16, number: u64) {
        let mut line = [b'.'; LINE];
        line[0] = self.who;
        let mut rest = number;
        for place in line[1..9].iter_mut().rev() {
            *place = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        line[LINE - 1] = b'\n';
        let mut words = [0_u64; 16];
        let length = WriteParams { bytes: &line }.encode(words.as_mut_bytes()).unwrap_or(0);
        self.ring.write_inline(slot, &words[..length.div_ceil(8)]);
        let write = Sqe { buffer: slot, user_data: number, ..call(self.console, 0, length as u32) };
        let _ = self.ring.push(write);
    }

    fn pop(&mut self) -> Option<Cqe> {
        self.ring.pop().map(|completion| *completion.cqe())
    }

    /// Waits for a completion.
    fn wait(&mut self) -> Cqe {
        loop {
            if let Some(cqe) = self.pop() {
                return cqe;
            }
            let _ = self.ring.enter(1, NEVER);
        }
    }

    /// Writes lines up to that number, a batch at a time; each has to be taken.
    fn flood(&mut self, lines: u64) {
        let mut next = 0;
        while next < lines {
            let batch = BATCH.min(lines - next);
            for number in 0..batch {
                self.submit(number as u16, next + number);
            }
            for _ in 0..batch {
                if status_of(&self.wait()) != Status::Ok {
                    exit(-1);
                }
            }
            next += batch;
        }
    }

    /// Cancels what pends: it was not written, and its line is the next one's. How often.
    fn cancel(&mut self, lines: u64) -> u64 {
        let (mut next, mut cancelled) = (0, 0);
        while next < lines && cancelled < CANCELS {
            self.submit(0, next);
            let _ = self.ring.enter(0, 0);
            if let Some(done) = self.pop() {
                next += u64::from(status_of(&done) == Status::Ok);
                continue;
            }
            let opcode = Opcode::Cancel as u8;
            let _ = self.ring.push(Sqe { opcode, arg: next, user_data: CANCEL, ..Sqe::default() });
            let mut ends = [Status::Unimplemented; 2];
            for _ in 0..2 {
                let cqe = self.wait();
                ends[usize::from(cqe.user_data == CANCEL)] = status_of(&cqe);
            }
            match ends {
                [Status::Cancelled, Status::Ok] => cancelled += 1,
                // The drain was faster.
                [Status::Ok, Status::NotFound] => next += 1,
                _ => exit(-2),
            }
        }
        // The ring goes on as if nothing had been.
        self.submit(0, next);
        if status_of(&self.wait()) != Status::Ok {
            exit(-3);
        }
        cancelled
    }

    /// Ends with writes that pend; the exit code says how many were taken before.
    fn end_while_pending(&mut self, lines: u64) -> ! {
        let (mut next, mut taken) = (0, 0);
        while next < lines {
            for slot in 0..BATCH {
                self.submit(slot as u16, next + slot);
            }
            let _ = self.ring.enter(0, 0);
            let mut here = 0;
            while self.pop().is_some() {
                here += 1;
            }
            taken += here;
            if here < BATCH {
                exit(taken as i64);
            }
            next += BATCH;
        }
        exit(-4)
    }
}

fn main(env: &'static Env) -> Result<(), Error> {
    let console = env.cap("console", schema::console::INTERFACE_ID)?;
    let has = |name| env.caps.named(name).is_some();
    let who = *b"abcxdefg"
        .iter()
        .find(|who| has(core::str::from_utf8(core::slice::from_ref(*who)).unwrap_or("")))
        .unwrap_or(&b'?');
    env.io.with_ring(|ring| {
        let mut writer = Writer { ring, console, who };
        match who {
            b'x' if writer.cancel(10 * FLOOD) == 0 => exit(-5),
            b'd' => writer.end_while_pending(10 * FLOOD),
            b'e' | b'f' => writer.flood(FEW),
            b'g' => writer.flood(u64::MAX),
            b'x' => {}
            _ => writer.flood(FLOOD),
        }
    });
    if let Some(told) = env.caps.named("tell") {
        // The other ends the system, so there is no answer.
        let _ = env.io.run(call(told, 0, 0), &[], &mut [0; 16]);
    }
    if let Some(asked) = env.caps.named("ask") {
        let recv = Sqe { opcode: Opcode::Recv as u8, cap: asked.to_bits(), ..Sqe::default() };
        let _ = env.io.run(recv, &[], &mut [0; 16]);
    }
    Ok(())
}
