//! Events, read page by page.

use capos_rt::caller::{Caller, LARGE_WORDS};
use schema::trace;
use schema::trace_capnp::{TraceCategory, TraceEvent};

use crate::Shared;

/// Bytes of a record.
const BYTES: usize = 32;

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub time_ns: u64,
    pub kind: u16,
    pub category: u16,
    pub thread: u32,
    pub a: u64,
    pub b: u64,
}

impl Event {
    fn of(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| {
            let word: Option<[u8; 8]> =
                bytes.get(at * 8..at * 8 + 8).and_then(|word| word.try_into().ok());
            word.map(u64::from_le_bytes)
        };
        let head = word(1)?;
        Some(Self {
            time_ns: word(0)?,
            kind: head as u16,
            category: (head >> 16) as u16,
            thread: (head >> 32) as u32,
            a: word(2)?,
            b: word(3)?,
        })
    }

    /// Whether it is that event.
    pub fn is(&self, what: TraceEvent) -> bool {
        self.kind == what as u16
    }
}

/// The bit of a category.
pub const fn bit(category: TraceCategory) -> u32 {
    1 << category as u16
}

impl Shared {
    /// Calls on the trace.
    pub fn trace(&self) -> trace::Client<Caller<'static, LARGE_WORDS>> {
        trace::Client::new(self.program.io().large(), self.trace)
    }

    /// Shows every event of a CPU, in its order; how many there were, and how many were lost. `None` if a read fails or
    /// says what cannot be.
    pub fn each(&self, cpu: u32, mut see: impl FnMut(Event)) -> Option<(u64, u64)> {
        let (mut position, mut before) = (0, 0);
        loop {
            let mut client = self.trace();
            let reading = client.read(cpu, position, 4096).ok()?;
            let read = reading.get().ok()?;
            if read.events.len() % BYTES != 0 {
                return None;
            }
            for record in read.events.chunks(BYTES) {
                let event = Event::of(record)?;
                if event.time_ns < before {
                    return None;
                }
                before = event.time_ns;
                see(event);
            }
            let count = (read.events.len() / BYTES) as u64;
            if read.next != position + count {
                return None;
            }
            if count == 0 {
                return Some((position, read.lost));
            }
            position = read.next;
        }
    }

    /// How many events of all CPUs are as `is` says.
    pub fn count(&self, is: impl Fn(&Event) -> bool) -> u64 {
        let mut count = 0;
        for cpu in 0..self.program.cpus() {
            let seen = self.each(cpu, |event| count += u64::from(is(&event)));
            if seen.is_none() {
                return u64::MAX;
            }
        }
        count
    }
}
