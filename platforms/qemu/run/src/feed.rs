//! What is piped in, typed: a line each time the shell asks for one, and Ctrl-D at the end.
//!
//! A serial line has no end of input, and what comes before the system reads, or faster than it does, is lost. So
//! whoever types by program waits for the prompt, as a person would, and this does it for a pipe.

use std::io::{self, Read, Write};
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// What the shell shows when it waits for a line: its prompt at the beginning of a row.
const ASKS: &[u8] = b"\n\rcapos> ";

/// Ctrl-D.
const END_OF_INPUT: u8 = 4;
/// Ctrl-A, QEMU's own: it is not for the system, so nobody waits for the system.
const FOR_QEMU: u8 = 1;

/// Runs a command whose standard input is what the shell asks for of ours; how it ended.
pub fn run(mut command: Command) -> io::Result<ExitStatus> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (keyboard, screen) = (child.stdin.take(), child.stdout.take());
    let (asks, asked) = channel();
    let shown = screen.map(|screen| thread::spawn(move || show(screen, &asks)));
    // Ends with this process: it may wait for a line that never comes.
    if let Some(keyboard) = keyboard {
        thread::spawn(move || feed(io::stdin(), keyboard, &asked));
    }
    let ended = child.wait();
    if let Some(shown) = shown {
        // All that was written is shown before the line that says how it ended.
        let _shown = shown.join();
    }
    ended
}

/// Shows what comes, and says whenever the shell asks for a line.
fn show(mut screen: ChildStdout, asks: &Sender<()>) {
    let (mut bytes, mut scan, mut out) = ([0; 4096], Scan::default(), io::stdout());
    while let Ok(count @ 1..) = screen.read(&mut bytes) {
        let new = &bytes[..count];
        // Whoever looks at it may have had enough.
        let _shown = out.write_all(new).and_then(|()| out.flush());
        for _ in 0..scan.push(new) {
            let _asked = asks.send(());
        }
    }
}

/// Types what comes.
fn feed(mut from: impl Read, mut keyboard: ChildStdin, asked: &Receiver<()>) {
    let mut bytes = [0; 4096];
    loop {
        let count = from.read(&mut bytes).unwrap_or(0);
        let typed = if count == 0 { &[END_OF_INPUT][..] } else { &bytes[..count] };
        for line in typed.split_inclusive(|byte| *byte == b'\n') {
            // Nothing is asked for any more once the system has ended.
            if line[0] != FOR_QEMU && wait(asked).is_none() {
                return;
            }
            if keyboard.write_all(line).and_then(|()| keyboard.flush()).is_err() {
                return;
            }
        }
        if count == 0 {
            // The line stays open: its end would be noticed by QEMU, not by the system.
            let _forever = asked.iter().count();
            return;
        }
    }
}

/// Waits until a line is asked for; one is enough, however often it was.
fn wait(asked: &Receiver<()>) -> Option<()> {
    asked.recv().ok()?;
    while asked.try_recv().is_ok() {}
    Some(())
}

/// Finds what asks for a line, wherever it is cut.
#[derive(Default)]
struct Scan {
    matched: usize,
}

impl Scan {
    /// How often it ends in these bytes.
    fn push(&mut self, bytes: &[u8]) -> usize {
        let mut found = 0;
        for byte in bytes {
            if *byte != ASKS[self.matched] {
                // Only its first byte begins it.
                self.matched = 0;
            }
            if *byte == ASKS[self.matched] {
                self.matched += 1;
            }
            if self.matched == ASKS.len() {
                (found, self.matched) = (found + 1, 0);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_found_wherever_it_is_cut() {
        let text = b"up\n\n\rcapos> help\n\rcapos\n\rcapos> x \rcapos> ";
        for cut in 0..text.len() {
            let mut scan = Scan::default();
            assert_eq!(scan.push(&text[..cut]) + scan.push(&text[cut..]), 2, "at {cut}");
        }
    }
}
