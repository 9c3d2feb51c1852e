//! A person's lines, in turn with what programs write, read and come to.
//!
//! There are two ways to wait. At the prompt what is typed goes to the line editor, and what programs write in the
//! background is shown above the line. While a program has the foreground what is typed is the program's, as far as
//! it reads; the rest is kept, and is the line editor's in the end. Ctrl-C is the shell's in both.

use arrayvec::{ArrayString, ArrayVec};
use shell_edit::{Editor, Event, LINE_BYTES};

use crate::candidates::Words as Candidates;
use crate::commands::{self, Given};
use crate::jobs::{Job, Jobs, MOST_JOBS};
use crate::system::{Asked, Happening, Process, Program, Start, System};
use crate::text::{Ended, Sentence, sentence};
use crate::words::Words;

/// What the shell's line begins with; whoever drives the shell by program waits for it.
pub const PROMPT: &str = "capos> ";

/// Bytes typed ahead that are kept while a program has the foreground.
const AHEAD_BYTES: usize = 1024;

/// Programs that can be run by name.
pub const MOST_PROGRAMS: usize = 40;

/// Bytes of a line that a program in the background has not ended yet: longer ones are shown in pieces.
const BEHIND_BYTES: usize = 512;

const CTRL_C: u8 = 3;

/// The exit code of a program that was ended by Ctrl-C.
pub const INTERRUPTED: i64 = 130;
/// The exit code of a line that was not understood or could not be carried out.
pub const REFUSED: i64 = 1;

/// The largest exit code of a shell: those above are a runtime's own, and a supervisor takes them for a failure. For a
/// program's code outside of that the shell's is [`REFUSED`].
pub const MOST_CODE: i64 = 100;

const ONE_READ: &str =
    "another read of this program waits for what is typed: let that one complete first";
const GONE: &str = "the program is gone";

/// Rows that a screen may have: so many line feeds clear every one.
const ROWS: usize = 60;

/// A program's read that waits until something is typed while the program has the foreground.
#[derive(Clone, Copy, Debug)]
struct Reader {
    badge: u64,
    asked: Asked,
    /// For how many bytes.
    capacity: usize,
}

/// What a program in the background has written of a line that is not ended.
#[derive(Debug)]
struct Behind {
    badge: u64,
    bytes: ArrayVec<u8, BEHIND_BYTES>,
}

/// The shell.
pub struct Shell<'s> {
    pub(crate) system: &'s mut dyn System,
    pub(crate) programs: &'s [Program],
    pub(crate) jobs: Jobs,
    editor: Editor,
    ahead: ArrayVec<u8, AHEAD_BYTES>,
    /// One for each program that reads.
    readers: ArrayVec<Reader, MOST_JOBS>,
    /// The badge of the program that a person looks at.
    foreground: Option<u64>,
    behind: Behind,
    /// Whether the console is at the beginning of a row.
    is_row_new: bool,
    last_code: i64,
    ending: Option<i64>,
}

/// What came of waiting for a line.
enum Typed {
    /// A line, which the editor has.
    Line,
    Nothing,
    EndOfInput,
}

impl<'s> Shell<'s> {
    /// A shell on a machine, with the programs that can be run by name.
    pub const fn new(system: &'s mut dyn System, programs: &'s [Program]) -> Self {
        Self {
            system,
            programs,
            jobs: Jobs::new(),
            editor: Editor::new(PROMPT),
            ahead: ArrayVec::new_const(),
            readers: ArrayVec::new_const(),
            foreground: None,
            behind: Behind { badge: 0, bytes: ArrayVec::new_const() },
            is_row_new: true,
            last_code: 0,
            ending: None,
        }
    }

    /// Reads lines and carries them out until one ends the shell; its exit code.
    pub fn run(&mut self) -> i64 {
        self.say(format_args!("{}", commands::WELCOME));
        loop {
            let typed = self.read();
            self.end_behind();
            match typed {
                Typed::Line => {
                    // The editor's lines are no longer.
                    let line = ArrayString::<LINE_BYTES>::from(self.editor.text());
                    self.line(&line.unwrap_or_default());
                }
                Typed::Nothing => {}
                Typed::EndOfInput => self.ending = Some(self.last_code),
            }
            if let Some(code) = self.ending {
                return if (0..=MOST_CODE).contains(&code) { code } else { REFUSED };
            }
        }
    }

