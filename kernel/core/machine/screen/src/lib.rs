//! A text screen as a grid of cells: where characters go, when lines wrap and scroll.
//!
//! It does not draw. Text changes cells; [`Grid::paint`] tells the caller which cells differ from what it
//! painted before, as many as it has time for, because painting is what costs. However many lines a
//! text scrolls by, each cell is painted once for it.
#![no_std]

/// What a cell is painted with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ink {
    /// Ordinary text.
    #[default]
    Plain,
    /// The start of a line: time and area.
    Dim,
    /// A report that ends the machine.
    Alarm,
}

/// A character and its ink; a byte above 126 or below 32 stands for any other character.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    /// ASCII, or [`Cell::UNKNOWN`].
    pub byte: u8,
    /// Its colour.
    pub ink: Ink,
}

impl Cell {
    /// An empty cell.
    pub const BLANK: Cell = Cell { byte: b' ', ink: Ink::Plain };
    /// Stands for every character outside printable ASCII.
    pub const UNKNOWN: u8 = 0x7f;
}

/// The screen, over cells the caller lends.
pub struct Grid<'a> {
    /// What is to be seen, a ring of rows.
    cells: &'a mut [Cell],
    /// What is painted.
    shown: &'a mut [Cell],
    columns: usize,
    rows: usize,
    /// The row of `cells` that is the first of the screen.
    top: usize,
    column: usize,
    row: usize,
    ink: Ink,
    /// Rows of the screen that may differ from what is painted, from the first to before the last, and the
    /// place where painting goes on.
    stale: (usize, usize),
    next: usize,
}

/// Columns between tab stops.
const TAB: usize = 8;
/// What painting a cell costs; looking at one costs 1.
pub const PAINT_COST: usize = 64;

impl<'a> Grid<'a> {
    /// A blank grid of as many of `rows` by `columns` as there are cells for, in both.
    pub fn new(
        cells: &'a mut [Cell],
        shown: &'a mut [Cell],
        columns: usize,
        rows: usize,
    ) -> Option<Self> {
        let there = cells.len().min(shown.len());
        let columns = columns.min(there);
        let rows = rows.min(there.checked_div(columns)?);
        if rows == 0 {
            return None;
        }
        cells.fill(Cell::BLANK);
        shown.fill(Cell::BLANK);
        Some(Self {
            cells,
            shown,
            columns,
            rows,
            top: 0,
            column: 0,
            row: 0,
            ink: Ink::Plain,
            stale: (0, 0),
            next: 0,
        })
    }

    /// Columns and rows.
    pub const fn size(&self) -> (usize, usize) {
        (self.columns, self.rows)
    }

    /// What following text is painted with.
    pub fn set_ink(&mut self, ink: Ink) {
        self.ink = ink;
    }

    /// Where a cell of the screen is kept.
    const fn place(&self, column: usize, row: usize) -> usize {
        (self.top + row) % self.rows * self.columns + column
    }

    /// The cell at a place; blank outside the grid.
    pub fn cell(&self, column: usize, row: usize) -> Cell {
        if column >= self.columns || row >= self.rows {
            return Cell::BLANK;
        }
        self.cells.get(self.place(column, row)).copied().unwrap_or(Cell::BLANK)
    }

    /// Writes text at the cursor. Nothing is painted: see [`Grid::paint`].
    pub fn write(&mut self, text: &str) {
        for character in text.chars() {
            match character {
                '\n' => self.new_line(),
                '\r' => self.column = 0,
                '\t' => {
                    let stop = (self.column / TAB + 1) * TAB;
                    while self.column < stop.min(self.columns) {
                        self.put(b' ');
                    }
                }
                ' '..='~' => self.put(character as u8),
                _ => self.put(Cell::UNKNOWN),
            }
        }
    }

    fn put(&mut self, byte: u8) {
        if self.column >= self.columns {
            self.new_line();
        }
        let (at, cell) = (self.place(self.column, self.row), Cell { byte, ink: self.ink });
        if let Some(place) = self.cells.get_mut(at)
            && *place != cell
        {
            *place = cell;
            self.mark(self.row, self.row + 1);
        }
        self.column += 1;
    }

    fn new_line(&mut self) {
        self.column = 0;
        if self.row + 1 < self.rows {
            self.row += 1;
            return;
        }
        // The first row becomes the last, which is blank.
        self.top = (self.top + 1) % self.rows;
        let last = self.place(0, self.rows - 1);
        if let Some(row) = self.cells.get_mut(last..last + self.columns) {
            row.fill(Cell::BLANK);
        }
        self.mark(0, self.rows);
    }

    /// Rows may differ from what is painted: painting starts over, from the first of them.
    fn mark(&mut self, from: usize, to: usize) {
        let (first, end) = self.stale;
        self.stale = if first == end { (from, to) } else { (first.min(from), end.max(to)) };
        self.next = self.next.min(self.stale.0 * self.columns);
        if first == end {
            self.next = self.stale.0 * self.columns;
        }
    }

