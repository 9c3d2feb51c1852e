//! The editor beside a slow one: whatever bytes come in, a screen that shows what the editor wrote shows the line, with
//! the cursor in its place.

use shell_edit::editor::{COLUMNS, cell};
use shell_edit::history::LINES;
use shell_edit::{Candidates, Editor, Event, Key, Keys, LINE_BYTES};
use test_property::prelude::*;

const PROMPT: &str = "capos> ";

/// A screen that knows text, `\r` and `\n`; the editor says nothing else.
#[derive(Default)]
struct Screen {
    rows: Vec<Vec<char>>,
    row: Vec<char>,
    column: usize,
}

impl std::fmt::Write for Screen {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for character in text.chars() {
            match character {
                '\r' => self.column = 0,
                '\n' => {
                    self.rows.push(std::mem::take(&mut self.row));
                    self.column = 0;
                }
                _ => {
                    assert_eq!(cell(character), character, "one cell on every terminal");
                    self.row.resize(self.row.len().max(self.column + 1), ' ');
                    self.row[self.column] = character;
                    self.column += 1;
                    assert!(self.column < COLUMNS, "the last column stays free");
                }
            }
        }
        Ok(())
    }
}

fn text(row: &[char]) -> String {
    row.iter().collect::<String>().trim_end().to_owned()
}

/// An editor without any cleverness.
#[derive(Default)]
struct Slow {
    line: Vec<char>,
    cursor: usize,
    history: Vec<Vec<char>>,
    /// Where in the history, counted from the end, and what was being written.
    back: usize,
    draft: Vec<char>,
}

impl Slow {
    fn insert(&mut self, word: &str) {
        for character in word.chars() {
            let bytes: usize = self.line.iter().map(|c| c.len_utf8()).sum();
            if bytes + character.len_utf8() > LINE_BYTES {
                return;
            }
            self.line.insert(self.cursor, character);
            self.cursor += 1;
        }
    }

    fn set(&mut self, line: Vec<char>) {
        self.cursor = line.len();
        self.line = line;
    }

    fn word_start(&self) -> usize {
        let mut at = self.cursor;
        while at > 0 && self.line[at - 1] == ' ' {
            at -= 1;
        }
        while at > 0 && self.line[at - 1] != ' ' {
            at -= 1;
        }
        at
    }

    fn complete(&mut self, words: &[&str]) {
        let before: String = self.line[..self.cursor].iter().collect();
        let word = before.rsplit(' ').next().unwrap();
        let fitting: Vec<&&str> = words.iter().filter(|w| w.starts_with(word)).collect();
        let Some(first) = fitting.first() else { return };
        if fitting.len() == 1 {
            self.insert(&first[word.len()..]);
            if self.line.get(self.cursor) != Some(&' ') {
                self.insert(" ");
            }
            return;
        }
        let mut end = first.len();
        while !fitting.iter().all(|w| w.starts_with(&first[..end])) {
            end -= 1;
        }
        self.insert(&first[word.len()..end]);
    }

    fn key(&mut self, key: Key, words: &[&str]) -> Event {
        match key {
            Key::Char(character) => self.insert(&character.to_string()),
            Key::Tab => self.complete(words),
            Key::Ctrl('C') => {
                self.set(Vec::new());
                return Event::Interrupted;
            }
            Key::Ctrl('D') if self.line.is_empty() => return Event::EndOfInput,
            Key::Ctrl('L') => return Event::Clear,
            Key::Enter => return Event::Line,
            Key::Delete | Key::Ctrl('D') if self.cursor < self.line.len() => {
                self.line.remove(self.cursor);
            }
            Key::Backspace | Key::Ctrl('H') if self.cursor > 0 => {
                self.cursor -= 1;
                self.line.remove(self.cursor);
            }
            Key::Ctrl('W') => {
                let start = self.word_start();
                self.line.drain(start..self.cursor);
                self.cursor = start;
            }
            Key::Ctrl('U') => {
                self.line.drain(..self.cursor);
                self.cursor = 0;
            }
            Key::Ctrl('K') => self.line.truncate(self.cursor),
            Key::Left | Key::Ctrl('B') => self.cursor = self.cursor.saturating_sub(1),
            Key::Right | Key::Ctrl('F') => self.cursor = (self.cursor + 1).min(self.line.len()),
            Key::Home | Key::Ctrl('A') => self.cursor = 0,
            Key::End | Key::Ctrl('E') => self.cursor = self.line.len(),
            Key::Up | Key::Ctrl('P') if self.back < self.history.len().min(LINES) => {
                if self.back == 0 {
                    self.draft = self.line.clone();
                }
                self.back += 1;
                self.set(self.history[self.history.len() - self.back].clone());
            }
            Key::Down | Key::Ctrl('N') if self.back > 0 => {
                self.back -= 1;
                let line = match self.back {
                    0 => self.draft.clone(),
                    back => self.history[self.history.len() - back].clone(),
                };
                self.set(line);
            }
            _ => {}
        }
        Event::None
    }

