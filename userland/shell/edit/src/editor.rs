//! What each key does to the line, and how the console comes to show it.
//!
//! The row shows the prompt and then the line, or of a long one the part that ends at the cursor. It is painted from
//! its beginning, over what is there; a character at the end of the line is only added.

use core::fmt::{self, Write};

use crate::history::History;
use crate::keys::{Key, Keys};
use crate::line::Line;

/// Columns of a row, the last of which stays free: a cursor behind it is in another place on each terminal.
pub const COLUMNS: usize = 80;

/// What a key led to, for whoever reads lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Nothing to do.
    None,
    /// The line is entered: [`Editor::text`], until [`Editor::begin`].
    Line,
    /// Ctrl-C: the line is dropped.
    Interrupted,
    /// Ctrl-D in an empty line: there is no more input.
    EndOfInput,
    /// Ctrl-L: the screen is to be cleared, then [`Editor::show`].
    Clear,
}

/// What can stand at the end of a line that was begun.
pub trait Candidates {
    /// Calls `each` with every word that may stand where the last word of `before` is, which it need not begin with.
    fn each(&self, before: &str, each: &mut dyn FnMut(&str));
}

/// No candidates.
impl Candidates for () {
    fn each(&self, _: &str, _: &mut dyn FnMut(&str)) {}
}

/// A line being written, and what the console shows of it.
#[derive(Debug)]
pub struct Editor {
    prompt: &'static str,
    keys: Keys,
    line: Line,
    history: History,
    /// Cells of the row that may not be blank, if the row is shown.
    painted: usize,
    is_shown: bool,
}

impl Editor {
    /// An editor whose rows begin with `prompt`, of less than a row.
    pub const fn new(prompt: &'static str) -> Self {
        Self {
            prompt,
            keys: Keys::new(),
            line: Line::new(),
            history: History::new(),
            painted: 0,
            is_shown: false,
        }
    }

    /// The line as it is.
    pub fn text(&self) -> &str {
        self.line.text()
    }

    /// Begins a new line and shows the prompt, at the beginning of a row.
    pub fn begin(&mut self, out: &mut dyn Write) -> fmt::Result {
        self.line.clear();
        self.history.leave();
        self.is_shown = false;
        self.show(out)
    }

    /// Makes the row blank, so that something else can be written there.
    pub fn hide(&mut self, out: &mut dyn Write) -> fmt::Result {
        if !core::mem::take(&mut self.is_shown) {
            return Ok(());
        }
        write!(out, "\r{:1$}\r", "", self.painted)
    }

    /// Shows prompt and line in the row the cursor is in, which is blank.
    pub fn show(&mut self, out: &mut dyn Write) -> fmt::Result {
        if !self.is_shown {
            self.painted = 0;
            self.is_shown = true;
        }
        self.paint(out)
    }

    /// A byte that was typed.
    pub fn push(
        &mut self,
        byte: u8,
        candidates: &dyn Candidates,
        out: &mut dyn Write,
    ) -> Result<Event, fmt::Error> {
        match self.keys.push(byte) {
            Some(key) => self.key(key, candidates, out),
            None => Ok(Event::None),
        }
    }

    fn key(
        &mut self,
        key: Key,
        candidates: &dyn Candidates,
        out: &mut dyn Write,
    ) -> Result<Event, fmt::Error> {
        let line = &mut self.line;
        match key {
            Key::Char(character) => return self.insert(character, out).map(|()| Event::None),
            Key::Enter => {
                self.history.keep(line);
                return self.leave(out, "\n", Event::Line);
            }
            Key::Ctrl('C') => return self.leave(out, "^C\n", Event::Interrupted),
            Key::Ctrl('D') if line.text().is_empty() => {
                return self.leave(out, "\n", Event::EndOfInput);
            }
            Key::Ctrl('L') => return Ok(Event::Clear),
            Key::Tab => return self.complete(candidates, out).map(|()| Event::None),
            Key::Ctrl('D') | Key::Delete => {
                line.delete();
            }
            Key::Backspace | Key::Ctrl('H') => {
                line.backspace();
            }
            Key::Ctrl('W') => {
                line.delete_word();
            }
            Key::Ctrl('U') => {
                line.delete_to_start();
            }
            Key::Ctrl('K') => {
                line.delete_to_end();
            }
            Key::Left | Key::Ctrl('B') => {
                line.left();
            }
            Key::Right | Key::Ctrl('F') => {
                line.right();
            }
            Key::Home | Key::Ctrl('A') => line.home(),
            Key::End | Key::Ctrl('E') => line.end(),
            Key::Up | Key::Ctrl('P') => {
                self.history.older(line);
            }
            Key::Down | Key::Ctrl('N') => {
                self.history.newer(line);
            }
            Key::Ctrl(_) => return Ok(Event::None),
        }
        self.paint(out)?;
        Ok(Event::None)
    }