    /// Paints cells that differ from what is painted, by `draw(column, row, cell)`, until `budget` is used
    /// up; whether there may be more. A budget below [`PAINT_COST`] paints one cell all the same.
    pub fn paint(&mut self, budget: usize, mut draw: impl FnMut(usize, usize, Cell)) -> bool {
        let mut left = budget.max(1);
        let end = self.stale.1 * self.columns;
        while self.next < end {
            if left == 0 {
                return true;
            }
            let (column, row) = (self.next % self.columns, self.next / self.columns);
            let cell = self.cell(column, row);
            if let Some(shown) = self.shown.get_mut(self.next)
                && *shown != cell
            {
                *shown = cell;
                draw(column, row, cell);
                left = left.saturating_sub(PAINT_COST);
            }
            left = left.saturating_sub(1);
            self.next += 1;
        }
        self.stale = (0, 0);
        self.next = 0;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::string::String;
    use std::vec::Vec;

    /// The grid as painted after each text, which must agree with its own cells.
    fn paint(columns: usize, rows: usize, texts: &[&str]) -> Vec<String> {
        let (mut cells, mut shown) = memory(columns * rows);
        let mut grid = Grid::new(&mut cells, &mut shown, columns, rows).unwrap();
        let mut painted = std::vec![Cell::BLANK; columns * rows];
        for text in texts {
            grid.write(text);
            while grid.paint(7, |column, row, cell| painted[row * columns + column] = cell) {}
        }
        for row in 0..rows {
            for column in 0..columns {
                assert_eq!(grid.cell(column, row), painted[row * columns + column]);
            }
        }
        painted
            .chunks(columns)
            .map(|line| line.iter().map(|c| c.byte as char).collect::<String>())
            .collect()
    }

    fn memory(cells: usize) -> (Vec<Cell>, Vec<Cell>) {
        (std::vec![Cell::BLANK; cells], std::vec![Cell::BLANK; cells])
    }

    #[test]
    fn lines_wrap_and_scroll() {
        assert_eq!(paint(4, 2, &["abcdef"]), ["abcd", "ef  "]);
        assert_eq!(paint(4, 2, &["one\ntwo\nsix"]), ["two ", "six "]);
        assert_eq!(paint(4, 2, &["abcd\n", "efgh"]), ["abcd", "efgh"]);
        assert_eq!(paint(4, 3, &["a\n\nb\n"]), ["    ", "b   ", "    "]);
        assert_eq!(paint(3, 2, &["a\n", "b\n", "c\n", "d"]), ["c  ", "d  "]);
    }

    #[test]
    fn control_characters() {
        assert_eq!(paint(12, 1, &["a\tb"]), ["a       b   "]);
        assert_eq!(paint(4, 1, &["abc\rx"]), ["xbc "]);
        assert_eq!(paint(4, 1, &["µ"])[0].as_bytes()[0], Cell::UNKNOWN);
    }

    #[test]
    fn scrolling_paints_only_what_changes() {
        let (mut cells, mut shown) = memory(8 * 3);
        let mut grid = Grid::new(&mut cells, &mut shown, 8, 3).unwrap();
        grid.write("same\nsame\nsame");
        while grid.paint(1000, |_, _, _| ()) {}
        let mut painted = 0;
        grid.write("\n");
        while grid.paint(1000, |_, _, _| painted += 1) {}
        // The first two lines keep their text; only the last becomes blank.
        assert_eq!(painted, 4);
    }

    #[test]
    fn a_text_of_many_lines_paints_each_cell_once() {
        let (mut cells, mut shown) = memory(10 * 4);
        let mut grid = Grid::new(&mut cells, &mut shown, 10, 4).unwrap();
        for _ in 0..64 {
            grid.write("0123456789\nabcdefghij\n");
        }
        let mut painted = 0;
        while grid.paint(1000, |_, _, _| painted += 1) {}
        assert_eq!(painted, 30, "three rows of ten, and a blank one");
    }

    #[test]
    fn a_budget_bounds_what_is_painted_at_once_and_loses_nothing() {
        let mut state = 9u32;
        let mut chance = |below: u32| {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            (state >> 16) % below
        };
        let (mut cells, mut shown) = memory(6 * 5);
        let mut grid = Grid::new(&mut cells, &mut shown, 6, 5).unwrap();
        let mut painted = [Cell::BLANK; 6 * 5];
        for _ in 0..5_000 {
            // Writing goes on while painting is under way.
            for _ in 0..chance(4) {
                let text = ["x", "yy", "\n", "zzzzzzzz", "\r", "\t"][chance(6) as usize];
                grid.write(text);
            }
            let budget = chance(200) as usize;
            let mut count = 0;
            let more = grid.paint(budget, |column, row, cell| {
                painted[row * 6 + column] = cell;
                count += 1;
            });
            assert!(count <= budget / PAINT_COST + 1, "{count} cells for {budget}");
            if !more {
                for (at, cell) in painted.iter().enumerate() {
                    assert_eq!(grid.cell(at % 6, at / 6), *cell);
                }
            }
        }
    }

    #[test]
    fn a_grid_never_exceeds_its_cells() {
        let (mut cells, mut shown) = memory(10);
        let mut grid = Grid::new(&mut cells, &mut shown, 4, 100).unwrap();
        assert_eq!(grid.size(), (4, 2));
        grid.write("0123456789abcdef\n\n\n");
        while grid.paint(5, |c, r, _| assert!(c < 4 && r < 2)) {}
        assert!(Grid::new(&mut [], &mut [], 4, 4).is_none());
        assert!(Grid::new(&mut [Cell::BLANK; 4], &mut [Cell::BLANK; 4], 0, 4).is_none());
        assert!(Grid::new(&mut [Cell::BLANK; 4], &mut [], 4, 1).is_none());
    }
}
