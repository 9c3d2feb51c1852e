//! The lines that were entered, the last ones of them.

use crate::line::Line;

/// How many lines are kept.
pub const LINES: usize = 16;

/// Entered lines, in a ring, and where a person who looks through them is.
#[derive(Debug)]
pub struct History {
    lines: [Line; LINES],
    /// How many were ever kept; the last [`LINES`] are there.
    kept: usize,
    /// How many steps back the line is that is looked at; 0 is the one being written.
    back: usize,
    /// The line being written, while another is looked at.
    draft: Line,
}

impl Default for History {
    fn default() -> Self {
        Self::new()
    }
}

impl History {
    /// Nothing entered yet.
    pub const fn new() -> Self {
        Self { lines: [const { Line::new() }; LINES], kept: 0, back: 0, draft: Line::new() }
    }

    /// The line `back` steps ago, from 1 on.
    fn at(&self, back: usize) -> Option<&Line> {
        let index = self.kept.checked_sub(back)?;
        if back == 0 || back > LINES {
            return None;
        }
        self.lines.get(index % LINES)
    }

    /// Keeps a line that was entered; not blank ones, and not the one before once more. Looking through starts anew.
    pub fn keep(&mut self, line: &Line) {
        self.back = 0;
        let text = line.text();
        if text.trim().is_empty() || self.at(1).is_some_and(|last| last.text() == text) {
            return;
        }
        if let Some(place) = self.lines.get_mut(self.kept % LINES) {
            place.set(text);
        }
        self.kept += 1;
    }

    /// `line` becomes the one before; whether there is one.
    pub fn older(&mut self, line: &mut Line) -> bool {
        let Some(older) = self.at(self.back + 1).copied() else { return false };
        if self.back == 0 {
            self.draft = *line;
        }
        self.back += 1;
        line.set(older.text());
        true
    }

    /// `line` becomes the one after, in the end the one that was being written.
    pub fn newer(&mut self, line: &mut Line) -> bool {
        if self.back == 0 {
            return false;
        }
        self.back -= 1;
        let newer = self.at(self.back).unwrap_or(&self.draft);
        line.set(newer.text());
        true
    }

    /// Looking through starts anew: the line at hand is being written.
    pub fn leave(&mut self) {
        self.back = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::{String, ToString};

    fn line(text: &str) -> Line {
        let mut line = Line::new();
        line.set(text);
        line
    }

    fn older(history: &mut History, at: &mut Line) -> Option<String> {
        history.older(at).then(|| at.text().to_string())
    }

    #[test]
    fn lines_come_back_in_order_and_the_draft_last() {
        let mut history = History::new();
        for text in ["one", "", "two", "two", "  ", "three"] {
            history.keep(&line(text));
        }
        let mut at = line("draft");
        for expected in ["three", "two", "one"] {
            assert_eq!(older(&mut history, &mut at).as_deref(), Some(expected));
        }
        assert_eq!(older(&mut history, &mut at), None);
        for expected in ["two", "three", "draft"] {
            assert!(history.newer(&mut at));
            assert_eq!(at.text(), expected);
        }
        assert!(!history.newer(&mut at));
    }

    #[test]
    fn as_many_are_kept_as_there_is_room() {
        let mut history = History::new();
        (0..100).for_each(|n| history.keep(&line(&n.to_string())));
        let mut at = Line::new();
        let found = core::iter::from_fn(|| older(&mut history, &mut at)).count();
        assert_eq!((found, at.text()), (LINES, "84"));
    }
}
