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
    /// When the last answer has to be there; set by the first question, which opens the talk.
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
        Monitor { ask, lines, until: None }
    }

    /// Executes a command and returns what it returns.
    pub fn execute(&mut self, command: &str, arguments: &Value) -> Result<Value, String> {
        if self.until.is_none() {
            self.until = Some(Instant::now() + ANSWERS_WITHIN);
            // The protocol begins with this (QEMU, docs/interop/qmp-spec.rst).
            self.converse("qmp_capabilities", &json!({}))?;
        }
        self.converse(command, arguments)
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