    /// Ends the row behind the whole line.
    fn leave(&mut self, out: &mut dyn Write, end: &str, event: Event) -> Result<Event, fmt::Error> {
        if !self.line.after().is_empty() || self.cells() > self.room() {
            self.line.end();
            self.paint(out)?;
        }
        self.is_shown = false;
        out.write_str(end)?;
        if event != Event::Line {
            self.line.clear();
        }
        Ok(event)
    }

    fn insert(&mut self, character: char, out: &mut dyn Write) -> fmt::Result {
        let is_at_end = self.line.after().is_empty();
        if !self.line.insert(character.encode_utf8(&mut [0; 4])) {
            return Ok(());
        }
        if !is_at_end || self.cells() > self.room() || !self.is_shown {
            return self.paint(out);
        }
        self.painted = self.painted.max(self.prompt_cells() + self.cells());
        out.write_char(cell(character))
    }

    /// Cells of the prompt.
    fn prompt_cells(&self) -> usize {
        self.prompt.chars().count()
    }

    /// Cells for the line: `^C` fits behind it, and the last column stays free.
    fn room(&self) -> usize {
        COLUMNS.saturating_sub(3 + self.prompt_cells())
    }

    /// Cells of the whole line.
    fn cells(&self) -> usize {
        self.line.text().chars().count()
    }

    /// Paints the row over what is there, and leaves the cursor where it belongs.
    fn paint(&mut self, out: &mut dyn Write) -> fmt::Result {
        let room = self.room();
        let before = self.line.before().chars().count();
        // The part that is shown ends at the cursor if there is more before it than fits.
        let first = before.saturating_sub(room);
        let seen = || self.line.text().chars().skip(first).take(room).map(cell);
        let cells = self.prompt_cells() + seen().count();
        write!(out, "\r{}", self.prompt)?;
        seen().try_for_each(|cell| out.write_char(cell))?;
        let blanks = self.painted.saturating_sub(cells);
        write!(out, "{:blanks$}", "")?;
        if blanks > 0 || !self.line.after().is_empty() {
            write!(out, "\r{}", self.prompt)?;
            seen().take(before - first).try_for_each(|cell| out.write_char(cell))?;
        }
        self.painted = cells;
        Ok(())
    }

    /// Completes the word before the cursor as far as all candidates agree, or lists them.
    fn complete(&mut self, candidates: &dyn Candidates, out: &mut dyn Write) -> fmt::Result {
        let before = self.line;
        let before = before.before();
        let word = before.rsplit(' ').next().unwrap_or_default();
        let mut common = Line::new();
        let mut found = 0;
        candidates.each(before, &mut |candidate| {
            let Some(rest) = candidate.strip_prefix(word) else { return };
            let agrees = if found == 0 { rest } else { shared(common.text(), rest) };
            let agrees = agrees.len();
            common.set(rest.get(..agrees).unwrap_or_default());
            found += 1;
        });
        if found == 0 {
            return Ok(());
        }
        if found == 1 || !common.text().is_empty() {
            self.line.insert(common.text());
            if found == 1 && !self.line.after().starts_with(' ') {
                self.line.insert(" ");
            }
            return self.paint(out);
        }
        self.hide(out)?;
        candidates.each(before, &mut |candidate| {
            if candidate.starts_with(word) {
                let _shown_by_a_console_or_not = write!(out, "{candidate}  ");
            }
        });
        out.write_str("\n")?;
        self.show(out)
    }
}

/// The beginning that two texts share.
fn shared<'t>(one: &'t str, other: &str) -> &'t str {
    let pairs = one.char_indices().zip(other.chars());
    let end = pairs.take_while(|((_, a), b)| a == b).map(|((at, a), _)| at + a.len_utf8()).last();
    one.get(..end.unwrap_or(0)).unwrap_or_default()
}

/// What is shown for a character: itself if every terminal gives it one cell, else a question mark, so that the
/// cursor is where the editor thinks it is.
pub fn cell(character: char) -> char {
    match character {
        ' '..='~'
        | '\u{a1}'..='\u{ac}'
        | '\u{ae}'..='\u{2ff}'
        | '\u{370}'..='\u{377}'
        | '\u{384}'..='\u{482}'
        | '\u{48a}'..='\u{52f}'
        | '\u{1e00}'..='\u{1eff}'
        | '\u{2010}'..='\u{2027}'
        | '\u{2030}'..='\u{205e}'
        | '\u{20a0}'..='\u{20c0}'
        | '\u{2200}'..='\u{22ff}'
        | '\u{2500}'..='\u{259f}' => character,
        _ => '?',
    }
}
