//! What each worker did last, in buffers of its own; `trace_json` tells it to a viewer.

use core::sync::atomic::{AtomicU64, Ordering};

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use crate::frame::Frame;
use crate::lock::SpinLock;
use crate::pool::for_each_fiber;
use crate::runtime::Runtime;
use crate::substrate::{Substrate, Sys};
use crate::what::What;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Event {
    /// A fiber begins to run; its number.
    Run = 1,
    /// It stops; why, as [`Stop`] has it.
    Stop = 2,
    /// Fibers were stolen; how many.
    Steal = 3,
    /// The worker falls asleep.
    Sleep = 4,
    /// It is awake.
    Wake = 5,
    /// A fiber was made runnable by what runs on this worker; its number.
    Ready = 6,
}

const KINDS: [Event; 6] =
    [Event::Run, Event::Stop, Event::Steal, Event::Sleep, Event::Wake, Event::Ready];

const KIND_SHIFT: u32 = 60;
const VALUE_MASK: u64 = (1 << KIND_SHIFT) - 1;

/// Why a fiber stopped running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Ended,
    Yielded,
    /// It waits, at that address.
    Parked(What, u64),
}

const WHAT_SHIFT: u32 = 2;
const AT_SHIFT: u32 = 10;

impl Stop {
    pub fn code(self) -> u64 {
        match self {
            Self::Ended => 0,
            Self::Yielded => 1,
            Self::Parked(what, at) => 2 | (what as u64) << WHAT_SHIFT | at << AT_SHIFT,
        }
    }

    pub fn of(code: u64) -> Self {
        match code & 3 {
            0 => Self::Ended,
            1 => Self::Yielded,
            // The code of what it is fits into the byte it was.
            _ => Self::Parked(What::of((code >> WHAT_SHIFT) as u8), code >> AT_SHIFT),
        }
    }
}

/// The last events of one worker, which alone writes them.
pub(crate) struct TraceBuffer {
    /// Time and event, in turn.
    words: Box<[[AtomicU64; 2]]>,
    written: AtomicU64,
}

impl TraceBuffer {
    pub fn new(events: usize) -> Self {
        let words = (0..events).map(|_| [AtomicU64::new(0), AtomicU64::new(0)]).collect();
        Self { words, written: AtomicU64::new(0) }
    }

    #[inline]
    pub fn is_on(&self) -> bool {
        !self.words.is_empty()
    }

    #[inline]
    pub fn record(&self, event: Event, value: u64) {
        if self.is_on() {
            self.record_now(event, value);
        }
    }

    /// As `record`, of a fiber's number.
    #[inline]
    pub fn record_fiber(&self, event: Event, frame: &Frame) {
        if self.is_on() {
            self.record_now(event, frame.id.load(Ordering::Relaxed));
        }
    }

    /// What a fiber is about to wait for. Before the park is committed: then it may be elsewhere.
    #[inline]
    pub fn parks(&self, frame: &Frame) -> Stop {
        if !self.is_on() {
            return Stop::Ended;
        }
        let what = What::of(frame.waits_for.load(Ordering::Relaxed));
        Stop::Parked(what, frame.waits_at.load(Ordering::Relaxed) as u64)
    }

    #[cold]
    fn record_now(&self, event: Event, value: u64) {
        let written = self.written.load(Ordering::Relaxed);
        if let Some([time, word]) = self.words.get(written as usize % self.words.len()) {
            time.store(Sys::now_ns(), Ordering::Relaxed);
            word.store((event as u64) << KIND_SHIFT | value & VALUE_MASK, Ordering::Relaxed);
        }
        // Release: pairs with the acquire in `read`.
        self.written.store(written + 1, Ordering::Release);
    }

    /// The events that are whole: neither overwritten while they were read nor about to be.
    fn read(&self, worker: usize) -> Vec<Record> {
        let length = self.words.len() as u64;
        let end = self.written.load(Ordering::Acquire);
        let begin = end.saturating_sub(length);
        let read: Vec<_> = (begin..end)
            .filter_map(|index| self.words.get((index % length.max(1)) as usize))
            .map(|[time, word]| (time.load(Ordering::Relaxed), word.load(Ordering::Relaxed)))
            .collect();
        let lost = (self.written.load(Ordering::Acquire) + 1).saturating_sub(begin + length);
        let records = read.into_iter().skip(lost as usize).filter_map(|(time_ns, word)| {
            let event = KINDS.into_iter().find(|kind| *kind as u64 == word >> KIND_SHIFT)?;
            Some(Record { time_ns, worker, event, value: word & VALUE_MASK })
        });
        records.collect()
    }
}

/// One event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub time_ns: u64,
    pub worker: usize,
    pub event: Event,
    pub value: u64,
}

/// The names of fibers, which may have ended since: the last ones, as many as there may be events.
pub(crate) struct TraceNames {
    named: SpinLock<VecDeque<(u64, &'static str)>>,
    most: usize,
}

impl TraceNames {
    pub fn new(most: usize) -> Self {
        Self { named: SpinLock::new(VecDeque::new()), most }
    }

    pub fn note(&self, fiber: u64, name: &'static str) {
        if self.most > 0 {
            self.named.with(|named| {
                if named.len() == self.most {
                    named.pop_front();
                }
                named.push_back((fiber, name));
            });
        }
    }
}

/// What the workers did, as far back as their buffers reach.
#[derive(Clone, Debug)]
pub struct Trace {
    /// In the order of time.
    pub(crate) records: Vec<Record>,
    pub(crate) names: BTreeMap<u64, &'static str>,
    pub(crate) began_ns: u64,
    pub(crate) taken_ns: u64,
}

impl Trace {
    pub(crate) fn of(runtime: &Runtime) -> Self {
        let shared = &runtime.shared;
        let read = |worker: &crate::worker::Worker| worker.trace.read(worker.index);
        let mut records: Vec<Record> = shared.workers.iter().flat_map(read).collect();
        // Stable: what one worker did at one moment stays in its order.
        records.sort_by_key(|record| record.time_ns);
        let mut names: BTreeMap<_, _> =
            shared.names.named.with(|named| named.iter().copied().collect());
        for_each_fiber(shared, |frame| {
            let name = frame.name.with(|name| *name);
            if !name.is_empty() {
                names.insert(frame.id.load(Ordering::Relaxed), name);
            }
        });
        Self { records, names, began_ns: shared.began_ns, taken_ns: Sys::now_ns() }
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether nothing was traced.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