    fn begin(&mut self, was_entered: bool) {
        let line = std::mem::take(&mut self.line);
        if was_entered
            && !line.iter().all(|c| c.is_whitespace())
            && self.history.last() != Some(&line)
        {
            self.history.push(line);
        }
        (self.cursor, self.back) = (0, 0);
    }

    /// What the row shows, and where its cursor is.
    fn row(&self) -> (String, usize) {
        let room = COLUMNS - 3 - PROMPT.len();
        let first = self.cursor.saturating_sub(room);
        let seen: String = self.line[first..].iter().take(room).map(|c| cell(*c)).collect();
        ((PROMPT.to_owned() + &seen).trim_end().to_owned(), PROMPT.len() + self.cursor - first)
    }
}

const WORDS: [&str; 7] = ["help", "hello", "run", "réseau", "réserve", "cpus", "clear"];

struct Words;

impl Candidates for Words {
    fn each(&self, _: &str, each: &mut dyn FnMut(&str)) {
        WORDS.iter().for_each(|word| each(word));
    }
}

/// Types bytes into both and compares after each.
fn compare(bytes: &[u8]) -> Result<(), TestCaseError> {
    let (mut editor, mut slow) = (Editor::new(PROMPT), Slow::default());
    let (mut screen, mut keys) = (Screen::default(), Keys::new());
    editor.begin(&mut screen).unwrap();
    for byte in bytes {
        let event = editor.push(*byte, &Words, &mut screen).unwrap();
        let expected = keys.push(*byte).map_or(Event::None, |key| slow.key(key, &WORDS));
        prop_assert_eq!(event, expected);
        let line: String = slow.line.iter().collect();
        prop_assert_eq!(editor.text(), &line);
        match event {
            Event::None => {}
            Event::Clear => {
                screen = Screen::default();
                editor.hide(&mut screen).unwrap();
                editor.show(&mut screen).unwrap();
            }
            Event::Line | Event::Interrupted | Event::EndOfInput => {
                prop_assert!(screen.row.is_empty() && screen.column == 0);
                slow.begin(event == Event::Line);
                editor.begin(&mut screen).unwrap();
            }
        }
        let (row, column) = slow.row();
        prop_assert_eq!(text(&screen.row), row);
        prop_assert_eq!(screen.column, column);
        // Something else is written in between and nothing of it stays in the row.
        if byte % 7 == 0 {
            editor.hide(&mut screen).unwrap();
            prop_assert_eq!((text(&screen.row), screen.column), (String::new(), 0));
            editor.show(&mut screen).unwrap();
            prop_assert_eq!((text(&screen.row), screen.column), slow.row());
        }
    }
    Ok(())
}

/// Keys that move and take away.
const KEYS: [&[u8]; 16] = [
    b"\x1b[A", b"\x1b[B", b"\x1b[C", b"\x1b[D", b"\x1b[H", b"\x1b[F", b"\x1b[3~", b"\x7f", b"\x01",
    b"\x05", b"\x0b", b"\x15", b"\x17", b"\x0c", b"\x03", b"\x04",
];

/// What a person types, mixed with what a line may bring.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => "[a-zA-Z0-9 '&é€語🦀\u{301}]{1,12}".prop_map(String::into_bytes),
        4 => proptest::sample::select(KEYS.to_vec()).prop_map(<[u8]>::to_vec),
        2 => Just(b"\r".to_vec()),
        2 => prop_oneof![Just("h\t"), Just("r\t"), Just("ré\t"), Just("\t"), Just("cp\t")]
            .prop_map(|text| text.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 1..6),
        1 => Just(vec![b'x'; 90]),
    ]
}

use test_property::inner as proptest;

test_property::proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_screen_shows_the_line(pieces in proptest::collection::vec(piece(), 0..40)) {
        compare(&pieces.concat())?;
    }

    #[test]
    fn whatever_comes_in_a_screen_shows_the_line(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        compare(&bytes)?;
    }
}

#[test]
fn a_line_is_bounded_and_shown_as_long_as_it_is() {
    let mut bytes = vec![b'a'; 2 * LINE_BYTES];
    bytes.extend("€".repeat(3).as_bytes());
    bytes.extend(b"\x01b\x7f\x05");
    compare(&bytes).unwrap();
}

#[test]
fn candidates_that_disagree_are_listed_above_the_line() {
    let (mut editor, mut screen) = (Editor::new(PROMPT), Screen::default());
    editor.begin(&mut screen).unwrap();
    for byte in b"hel\t" {
        editor.push(*byte, &Words, &mut screen).unwrap();
    }
    assert_eq!(text(&screen.rows[0]), "help  hello");
    assert_eq!(text(&screen.row), "capos> hel");
}
