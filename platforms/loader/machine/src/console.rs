//! Where the loader says why it does not boot: the first serial port and the screen.

use core::fmt::{self, Write};

use loader_core::boot::VideoMode;
use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};
use x86_64::instructions::port::Port;

/// COM1, 115200 baud, 8 bits, no parity.
#[derive(Debug)]
pub struct Serial(());

const COM1: u16 = 0x3f8;

impl Serial {
    /// Sets the port up.
    pub fn new() -> Self {
        const SETTINGS: [(u16, u8); 6] = [(1, 0), (3, 0x80), (0, 1), (1, 0), (3, 3), (4, 3)];
        for (register, value) in SETTINGS {
            // SAFETY: the registers of the PC's first serial port, interrupts off; where
            // there is none the writes go nowhere.
            unsafe { Port::<u8>::new(COM1 + register).write(value) };
        }
        Self(())
    }

    fn byte(&mut self, byte: u8) {
        const STATUS: u16 = COM1 + 5;
        const EMPTY: u8 = 0x20;
        // A character takes 87 microseconds; a port that is stuck is not waited for.
        for _ in 0..100_000 {
            // SAFETY: reading the line status has no effect that matters here.
            if unsafe { Port::<u8>::new(STATUS).read() } & EMPTY != 0 {
                break;
            }
        }
        // SAFETY: the transmit register.
        unsafe { Port::<u8>::new(COM1).write(byte) };
    }
}

impl Default for Serial {
    fn default() -> Self {
        Self::new()
    }
}

impl Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if byte == b'\n' {
                self.byte(b'\r');
            }
            self.byte(byte);
        }
        Ok(())
    }
}

/// A text line at a time on a linear framebuffer.
#[derive(Debug)]
pub struct Pixels {
    base: u64,
    mode: VideoMode,
    column: u64,
    row: u64,
}

impl Pixels {
    /// Clears the screen.
    ///
    /// # Safety
    /// The framebuffer must be mapped one to one, in this mode, and used by nobody else.
    pub unsafe fn new(base: u64, mode: VideoMode) -> Self {
        let mut pixels = Self { base, mode, column: 0, row: 0 };
        for y in 0..mode.height {
            for x in 0..mode.width {
                pixels.dot(x, y, 0);
            }
        }
        pixels
    }

    fn dot(&mut self, x: u64, y: u64, level: u8) {
        let bytes = u64::from(self.mode.bpp / 8);
        if x >= self.mode.width || y >= self.mode.height || bytes < 3 {
            return;
        }
        let at = self.base + y * self.mode.pitch + x * bytes;
        for byte in 0..3 {
            // SAFETY: within width, height and pitch, so within the framebuffer `new` was
            // given.
            unsafe { ((at + byte) as *mut u8).write_volatile(level) };
        }
    }

    fn glyph(&mut self, character: char) {
        const HEIGHT: u64 = 16;
        let width = get_raster_width(FontWeight::Regular, RasterHeight::Size16) as u64;
        if character == '\n' || (self.column + 1) * width > self.mode.width {
            self.column = 0;
            self.row += 1;
        }
        if character == '\n' {
            return;
        }
        if let Some(raster) = get_raster(character, FontWeight::Regular, RasterHeight::Size16) {
            for (line, y) in raster.rows().zip(self.row * HEIGHT..) {
                for (level, x) in line.iter().zip(self.column * width..) {
                    self.dot(x, y, *level);
                }
            }
        }
        self.column += 1;
    }
}

impl Write for Pixels {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().for_each(|character| self.glyph(character));
        Ok(())
    }
}

/// The 80 by 25 text screen a BIOS leaves.
#[derive(Debug)]
pub struct TextScreen {
    position: usize,
}

impl TextScreen {
    const CELLS: usize = 80 * 25;

    /// Starts at the top left.
    ///
    /// # Safety
    /// The legacy video window must be mapped one to one.
    pub unsafe fn new() -> Self {
        Self { position: 0 }
    }
}

impl Write for TextScreen {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        const WINDOW: usize = 0xb_8000;
        const WHITE: u16 = 0x0f00;
        for byte in text.bytes() {
            if byte == b'\n' {
                self.position = self.position.next_multiple_of(80);
            } else if self.position < Self::CELLS {
                let cell = (WINDOW + self.position * 2) as *mut u16;
                // SAFETY: one of the window's cells; without a display it goes nowhere.
                unsafe { cell.write_volatile(WHITE | u16::from(byte)) };
                self.position += 1;
            }
        }
        Ok(())
    }
}

/// Both outputs at once.
pub struct Both<'a, A: Write, B: Write>(pub &'a mut A, pub &'a mut B);

impl<A: Write, B: Write> Write for Both<'_, A, B> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write_str(text)?;
        self.1.write_str(text)
    }
}
