//! Consoles: text for people on the first serial port and on the screen, records for the
//! harness on the second serial port, and the log ring that remembers text.
//!
//! Text goes through one lock. A report at the end of a run takes the console without it
//! ([`steal`]): the holder of the lock, if any, is stopped or is the failing code itself.

mod screen;
mod serial;

use crate::boot::FramebufferInfo;
use crate::take_once::TakeOnce;
use core::fmt::{self, Write};
use core_log::LogRing;
pub use core_screen::Ink;
use screen::Screen;
use serial::{COM1, COM2, SerialPort};
use smp_lock::{LockClass, TicketLock};

/// Text kept in memory: some hundred lines.
const RING_BYTES: usize = 64 * 1024;

static RING: TakeOnce<[u8; RING_BYTES]> = TakeOnce::new([0; RING_BYTES]);
static CONSOLE: TicketLock<Console> = TicketLock::with_class(
    LockClass::Console,
    Console { serial: None, screen: None, ring: None, serial_on: true, screen_on: true },
);
static RECORDS: TicketLock<Option<SerialPort>> = TicketLock::with_class(LockClass::Records, None);

/// What text goes to.
pub struct Console {
    serial: Option<SerialPort>,
    screen: Option<Screen>,
    ring: Option<LogRing<'static>>,
    serial_on: bool,
    screen_on: bool,
}

impl Console {
    /// What following text looks like on the screen.
    pub fn set_ink(&mut self, ink: Ink) {
        if let Some(screen) = &mut self.screen {
            screen.set_ink(ink);
        }
    }

    /// Text with values in it. The console takes everything, so an error is a value whose own
    /// `Display` gave up; what was printed before it stands.
    fn put_values(&mut self, text: fmt::Arguments<'_>) {
        match self.write_fmt(text) {
            Ok(()) | Err(fmt::Error) => {}
        }
    }

    /// Text to the log ring and to each console that is on.
    fn put(&mut self, text: &str) {
        if let Some(ring) = &mut self.ring {
            ring.push(text.as_bytes());
        }
        if self.serial_on
            && let Some(serial) = &mut self.serial
        {
            serial.write_text(text);
        }
        if self.screen_on
            && let Some(screen) = &mut self.screen
        {
            screen.write(text);
        }
    }
}

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.put(text);
        Ok(())
    }
}

/// Sets up the serial ports; calls after the first change nothing.
pub(crate) fn init_serial() {
    let mut console = CONSOLE.lock();
    if console.ring.is_none() {
        console.ring = RING.take().map(|bytes| LogRing::new(bytes));
        console.serial = SerialPort::open(COM1);
        *RECORDS.lock() = SerialPort::open(COM2);
    }
}

/// Whether the first and the second serial port are there.
pub fn serial_ports() -> (bool, bool) {
    (CONSOLE.lock().serial.is_some(), RECORDS.lock().is_some())
}

/// Puts the console on a screen as well, with what was logged so far. Its columns and rows.
pub fn attach_screen(framebuffer: FramebufferInfo) -> Option<(usize, usize)> {
    let mut screen = Screen::new(framebuffer)?;
    let size = screen.size();
    let mut console = CONSOLE.lock();
    if console.screen_on
        && let Some(ring) = &console.ring
    {
        for piece in ring.read_from(0).pieces {
            for chunk in piece.utf8_chunks() {
                screen.write(chunk.valid());
            }
        }
    }
    console.screen = Some(screen);
    Some(size)
}

/// Reads a cell of the screen back: how many of its pixels are not paper. `None` without a screen.
pub fn inked_pixels(column: usize, row: usize) -> Option<usize> {
    CONSOLE.lock().screen.as_ref().map(|screen| screen.inked_pixels(column, row))
}

/// Chooses where text goes. The log ring always gets it.
pub fn choose(serial: bool, screen: bool) {
    let mut console = CONSOLE.lock();
    console.serial_on = serial;
    console.screen_on = screen;
}

/// Prints text as it is.
pub fn print(text: fmt::Arguments<'_>) {
    CONSOLE.lock().put_values(text);
}

/// Prints a program's bytes, which are UTF-8 if they are to be read: what is not shows as such.
pub fn print_bytes(bytes: &[u8]) {
    let mut console = CONSOLE.lock();
    for chunk in bytes.utf8_chunks() {
        console.put(chunk.valid());
        if !chunk.invalid().is_empty() {
            console.put("\u{fffd}");
        }
    }
}

/// A byte somebody typed, if there is one.
pub fn read_byte() -> Option<u8> {
    CONSOLE.lock().serial.as_mut().and_then(SerialPort::read_byte)
}

/// Prints a line with the time and the part of the kernel that says it.
pub fn line(area: &str, text: fmt::Arguments<'_>) {
    let mut console = CONSOLE.lock();
    console.set_ink(Ink::Dim);
    match crate::time::now_ns() {
        Some(ns) => console.put_values(format_args!(
            "[{:>5}.{:06}] ",
            ns / 1_000_000_000,
            ns / 1000 % 1_000_000
        )),
        // Before the clock is known, there is no time to print.
        None => console.put("[     -      ] "),
    }
    console.put_values(format_args!("{area:>8}: "));
    console.set_ink(Ink::Plain);
    console.put_values(text);
    console.put("\n");
}

/// Prints a line: `log!("memory", "{} frames", count)`.
#[macro_export]
macro_rules! log {
    ($area:expr, $($text:tt)*) => {
        $crate::console::line($area, format_args!($($text)*))
    };
}

/// Prints text as it is, with a line end.
#[macro_export]
macro_rules! println {
    () => { $crate::console::print(format_args!("\n")) };
    ($($text:tt)*) => { $crate::console::print(format_args!("{}\n", format_args!($($text)*))) };
}

/// Sends bytes to the harness, if there is a second serial port.
pub fn send_records(bytes: &[u8]) {
    if let Some(port) = RECORDS.lock().as_mut() {
        port.write_bytes(bytes);
    }
}

/// Takes the console for a report that ends the run, whoever holds it.
pub fn steal() -> &'static mut Console {
    // SAFETY: called by the one CPU that has claimed the report, after it stopped the others
    // (`stop`). A holder that was interrupted never runs again. What it left half-done are plain
    // numbers and cells: every use of them is bounds-checked.
    let console = unsafe { &mut *CONSOLE.as_mut_ptr() };
    // A report is shown everywhere, whatever was chosen.
    console.serial_on = true;
    console.screen_on = true;
    console
}

/// As [`send_records`], for a report that ends the run.
pub fn steal_records(bytes: &[u8]) {
    // SAFETY: as for `steal`.
    if let Some(port) = unsafe { &mut *RECORDS.as_mut_ptr() } {
        port.write_bytes(bytes);
    }
}
