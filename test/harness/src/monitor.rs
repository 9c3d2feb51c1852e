//! Questions to a running emulator: QEMU's machine protocol (QMP) on its standard input and output.
//!
//! Nothing is asked of an emulator whose guest ends by itself. All answers together have to come
//! within a bound: an emulator that is stuck itself is not waited for.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Bound on all answers of one emulator: well within the fifth of a test's time that is left when
/// its guard strikes, and a thousand times what an idle host needs.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// The emulator as somebody who answers.
pub struct Monitor {
    ask: ChildStdin,
    lines: Receiver<String>,
    is_open: bool,
    /// When the last answer has to be there; set by the first question.
    until: Option<Instant>,
}

impl Monitor {
    /// Takes over both ends of the emulator. What it says is read from here on, asked or not.
    pub fn new(ask: ChildStdin, answers: ChildStdout) -> Monitor {
        let (send, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(answers).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Monitor { ask, lines, is_open: false, until: None }
    }

    /// Executes a command and returns what it returns.
    pub fn execute(&mut self, command: &str, arguments: &Value) -> Result<Value, String> {
        if !self.is_open {
            self.open()?;
        }
        // The bound begins with the first question, however long ago the talk was opened.
        self.until.get_or_insert_with(|| Instant::now() + ANSWERS_WITHIN);
        self.converse(command, arguments)
    }

    /// Opens the talk: from here on the emulator tells events.
    pub fn open(&mut self) -> Result<(), String> {
        self.is_open = true;
        // The protocol begins with this (QEMU, docs/interop/qmp-spec.rst).
        self.converse("qmp_capabilities", &json!({})).map(|_| ())
    }

    /// Why the emulator shut down, as it said; for one that has ended.
    pub fn shutdown_reason(self) -> Option<String> {
        // The last event before the emulator closes its end, which ends the lines.
        self.lines
            .iter()
            .filter_map(|line| serde_json::from_str::<Value>(&line).ok())
            .filter(|event| event["event"] == "SHUTDOWN")
            .filter_map(|event| event["data"]["reason"].as_str().map(str::to_owned))
            .last()
    }

    /// Executes a command of the monitor for people on behalf of a CPU and returns its text.
    pub fn human(&mut self, line: &str, cpu: u64) -> Result<String, String> {
        let arguments = json!({"command-line": line, "cpu-index": cpu});
        let answer = self.execute("human-monitor-command", &arguments)?;
        Ok(answer.as_str().unwrap_or_default().replace('\r', ""))
    }

    fn converse(&mut self, command: &str, arguments: &Value) -> Result<Value, String> {
        let question = json!({"execute": command, "arguments": arguments});
        writeln!(self.ask, "{question}")
            .and_then(|()| self.ask.flush())
            .map_err(|e| format!("QEMU takes no question ({command}): {e}"))?;
        loop {
            let left =
                self.until.map_or(ANSWERS_WITHIN, |t| t.saturating_duration_since(Instant::now()));
            let line = self.lines.recv_timeout(left).map_err(|e| {
                format!("QEMU does not answer {command} within {} s: {e}", ANSWERS_WITHIN.as_secs())
            })?;
            let Ok(mut answer) = serde_json::from_str::<Value>(&line) else { continue };
            // The greeting and events have neither.
            if let Some(result) = answer.get_mut("return") {
                return Ok(result.take());
            }
            if let Some(error) = answer.get("error") {
                let why = error["desc"].as_str().unwrap_or("for no reason it gives");
                return Err(format!("QEMU refuses {command}: {why}"));
            }
        }
    }
}
