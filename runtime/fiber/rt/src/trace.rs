//! A trace of what each worker did, for a timeline viewer.

use core::fmt::Write;
use core::sync::atomic::{AtomicU64, Ordering};

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::runtime::Runtime;
use crate::substrate::{Substrate, Sys};

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Event {
    Run = 1,
    Stop = 2,
    Steal = 3,
    Sleep = 4,
    Wake = 5,
}

const KIND_SHIFT: u32 = 60;
const VALUE_MASK: u64 = (1 << KIND_SHIFT) - 1;

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
    pub fn record(&self, event: Event, value: u64) {
        if !self.words.is_empty() {
            self.record_now(event, value);
        }
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
    fn read(&self) -> Vec<(u64, u64)> {
        let length = self.words.len() as u64;
        let end = self.written.load(Ordering::Acquire);
        let begin = end.saturating_sub(length);
        let read: Vec<_> = (begin..end)
            .filter_map(|index| self.words.get((index % length.max(1)) as usize))
            .map(|[time, word]| (time.load(Ordering::Relaxed), word.load(Ordering::Relaxed)))
            .collect();
        let lost = (self.written.load(Ordering::Acquire) + 1).saturating_sub(begin + length);
        read.into_iter().skip(lost as usize).collect()
    }
}

/// What the workers did, as far back as their buffers reach.
#[derive(Clone, Debug)]
pub struct Trace {
    workers: Vec<Vec<(u64, u64)>>,
    began_ns: u64,
}

impl Trace {
    pub(crate) fn of(runtime: &Runtime) -> Self {
        let workers = runtime.shared.workers.iter().map(|worker| worker.trace.read()).collect();
        Self { workers, began_ns: runtime.shared.began_ns }
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.workers.iter().map(Vec::len).sum()
    }

    /// Whether nothing was traced.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The trace in the Chrome trace event format, which Perfetto and chrome://tracing open.
    pub fn to_json(&self) -> String {
        let mut json = String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
        let mut is_first = true;
        let mut put = |line: core::fmt::Arguments<'_>| {
            if !is_first {
                json.push(',');
            }
            is_first = false;
            // Writing to a string does not fail.
            let _ = json.write_fmt(format_args!("\n{line}"));
        };
        for (worker, events) in self.workers.iter().enumerate() {
            if events.is_empty() {
                continue;
            }
            put(format_args!(
                "{{\"ph\":\"M\",\"pid\":1,\"tid\":{worker},\"name\":\"thread_name\",\
                 \"args\":{{\"name\":\"worker {worker}\"}}}}"
            ));
            let mut open: Option<(u64, u64)> = None;
            for (time, word) in events {
                let (kind, value) = (word >> KIND_SHIFT, word & VALUE_MASK);
                let at = time.saturating_sub(self.began_ns);
                let micros = |ns: u64| (ns / 1000, ns % 1000);
                if kind == Event::Steal as u64 {
                    let (us, ns) = micros(at);
                    put(format_args!(
                        "{{\"ph\":\"i\",\"s\":\"t\",\"pid\":1,\"tid\":{worker},\
                         \"ts\":{us}.{ns:03},\"name\":\"steal {value}\"}}"
                    ));
                } else if kind == Event::Run as u64 || kind == Event::Sleep as u64 {
                    open = Some((at, *word));
                } else if let Some((since, opened)) = open.take() {
                    let (us, ns) = micros(since);
                    let (long_us, long_ns) = micros(at.saturating_sub(since));
                    let id = opened & VALUE_MASK;
                    let is_run = opened >> KIND_SHIFT == Event::Run as u64;
                    let name = if is_run { "fiber" } else { "sleep" };
                    put(format_args!(
                        "{{\"ph\":\"X\",\"pid\":1,\"tid\":{worker},\"ts\":{us}.{ns:03},\
                         \"dur\":{long_us}.{long_ns:03},\"name\":\"{name} {id:x}\"}}"
                    ));
                }
            }
        }
        json.push_str("\n]}\n");
        json
    }
}