    /// Carries out one line.
    pub fn line(&mut self, line: &str) {
        let done = match Words::of(line) {
            Ok(words) if words.list().is_empty() => return,
            Ok(words) => self.command(&words.list(), words.is_background),
            Err(wrong) => Err(sentence(format_args!("{wrong}"))),
        };
        self.last_code = done.unwrap_or_else(|sentence| {
            self.say(format_args!("{sentence}"));
            REFUSED
        });
    }

    /// Carries out a command; its exit code, or what would have been right.
    pub(crate) fn command(&mut self, words: &[&str], is_background: bool) -> Result<i64, Sentence> {
        let Some((name, rest)) = words.split_first() else {
            return Err(sentence(format_args!("a command is missing: help lists them")));
        };
        if let Some(command) = commands::find(name) {
            if is_background && !command.goes_to_background {
                return Err(sentence(format_args!(
                    "{name} does not go to the background: leave the & away, it is for programs"
                )));
            }
            return (command.run)(self, &Given { words: rest, is_background });
        }
        if self.programs.iter().any(|program| program.name == *name) {
            return commands::run::program(self, &Given { words, is_background });
        }
        Err(sentence(format_args!("no command is called {name:.40}: help lists those there are")))
    }

    /// Writes a line.
    pub(crate) fn say(&mut self, line: core::fmt::Arguments<'_>) {
        // A console that takes nothing cannot be told about.
        let _said = self.system.write_fmt(format_args!("{line}\n"));
    }

    /// The exit code of the last line.
    pub(crate) const fn last_code(&self) -> i64 {
        self.last_code
    }

    /// No line is read after this one.
    pub(crate) fn end(&mut self, code: i64) {
        self.ending = Some(code);
    }

    /// Clears the screen, of which only its rows are known.
    pub(crate) fn clear(&mut self) {
        let _said = (0..ROWS).try_for_each(|_| self.system.write_str("\n"));
    }

    /// Starts a program; the number of its job.
    pub(crate) fn start(&mut self, start: Start<'_>) -> Result<u64, Sentence> {
        if !self.jobs.has_room() {
            return Err(sentence(format_args!(
                "{MOST_JOBS} programs run already: wait for one, or kill one"
            )));
        }
        let process = self.system.start(&start)?;
        let (number, given_up) = self.jobs.add(start.program, start.badge, process);
        if let Some(process) = given_up {
            self.system.forget(process);
        }
        Ok(number)
    }

    /// The badge of the next program.
    pub(crate) const fn next_badge(&self) -> u64 {
        self.jobs.next_number()
    }

    /// Gives a job the foreground until it has ended, and lists it no more; how it ended.
    pub(crate) fn attend(&mut self, number: u64) -> Result<i64, Sentence> {
        let badge = self.job(number)?.badge;
        self.foreground = Some(badge);
        self.feed();
        let ended = loop {
            match self.job(number)? {
                Job { ended: Some(ended), .. } => break *ended,
                Job { process, .. } => {
                    let process = *process;
                    if self.wait() {
                        self.say(format_args!("^C"));
                        self.ahead.clear();
                        self.system.kill(process, INTERRUPTED);
                    }
                }
            }
        };
        self.foreground = None;
        if !core::mem::replace(&mut self.is_row_new, true) {
            let _said = self.system.write_str("\n");
        }
        if let Some(job) = self.jobs.remove(number) {
            self.system.forget(job.process);
            self.say(format_args!("{}: {ended}", job.name));
        }
        Ok(ended.code)
    }

    /// The job with a number.
    pub(crate) fn job(&self, number: u64) -> Result<&Job, Sentence> {
        self.jobs.find(number).ok_or_else(|| {
            sentence(format_args!("there is no job {number}: jobs lists those there are"))
        })
    }

    /// Waits for one thing while a program has the foreground; whether it was Ctrl-C.
    fn wait(&mut self) -> bool {
        match self.system.next() {
            Happening::Typed(CTRL_C) => return true,
            Happening::Typed(byte) => {
                // What is typed beyond that is lost, as it is on every line without flow control.
                let _lost = self.ahead.try_push(byte);
                self.feed();
            }
            Happening::Wrote { bytes, .. } => {
                self.system.show(&bytes);
                self.is_row_new = bytes.last().is_none_or(|last| *last == b'\n');
            }
            Happening::Reads { badge, capacity, asked } => {
                self.reads(Reader { badge, asked, capacity });
                self.feed();
            }
            Happening::Ended(process, ended) => {
                self.ended(process, ended);
            }
        }
        false
    }

