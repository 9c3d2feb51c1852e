//! One line of text, of bounded length, with a cursor between two of its characters.

/// The longest line, in bytes: what fits the start page of a program beside a header.
pub const LINE_BYTES: usize = 512;

/// A line and the cursor in it.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    bytes: [u8; LINE_BYTES],
    length: usize,
    /// Always at the border of a character.
    cursor: usize,
}

impl Default for Line {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Line {
    fn eq(&self, other: &Self) -> bool {
        (self.text(), self.cursor) == (other.text(), other.cursor)
    }
}

impl Eq for Line {}

impl Line {
    /// An empty line.
    pub const fn new() -> Self {
        Self { bytes: [0; LINE_BYTES], length: 0, cursor: 0 }
    }

    /// The whole line.
    pub fn text(&self) -> &str {
        let bytes = self.bytes.get(..self.length).unwrap_or_default();
        core::str::from_utf8(bytes).unwrap_or_default()
    }

    /// What is before the cursor.
    pub fn before(&self) -> &str {
        self.text().get(..self.cursor).unwrap_or_default()
    }

    /// What is at the cursor and after it.
    pub fn after(&self) -> &str {
        self.text().get(self.cursor..).unwrap_or_default()
    }

    /// Nothing is left.
    pub fn clear(&mut self) {
        (self.length, self.cursor) = (0, 0);
    }

    /// Becomes `text`, as much of it as fits, with the cursor at its end.
    pub fn set(&mut self, text: &str) {
        self.clear();
        self.insert(text);
    }

    /// Puts text at the cursor, all of it or, if that does not fit, whole characters of it; whether all went in.
    pub fn insert(&mut self, text: &str) -> bool {
        let mut fits = text.len().min(LINE_BYTES - self.length);
        while !text.is_char_boundary(fits) {
            fits -= 1;
        }
        self.bytes.copy_within(self.cursor..self.length, self.cursor + fits);
        let place = self.bytes.get_mut(self.cursor..self.cursor + fits).unwrap_or_default();
        place.iter_mut().zip(text.bytes()).for_each(|(to, byte)| *to = byte);
        self.length += fits;
        self.cursor += fits;
        fits == text.len()
    }

    /// Takes away from `from`, a border of characters before the cursor, to the cursor.
    fn remove_back_to(&mut self, from: usize) -> bool {
        let removed = self.cursor - from;
        self.bytes.copy_within(self.cursor..self.length, from);
        self.length -= removed;
        self.cursor = from;
        removed > 0
    }

    /// Where the character before the cursor begins.
    fn left_of_cursor(&self) -> usize {
        self.before().char_indices().next_back().map_or(0, |(at, _)| at)
    }

    /// Where the character at the cursor ends.
    fn right_of_cursor(&self) -> usize {
        self.cursor + self.after().chars().next().map_or(0, char::len_utf8)
    }

    /// Where the word before the cursor begins: blanks, then what is none.
    fn word_before_cursor(&self) -> usize {
        let words = self.before().trim_end_matches(' ');
        words.rfind(' ').map_or(0, |blank| blank + 1)
    }

    /// Takes the character before the cursor away; whether there was one. So for all that follow.
    pub fn backspace(&mut self) -> bool {
        self.remove_back_to(self.left_of_cursor())
    }

    /// Takes the character at the cursor away.
    pub fn delete(&mut self) -> bool {
        self.right() && self.backspace()
    }

    /// Takes the word before the cursor away.
    pub fn delete_word(&mut self) -> bool {
        self.remove_back_to(self.word_before_cursor())
    }

    /// Takes away what is before the cursor.
    pub fn delete_to_start(&mut self) -> bool {
        self.remove_back_to(0)
    }

    /// Takes away what is at the cursor and after it.
    pub fn delete_to_end(&mut self) -> bool {
        let had = self.length > self.cursor;
        self.length = self.cursor;
        had
    }

    /// The cursor goes one character to the left.
    pub fn left(&mut self) -> bool {
        let had = self.cursor > 0;
        self.cursor = self.left_of_cursor();
        had
    }

    /// The cursor goes one character to the right.
    pub fn right(&mut self) -> bool {
        let had = self.cursor < self.length;
        self.cursor = self.right_of_cursor();
        had
    }

    /// The cursor goes to the beginning.
    pub fn home(&mut self) {
        self.cursor = 0;
    }

    /// The cursor goes to the end.
    pub fn end(&mut self) {
        self.cursor = self.length;
    }
}
