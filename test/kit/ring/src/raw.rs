//! A borrowed ring that collects what is wrong.

use core::fmt::{self, Debug, Write};
use core::panic::Location;

use abi_ring::INLINE_WORDS;
use abi_types::{Cqe, EnterResult, Sqe, Status};
use capos_rt::{Io, Ring, now_ns};
use schema_wire::{Encode, Exception, ExceptionKind, Reply, Value, results_of};
use test_kit::{Outcome, T};
use zerocopy::IntoBytes;

/// Failures that are told; more are counted.
const KEPT: usize = 6;
/// How long a completion may take: much longer than any does on a busy machine.
pub const PATIENCE_NS: u64 = 20_000_000_000;
/// Bytes of one failure.
const TEXT: usize = 200;

/// A completion with its inline payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Got {
    /// The entry.
    pub cqe: Cqe,
    /// Its inline slot.
    pub words: [u64; INLINE_WORDS],
}

impl Got {
    /// Its status.
    pub fn status(&self) -> Option<Status> {
        self.cqe.status()
    }

    /// The payload as results of a method, if it is that.
    pub fn results<V: for<'m> Value<'m>>(&self) -> Option<V> {
        let reply = Reply { is_exception: false, bytes: self.bytes(), transfers: &[] };
        if self.status() == Some(Status::Ok) { results_of(reply).ok() } else { None }
    }

    /// The kind of exception it is, if completion and message agree on it and say something.
    pub fn exception(&self) -> Option<ExceptionKind> {
        let said = Exception::decode(self.bytes()).ok()?;
        let is_one = self.status() == Some(Status::Exception)
            && said.kind() as u16 == self.cqe.method
            && !said.message().is_empty();
        is_one.then(|| said.kind())
    }

    /// The payload's bytes, as far as they are inline.
    pub fn bytes(&self) -> &[u8] {
        &self.words.as_bytes()[..(self.cqe.length as usize).min(INLINE_WORDS * 8)]
    }
}

/// The ring of a thread, while a test has it.
pub struct Raw<'r> {
    /// The ring.
    pub ring: &'r mut Ring,
    log: Log,
    pushed: u64,
    popped: u64,
}

/// What was found wrong.
pub struct Log {
    lines: [Line; KEPT],
    count: usize,
}

#[derive(Clone, Copy)]
struct Line {
    text: [u8; TEXT],
    used: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if let Some(place) = self.text.get_mut(self.used) {
                *place = byte;
                self.used += 1;
            }
        }
        Ok(())
    }
}

/// Lends the thread's ring to `work`, then tells `t` what it found wrong.
pub fn raw<E>(t: &mut T<'_, E>, io: &Io, work: impl FnOnce(&mut Raw<'_>)) -> Outcome {
    borrow(io, work).tell(t);
    Ok(())
}

impl Log {
    /// How much was wrong.
    pub fn failures(&self) -> usize {
        self.count
    }

    /// Tells a test what was wrong.
    pub fn tell<E>(&self, t: &mut T<'_, E>) {
        for line in self.lines.iter().take(self.count) {
            let text = core::str::from_utf8(&line.text[..line.used]).unwrap_or("(cut)");
            t.note_failure(format_args!("{text}"));
        }
        if self.count > KEPT {
            t.note_failure(format_args!("{} more failures", self.count - KEPT));
        }
    }
}