    /// A program reads: its call is kept until there is something for it.
    fn reads(&mut self, reader: Reader) {
        let is_second = self.readers.iter().any(|other| other.badge == reader.badge);
        if is_second || self.readers.try_push(reader).is_err() {
            self.system.answer(reader.asked, Err(ONE_READ));
        }
    }

    /// A process is gone, and what it asked for is let go of; whether it is one of the jobs.
    fn ended(&mut self, process: Process, ended: Ended) -> bool {
        let Some(badge) = self.jobs.end(process, ended).map(|job| job.badge) else { return false };
        if let Some(index) = self.readers.iter().position(|reader| reader.badge == badge) {
            self.system.answer(self.readers.remove(index).asked, Err(GONE));
        }
        true
    }

    /// Gives the program in the foreground what was typed, if it reads.
    fn feed(&mut self) {
        let is_foreground = |reader: &Reader| Some(reader.badge) == self.foreground;
        let Some(index) = self.readers.iter().position(is_foreground) else { return };
        if self.ahead.is_empty() {
            return;
        }
        let Reader { asked, capacity, .. } = self.readers.remove(index);
        let count = self.ahead.len().min(capacity);
        self.system.answer(asked, Ok(self.ahead.get(..count).unwrap_or_default()));
        self.ahead.drain(..count);
    }

    /// Says which jobs have ended.
    fn tell(&mut self) {
        while let Some(Job { number, name, ended: Some(ended), .. }) = self.jobs.tell() {
            let (number, name, ended): (_, _, Ended) = (*number, *name, *ended);
            self.say(format_args!("[{number}] {name}: {ended}"));
        }
    }

    /// Shows the lines that a program in the background has ended, and keeps what comes after them: its calls are
    /// shorter than its lines.
    fn wrote_behind(&mut self, badge: u64, bytes: &[u8]) {
        let ended = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let (lines, rest) = bytes.split_at_checked(ended).unwrap_or((bytes, &[]));
        let is_others = self.behind.badge != badge && !self.behind.bytes.is_empty();
        let is_long = lines.is_empty() && self.behind.bytes.remaining_capacity() < rest.len();
        if is_others || is_long || !lines.is_empty() {
            let _said = self.editor.hide(&mut self.system);
            if is_others || is_long {
                self.end_behind();
            }
            if !lines.is_empty() {
                self.system.show(&self.behind.bytes);
                self.behind.bytes.clear();
                self.system.show(lines);
            }
            let _said = self.editor.show(&mut self.system);
        }
        self.behind.badge = badge;
        // A call has fewer bytes than there is room for.
        let _fits = self.behind.bytes.try_extend_from_slice(rest);
    }

    /// Shows what there is of a line of a program in the background, and ends it.
    fn end_behind(&mut self) {
        if !self.behind.bytes.is_empty() {
            self.system.show(&self.behind.bytes);
            self.behind.bytes.clear();
            let _said = self.system.write_str("\n");
        }
    }

    /// Reads a line, and shows above it what happens meanwhile.
    fn read(&mut self) -> Typed {
        self.tell();
        let _said = self.editor.begin(&mut self.system);
        loop {
            let happening = match self.ahead.pop_at(0) {
                Some(byte) => Happening::Typed(byte),
                None => self.system.next(),
            };
            let byte = match happening {
                Happening::Typed(byte) => byte,
                Happening::Reads { badge, capacity, asked } => {
                    self.reads(Reader { badge, asked, capacity });
                    continue;
                }
                Happening::Wrote { badge, bytes } => {
                    self.wrote_behind(badge, &bytes);
                    continue;
                }
                Happening::Ended(process, ended) => {
                    if self.ended(process, ended) {
                        let _said = self.editor.hide(&mut self.system);
                        self.end_behind();
                        self.tell();
                        let _said = self.editor.show(&mut self.system);
                    }
                    continue;
                }
            };
            let candidates = Candidates { programs: self.programs, jobs: &self.jobs };
            match self.editor.push(byte, &candidates, &mut self.system) {
                Ok(Event::Line) => return Typed::Line,
                Ok(Event::Interrupted) => return Typed::Nothing,
                Ok(Event::EndOfInput) => return Typed::EndOfInput,
                Ok(Event::Clear) => {
                    let _said = self.editor.hide(&mut self.system);
                    self.clear();
                    let _said = self.editor.show(&mut self.system);
                }
                // A console that takes nothing cannot be told about.
                Ok(Event::None) | Err(_) => {}
            }
        }
    }
}
