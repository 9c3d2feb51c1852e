//! A trace in the Chrome trace event format, which Perfetto, chrome://tracing and speedscope open.
//!
//! A worker is a thread there, a run of a fiber a slice of it, and so is a worker's sleep. What runs and
//! makes another fiber runnable is joined to that one's next run by a flow, an arrow; what no slice can
//! be the source of, a timer for instance, is an instant.

use core::fmt::{self, Write};

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::trace::{Event, Record, Stop, Trace};

/// The number of the process, which is no thread's: that one would be called the main thread.
const PROCESS: usize = 1000;

/// The number of a worker as a thread. Not 0, which viewers take for the idle thread of a system.
fn thread_of(worker: usize) -> usize {
    worker + 1
}

/// Text as it is in JSON, between quotes.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '"' | '\\' => write!(out, "\\{character}")?,
                c if (c as u32) < 0x20 => write!(out, "\\u{:04x}", c as u32)?,
                c => out.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Nanoseconds as the microseconds of the format.
struct Micros(u64);

impl fmt::Display for Micros {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// What is under way on a worker.
#[derive(Clone, Copy)]
enum Open {
    Run { fiber: u64, since_ns: u64 },
    Sleep { since_ns: u64 },
}

/// The lines of the events, each with its time.
struct Lines<'a> {
    trace: &'a Trace,
    lines: Vec<(u64, String)>,
    open: BTreeMap<usize, Open>,
    /// Who made a fiber runnable, and whether out of a slice, until it runs.
    ready: BTreeMap<u64, (Record, bool)>,
    flows: u64,
}

impl Lines<'_> {
    fn put(&mut self, at_ns: u64, worker: usize, phase: &str, rest: fmt::Arguments<'_>) {
        let at_ns = at_ns.saturating_sub(self.trace.began_ns);
        let line = format!(
            "{{\"ph\":\"{phase}\",\"pid\":{PROCESS},\"tid\":{},\"ts\":{},{rest}}}",
            thread_of(worker),
            Micros(at_ns)
        );
        self.lines.push((at_ns, line));
    }

    fn name(&self, fiber: u64) -> String {
        match self.trace.names.get(&fiber) {
            Some(name) => format!("{}", Quoted(name)),
            None => format!("fiber {fiber:x}"),
        }
    }

    /// Ends what is under way on a worker; `why` a fiber stopped.
    fn close(&mut self, worker: usize, at_ns: u64, why: Option<Stop>) {
        match self.open.remove(&worker) {
            Some(Open::Sleep { since_ns }) => {
                let long = Micros(at_ns.saturating_sub(since_ns));
                let rest = format_args!("\"dur\":{long},\"cat\":\"worker\",\"name\":\"sleep\"");
                self.put(since_ns, worker, "X", rest);
            }
            Some(Open::Run { fiber, since_ns }) => {
                let long = Micros(at_ns.saturating_sub(since_ns));
                let stop = match why {
                    Some(Stop::Ended) => "ended".into(),
                    Some(Stop::Yielded) => "yielded".into(),
                    Some(Stop::Parked(what, 0)) => format!("waits for {what:?}"),
                    Some(Stop::Parked(what, at)) => format!("waits for {what:?} at {at:#x}"),
                    None => "runs on".into(),
                };
                let name = self.name(fiber);
                let rest = format_args!(
                    "\"dur\":{long},\"cat\":\"fiber\",\"name\":\"{name}\",\
                     \"args\":{{\"fiber\":\"{fiber:x}\",\"then\":\"{stop}\"}}"
                );
                self.put(since_ns, worker, "X", rest);
            }
            None => {}
        }
    }

    fn instant(&mut self, record: Record, name: fmt::Arguments<'_>) {
        let rest = format_args!("\"s\":\"t\",\"cat\":\"worker\",\"name\":\"{name}\"");
        self.put(record.time_ns, record.worker, "i", rest);
    }

    /// An arrow from where a fiber was made runnable to where it runs.
    fn flow(&mut self, from: Record, to: Record) {
        self.flows += 1;
        let id = self.flows;
        let rest = format_args!("\"id\":{id},\"cat\":\"wake\",\"name\":\"wake\"");
        self.put(from.time_ns, from.worker, "s", rest);
        let rest = format_args!("\"id\":{id},\"cat\":\"wake\",\"name\":\"wake\",\"bp\":\"e\"");
        self.put(to.time_ns, to.worker, "f", rest);
    }

    fn lone_wake(&mut self, record: Record) {
        let name = self.name(record.value);
        self.instant(record, format_args!("wakes {name}"));
    }

    fn add(&mut self, record: Record) {
        let Record { time_ns, worker, event, value } = record;
        match event {
            Event::Run => {
                self.close(worker, time_ns, None);
                self.open.insert(worker, Open::Run { fiber: value, since_ns: time_ns });
                match self.ready.remove(&value) {
                    Some((from, true)) => self.flow(from, record),
                    Some((from, false)) => self.lone_wake(from),
                    None => {}
                }
            }
            Event::Sleep => {
                self.close(worker, time_ns, None);
                self.open.insert(worker, Open::Sleep { since_ns: time_ns });
            }
            Event::Stop => self.close(worker, time_ns, Some(Stop::of(value))),
            Event::Wake => self.close(worker, time_ns, None),
            Event::Steal => self.instant(record, format_args!("steals {value}")),
            Event::Ready => {
                let is_in_slice = matches!(self.open.get(&worker), Some(Open::Run { .. }));
                self.ready.insert(value, (record, is_in_slice));
            }
        }
    }
}

impl Trace {
    /// The trace in the Chrome trace event format, which Perfetto, chrome://tracing and speedscope open.
    pub fn to_json(&self) -> String {
        let mut lines = Lines {
            trace: self,
            lines: Vec::new(),
            open: BTreeMap::new(),
            ready: BTreeMap::new(),
            flows: 0,
        };
        self.records.iter().for_each(|record| lines.add(*record));
        for worker in lines.open.keys().copied().collect::<Vec<_>>() {
            lines.close(worker, self.taken_ns, None);
        }
        for (from, _) in core::mem::take(&mut lines.ready).into_values() {
            lines.lone_wake(from);
        }
        let mut events = lines.lines;
        // Stable: a slice comes before what happens at its very beginning.
        events.sort_by_key(|(at_ns, line)| (*at_ns, !line.starts_with("{\"ph\":\"X\"")));
        let mut workers: Vec<usize> = self.records.iter().map(|record| record.worker).collect();
        workers.sort_unstable();
        workers.dedup();
        let mut json = format!(
            "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n\
             {{\"ph\":\"M\",\"pid\":{PROCESS},\"name\":\"process_name\",\
             \"args\":{{\"name\":\"fibers\"}}}}"
        );
        for worker in workers {
            let thread = thread_of(worker);
            let name = ("thread_name", format!("\"name\":\"worker {worker}\""));
            for (what, argument) in
                [name, ("thread_sort_index", format!("\"sort_index\":{thread}"))]
            {
                // Writing to a string does not fail.
                let _ = write!(
                    json,
                    ",\n{{\"ph\":\"M\",\"pid\":{PROCESS},\"tid\":{thread},\"name\":\"{what}\",\
                     \"args\":{{{argument}}}}}"
                );
            }
        }
        for (_, line) in events {
            json.push_str(",\n");
            json.push_str(&line);
        }
        json.push_str("\n]}\n");
        json
    }
}
