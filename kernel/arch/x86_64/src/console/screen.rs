//! The text screen painted into the frame buffer.

use crate::boot::FramebufferInfo;
use crate::take_once::TakeOnce;
use core_screen::{Cell, Grid, Ink, PAINT_COST};
use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};

const HEIGHT: RasterHeight = RasterHeight::Size16;
const WEIGHT: FontWeight = FontWeight::Regular;
const CELL_WIDTH: usize = get_raster_width(WEIGHT, HEIGHT);
const CELL_HEIGHT: usize = HEIGHT.val();

/// Cells for a screen of 2560 by 1600; of a larger one the upper left part is used.
const MAX_CELLS: usize = (2560 / 7) * (1600 / 16);
static CELLS: TakeOnce<[[Cell; MAX_CELLS]; 2]> = TakeOnce::new([[Cell::BLANK; MAX_CELLS]; 2]);

/// What is painted at once: eight cells, or a look at some rows that are as they were. A cell takes
/// more than a thousand instructions.
const BUDGET: usize = 8 * PAINT_COST;

type Colour = [u8; 3];

const BACKGROUND: Colour = [0x10, 0x14, 0x1c];
const ALARM_BACKGROUND: Colour = [0x6a, 0x10, 0x18];

fn colours(ink: Ink) -> (Colour, Colour) {
    match ink {
        Ink::Plain => ([0xe4, 0xe4, 0xdc], BACKGROUND),
        Ink::Dim => ([0x8c, 0x9c, 0xac], BACKGROUND),
        Ink::Alarm => ([0xff, 0xff, 0xff], ALARM_BACKGROUND),
    }
}

/// The pixels.
struct Pixels {
    info: FramebufferInfo,
}

/// A text screen.
pub(super) struct Screen {
    pixels: Pixels,
    grid: Grid<'static>,
}

impl Screen {
    /// A blank screen, the first time; there is memory for one.
    pub(super) fn new(info: FramebufferInfo) -> Option<Screen> {
        let pixels = Pixels { info };
        let [cells, shown] = CELLS.take()?;
        let (columns, rows) = (info.width / CELL_WIDTH, info.height / CELL_HEIGHT);
        let grid = Grid::new(cells, shown, columns, rows)?;
        pixels.clear();
        Some(Screen { pixels, grid })
    }

    pub(super) fn size(&self) -> (usize, usize) {
        self.grid.size()
    }

    pub(super) fn set_ink(&mut self, ink: Ink) {
        self.grid.set_ink(ink);
    }

    /// How many pixels of a cell are not the background, read from the frame buffer.
    pub(super) fn inked_pixels(&self, column: usize, row: usize) -> usize {
        let paper = self.pixels.pixel(BACKGROUND);
        let places = (0..CELL_HEIGHT).flat_map(|y| (0..CELL_WIDTH).map(move |x| (x, y)));
        places
            .filter(|(x, y)| {
                let (x, y) = (column * CELL_WIDTH + x, row * CELL_HEIGHT + y);
                self.pixels.get(x, y).is_some_and(|pixel| pixel != paper)
            })
            .count()
    }

    /// Writes text, which shows when it is painted.
    pub(super) fn write(&mut self, text: &str) {
        self.grid.write(text);
    }

    /// Paints some of what has changed; whether there may be more.
    pub(super) fn paint(&mut self) -> bool {
        let Screen { pixels, grid } = self;
        grid.paint(BUDGET, |column, row, cell| pixels.paint(column, row, cell))
    }
}

impl Pixels {
    fn pixel(&self, colour: Colour) -> u32 {
        let shift = |value: u8, shift: u8| u32::from(value).checked_shl(shift.into()).unwrap_or(0);
        colour.iter().zip(self.info.shifts).fold(0, |pixel, (v, s)| pixel | shift(*v, s))
    }

    fn at(&self, x: usize, y: usize) -> Option<*mut u32> {
        let inside = x < self.info.width && y < self.info.height;
        inside.then(|| (self.info.address as usize + y * self.info.pitch + x * 4) as *mut u32)
    }

    fn put(&self, x: usize, y: usize, pixel: u32) {
        if let Some(place) = self.at(x, y) {
            // SAFETY: inside the frame buffer, whose lines are `pitch` bytes apart and which is
            // mapped writable in the direct map by the loader and by the kernel (invariant PT-1).
            unsafe { place.write_volatile(pixel) };
        }
    }

    fn get(&self, x: usize, y: usize) -> Option<u32> {
        // SAFETY: as for `put`.
        self.at(x, y).map(|place| unsafe { place.read_volatile() })
    }

    fn clear(&self) {
        let blank = self.pixel(BACKGROUND);
        for y in 0..self.info.height {
            for x in 0..self.info.width {
                self.put(x, y, blank);
            }
        }
    }

    fn paint(&self, column: usize, row: usize, cell: Cell) {
        let (ink, paper) = colours(cell.ink);
        let (left, top) = (column * CELL_WIDTH, row * CELL_HEIGHT);
        let character = if cell.byte == Cell::UNKNOWN { '\u{fffd}' } else { cell.byte as char };
        let paper_pixel = self.pixel(paper);
        let ink_pixel = self.pixel(ink);
        let Some(raster) = get_raster(character, WEIGHT, HEIGHT) else { return };
        for (y, line) in raster.rows().enumerate() {
            for (x, cover) in line.iter().enumerate() {
                let pixel = match cover {
                    0 => paper_pixel,
                    255 => ink_pixel,
                    cover => self.pixel(mix(paper, ink, *cover)),
                };
                self.put(left + x, top + y, pixel);
            }
        }
    }
}

/// `cover` 255ths of the way from one colour to another.
fn mix(from: Colour, to: Colour, cover: u8) -> Colour {
    let one = |a: u8, b: u8| {
        let (a, b, cover) = (i32::from(a), i32::from(b), i32::from(cover));
        (a + (b - a) * cover / 255) as u8
    };
    let ([r, g, b], [r2, g2, b2]) = (from, to);
    [one(r, r2), one(g, g2), one(b, b2)]
}
