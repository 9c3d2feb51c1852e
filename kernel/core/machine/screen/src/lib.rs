//! A text screen as a grid of cells: where characters go, when lines wrap and scroll.
//!
//! It does not draw. Every cell whose content changes is told to the caller, which paints it;
//! scrolling tells only of cells that differ from the line below, because painting is what costs.
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
    cells: &'a mut [Cell],
    columns: usize,
    rows: usize,
    column: usize,
    row: usize,
    ink: Ink,
}

/// Columns between tab stops.
const TAB: usize = 8;

impl<'a> Grid<'a> {
    /// A blank grid of as many of `rows` by `columns` as there are cells for.
    pub fn new(cells: &'a mut [Cell], columns: usize, rows: usize) -> Option<Self> {
        let columns = columns.min(cells.len());
        let rows = rows.min(cells.len().checked_div(columns)?);
        if rows == 0 {
            return None;
        }
        cells.fill(Cell::BLANK);
        Some(Self { cells, columns, rows, column: 0, row: 0, ink: Ink::Plain })
    }

    /// Columns and rows.
    pub const fn size(&self) -> (usize, usize) {
        (self.columns, self.rows)
    }

    /// What following text is painted with.
    pub fn set_ink(&mut self, ink: Ink) {
        self.ink = ink;
    }

    /// The cell at a place; blank outside the grid.
    pub fn cell(&self, column: usize, row: usize) -> Cell {
        if column >= self.columns {
            return Cell::BLANK;
        }
        self.cells.get(row * self.columns + column).copied().unwrap_or(Cell::BLANK)
    }

    /// Writes text at the cursor; `draw(column, row, cell)` hears of every changed cell.
    pub fn write(&mut self, text: &str, mut draw: impl FnMut(usize, usize, Cell)) {
        for character in text.chars() {
            match character {
                '\n' => self.new_line(&mut draw),
                '\r' => self.column = 0,
                '\t' => {
                    let stop = (self.column / TAB + 1) * TAB;
                    while self.column < stop.min(self.columns) {
                        self.put(b' ', &mut draw);
                    }
                }
                ' '..='~' => self.put(character as u8, &mut draw),
                _ => self.put(Cell::UNKNOWN, &mut draw),
            }
        }
    }

    fn put(&mut self, byte: u8, draw: &mut impl FnMut(usize, usize, Cell)) {
        if self.column >= self.columns {
            self.new_line(draw);
        }
        self.set(self.column, self.row, Cell { byte, ink: self.ink }, draw);
        self.column += 1;
    }

    fn set(
        &mut self,
        column: usize,
        row: usize,
        cell: Cell,
        draw: &mut impl FnMut(usize, usize, Cell),
    ) {
        if let Some(place) = self.cells.get_mut(row * self.columns + column)
            && *place != cell
        {
            *place = cell;
            draw(column, row, cell);
        }
    }

    fn new_line(&mut self, draw: &mut impl FnMut(usize, usize, Cell)) {
        self.column = 0;
        if self.row + 1 < self.rows {
            self.row += 1;
            return;
        }
        for row in 0..self.rows {
            for column in 0..self.columns {
                let below =
                    if row + 1 < self.rows { self.cell(column, row + 1) } else { Cell::BLANK };
                self.set(column, row, below, draw);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::string::String;
    use std::vec::Vec;

    /// The grid as painted through `draw`, which must agree with its own cells.
    fn paint(columns: usize, rows: usize, texts: &[&str]) -> Vec<String> {
        let mut cells = std::vec![Cell::BLANK; columns * rows];
        let mut grid = Grid::new(&mut cells, columns, rows).unwrap();
        let mut painted = std::vec![Cell::BLANK; columns * rows];
        for text in texts {
            grid.write(text, |column, row, cell| painted[row * columns + column] = cell);
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

    #[test]
    fn lines_wrap_and_scroll() {
        assert_eq!(paint(4, 2, &["abcdef"]), ["abcd", "ef  "]);
        assert_eq!(paint(4, 2, &["one\ntwo\nsix"]), ["two ", "six "]);
        assert_eq!(paint(4, 2, &["abcd\n", "efgh"]), ["abcd", "efgh"]);
        assert_eq!(paint(4, 3, &["a\n\nb\n"]), ["    ", "b   ", "    "]);
    }

    #[test]
    fn control_characters() {
        assert_eq!(paint(12, 1, &["a\tb"]), ["a       b   "]);
        assert_eq!(paint(4, 1, &["abc\rx"]), ["xbc "]);
        assert_eq!(paint(4, 1, &["µ"])[0].as_bytes()[0], Cell::UNKNOWN);
    }

    #[test]
    fn scrolling_paints_only_what_changes() {
        let mut cells = [Cell::BLANK; 8 * 3];
        let mut grid = Grid::new(&mut cells, 8, 3).unwrap();
        grid.write("same\nsame\nsame", |_, _, _| ());
        let mut painted = 0;
        grid.write("\n", |_, _, _| painted += 1);
        // The first two lines keep their text; only the last becomes blank.
        assert_eq!(painted, 4);
    }

    #[test]
    fn a_grid_never_exceeds_its_cells() {
        let mut cells = [Cell::BLANK; 10];
        let mut grid = Grid::new(&mut cells, 4, 100).unwrap();
        assert_eq!(grid.size(), (4, 2));
        grid.write("0123456789abcdef\n\n\n", |c, r, _| assert!(c < 4 && r < 2));
        assert!(Grid::new(&mut [], 4, 4).is_none());
        assert!(Grid::new(&mut [Cell::BLANK; 4], 0, 4).is_none());
    }
}
