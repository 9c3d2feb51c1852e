//! A run as a timeline, in the format of Chrome's trace viewer.

use serde_json::{Value, json};

/// What ran where.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// CPU, thread, from, to.
    spans: Vec<(usize, u32, u64, u64)>,
}

impl Trace {
    pub(crate) fn span(&mut self, cpu: usize, slot: u32, from_ns: u64, to_ns: u64) {
        if to_ns > from_ns {
            self.spans.push((cpu, slot, from_ns, to_ns));
        }
    }

    /// Spans that have ended: CPU, thread, from and to in ns.
    pub fn spans(&self) -> &[(usize, u32, u64, u64)] {
        &self.spans
    }

    /// The timeline as JSON; a row is a CPU.
    pub fn to_json(&self, title: &str) -> Value {
        let us = |ns: u64| ns as f64 / 1000.0;
        let mut events = vec![json!({
            "name": "process_name", "ph": "M", "pid": 0, "args": {"name": title},
        })];
        let cpus = self.spans.iter().map(|s| s.0 + 1).max().unwrap_or(0);
        events.extend((0..cpus).map(|cpu| {
            json!({
                "name": "thread_name", "ph": "M", "pid": 0, "tid": cpu,
                "args": {"name": format!("CPU {cpu}")},
            })
        }));
        events.extend(self.spans.iter().map(|&(cpu, slot, from_ns, to_ns)| {
            json!({
                "name": format!("thread {slot}"), "cat": "run", "ph": "X", "pid": 0,
                "tid": cpu, "ts": us(from_ns), "dur": us(to_ns - from_ns),
            })
        }));
        json!({ "traceEvents": events, "displayTimeUnit": "ms" })
    }
}