/// As [`raw`], for threads without a test of their own.
pub fn borrow(io: &Io, work: impl FnOnce(&mut Raw<'_>)) -> Log {
    io.with_ring(|ring| {
        let line = Line { text: [0; TEXT], used: 0 };
        let log = Log { lines: [line; KEPT], count: 0 };
        let mut raw = Raw { ring, log, pushed: 0, popped: 0 };
        work(&mut raw);
        let _ = raw.ring.enter(0, 0);
        while let Some(got) = raw.pop() {
            raw.fail(format_args!("a completion that nobody waited for: {:?}", got.cqe));
        }
        let (pushed, popped) = (raw.pushed, raw.popped);
        raw.eq(popped, pushed, "completions for the SQEs pushed");
        raw.log
    })
}

impl Raw<'_> {
    /// Notes a failure.
    #[track_caller]
    pub fn fail(&mut self, what: fmt::Arguments<'_>) {
        let place = Location::caller();
        if let Some(line) = self.log.lines.get_mut(self.log.count) {
            let _ = write!(line, "{}:{}: {what}", place.file(), place.line());
        }
        self.log.count += 1;
    }

    /// Notes a failure unless `holds`.
    #[track_caller]
    pub fn check(&mut self, holds: bool, what: &str) {
        if !holds {
            self.fail(format_args!("does not hold: {what}"));
        }
    }

    /// Notes a failure unless both are equal.
    #[track_caller]
    pub fn eq<V: Debug + PartialEq>(&mut self, found: V, expected: V, what: &str) {
        if found != expected {
            self.fail(format_args!("{what}: {found:?}, expected {expected:?}"));
        }
    }

    /// How much was wrong so far.
    pub fn failures(&self) -> usize {
        self.log.count
    }

    /// Puts an SQE into the queue.
    #[track_caller]
    pub fn push(&mut self, sqe: Sqe) {
        match self.ring.push(sqe) {
            Ok(()) => self.pushed += 1,
            Err(_) => self.fail(format_args!("the submission queue is full")),
        }
    }

    /// Puts an SQE into the queue if there is room.
    pub fn try_push(&mut self, sqe: Sqe) -> bool {
        let is_in = self.ring.push(sqe).is_ok();
        self.pushed += u64::from(is_in);
        is_in
    }

    /// Publishes and enters.
    pub fn enter(&mut self, min_complete: u32, timeout_ns: u64) -> EnterResult {
        self.ring.enter(min_complete, timeout_ns)
    }

    /// The oldest completion, if one is there.
    pub fn pop(&mut self) -> Option<Got> {
        let completion = self.ring.pop()?;
        let words = core::array::from_fn(|word| completion.inline_word(word));
        let cqe = completion.take();
        self.popped += 1;
        Some(Got { cqe, words })
    }

    /// Enters until a completion is there. One that does not come within [`PATIENCE_NS`] is a
    /// failure and a status that does not exist, so that a test ends where it would hang.
    #[track_caller]
    pub fn wait(&mut self) -> Got {
        let given_up_ns = now_ns().saturating_add(PATIENCE_NS);
        loop {
            if let Some(got) = self.pop() {
                return got;
            }
            if now_ns() >= given_up_ns {
                self.fail(format_args!("a completion does not come"));
                let cqe = Cqe { status: u8::MAX, ..Cqe::default() };
                return Got { cqe, words: [0; INLINE_WORDS] };
            }
            let _ = self.enter(1, PATIENCE_NS);
        }
    }

    /// One operation alone: pushes, enters, takes its completion.
    #[track_caller]
    pub fn one(&mut self, sqe: Sqe) -> Got {
        self.push(sqe);
        let got = self.wait();
        self.eq(got.cqe.user_data, sqe.user_data, "user data of the completion");
        got
    }

    /// One operation alone that must end with `status`.
    #[track_caller]
    pub fn ends(&mut self, sqe: Sqe, status: Status, what: &str) -> Got {
        let got = self.one(sqe);
        self.eq(got.status(), Some(status), what);
        got
    }

    /// Enters without waiting and takes nothing: what was pushed is dispatched.
    pub fn dispatch(&mut self) -> EnterResult {
        self.enter(0, 0)
    }

    /// The next completion, which must be of `user_data` and have `status`.
    #[track_caller]
    pub fn expect(&mut self, user_data: u64, status: Status, what: &str) -> Got {
        let got = self.wait();
        let found = (got.cqe.user_data, got.status());
        self.eq(found, (user_data, Some(status)), what);
        got
    }

    /// No completion is there after an entry.
    #[track_caller]
    pub fn expect_none(&mut self, what: &str) {
        let count = self.dispatch().count();
        if count != 0 {
            let got = self.wait();
            self.fail(format_args!("{what}: {:?} and {} more", got.cqe, count - 1));
        }
    }

    /// Writes words into an inline slot of the submission side.
    pub fn put(&mut self, slot: u16, words: &[u64]) {
        self.ring.write_inline(slot, words);
    }

    /// Writes the parameters of a typed call into an inline slot; their bytes.
    pub fn put_params(&mut self, slot: u16, params: &impl Encode) -> u32 {
        let mut words = [0_u64; INLINE_WORDS];
        match params.encode(words.as_mut_bytes()) {
            Ok(length) => {
                self.put(slot, &words[..length.div_ceil(8)]);
                length as u32
            }
            Err(_) => {
                self.fail(format_args!("parameters do not fit an inline slot"));
                0
            }
        }
    }
}
