//! A person at the serial line of a system in QEMU: types, and waits for what the system says.
//!
//! No clock is asked: what does not come is waited for until Bazel ends the test, whose log has all that came.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// What the shell shows when it waits for a line.
pub const PROMPT: &str = "\n\rcapos> ";

/// What came, and whether more can come.
#[derive(Default)]
struct Screen {
    bytes: Vec<u8>,
    is_closed: bool,
}

/// A system that runs, with somebody at its terminal.
pub struct Terminal {
    qemu: Child,
    keyboard: ChildStdin,
    screen: Arc<(Mutex<Screen>, Condvar)>,
    /// What was waited for and has come ends here.
    seen: usize,
}

impl Terminal {
    /// Boots what the run target named by `RUN` boots.
    pub fn boot(options: &[&str]) -> Terminal {
        let run = std::env::var("RUN").expect("the BUILD file names the run target");
        let printed = Command::new(run).arg("--print").args(options).output().expect("it runs");
        let command = String::from_utf8(printed.stdout).expect("a command line");
        assert!(printed.status.success(), "{command}");
        let mut qemu = Command::new("/bin/sh")
            .args(["-c", &format!("exec {command}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("QEMU starts");
        let keyboard = qemu.stdin.take().expect("it has an input");
        let mut output = qemu.stdout.take().expect("it has an output");
        let screen = Arc::new((Mutex::new(Screen::default()), Condvar::new()));
        let shown = Arc::clone(&screen);
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            loop {
                let count = output.read(&mut bytes).unwrap_or(0);
                let new = &bytes[..count];
                // Past the capture of tests: a test that hangs has a log.
                let _ = std::io::stdout().write_all(new);
                let mut screen = shown.0.lock().unwrap();
                screen.bytes.extend(new);
                screen.is_closed = count == 0;
                shown.1.notify_all();
                if count == 0 {
                    return;
                }
            }
        });
        Terminal { qemu, keyboard, screen, seen: 0 }
    }

    /// Types.
    pub fn keys(&mut self, keys: impl AsRef<[u8]>) {
        // QEMU takes Ctrl-A for itself, and two of them for one.
        let mut typed = Vec::new();
        for key in keys.as_ref() {
            typed.extend(std::iter::repeat_n(*key, if *key == 1 { 2 } else { 1 }));
        }
        self.keyboard.write_all(&typed).expect("the system runs");
        self.keyboard.flush().expect("the system runs");
    }

    /// Waits until a text has come, after all that was waited for before; what came until its end.
    #[track_caller]
    pub fn expect(&mut self, text: &str) -> String {
        let mut screen = self.screen.0.lock().unwrap();
        loop {
            let new = &screen.bytes[self.seen..];
            if let Some(at) = new.windows(text.len()).position(|part| part == text.as_bytes()) {
                let end = at + text.len();
                let came = String::from_utf8_lossy(&new[..end]).into_owned();
                self.seen += end;
                return came;
            }
            let rest = String::from_utf8_lossy(new).into_owned();
            assert!(
                !screen.is_closed,
                "the system ended before it said {text:?}; it said {rest:?}"
            );
            screen = self.screen.1.wait(screen).unwrap();
        }
    }

    /// Types a line and waits for each of these, and for the next prompt at last; what came since the line.
    #[track_caller]
    pub fn line(&mut self, line: &str, texts: &[&str]) -> String {
        self.keys(format!("{line}\r"));
        let mut came: String = texts.iter().map(|text| self.expect(text)).collect();
        came += &self.expect(PROMPT);
        came
    }

    /// Waits until the machine has ended; how it did, and all it said.
    pub fn end(&mut self) -> (Option<abi_report::Exit>, String) {
        let status = self.qemu.wait().expect("it was started");
        let mut screen = self.screen.0.lock().unwrap();
        while !screen.is_closed {
            screen = self.screen.1.wait(screen).unwrap();
        }
        let said = String::from_utf8_lossy(&screen.bytes).into_owned();
        (status.code().and_then(abi_report::Exit::from_qemu_status), said)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A test that failed leaves it running.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}
