//! Consoles: text for people on the first serial port and on the screen, what they type, records for the
//! harness on the second serial port, and the log ring that remembers text.
//!
//! Text goes to the log ring, under one lock, and from there to the port: the ring is the queue. Until
//! [`start_interrupts`] it is waited for; afterwards the port takes what it can at once and interrupts for the
//! rest, sixteen bytes at a time. What is typed, on the port or on a keyboard, arrives by interrupt and
//! waits to be [received](receive). A report at the end of a run takes the console without the lock
//! ([`steal`]): the holder, if any, is stopped or is the failing code itself; from then on it waits
//! for the port again.
//!
//! How a kernel object uses this is told in docs/book/console.md. Decided in ADR 218.

mod keyboard;
mod screen;
mod serial;
mod typed;

use crate::boot::FramebufferInfo;
use crate::irq::{self, Driver};
use crate::stop;
use crate::take_once::TakeOnce;
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, Ordering};
use core_console::Drain;
use core_log::LogRing;
pub use core_screen::Ink;
use screen::Screen;
use serial::{COM1, COM2, Cause, FIFO, SerialPort};
use smp_lock::{LockClass, TicketLock};
use spin::Once;
pub use typed::{InputCounts, input_counts, on_input, receive};

/// Text kept in memory: some hundred lines.
const RING_BYTES: usize = 64 * 1024;
/// Text that is queued at once, so that making room for it is short.
const PIECE: usize = 512;
/// What [`submit`] takes at once: some thousand instructions, most of them for the screen's cells.
pub const MAX_SUBMIT: usize = 256;
/// And the line ends among it: each may clear a row of the screen's cells.
const MAX_LINES: usize = 16;
/// What that becomes at most: a byte that is no character shows as one of three.
const MOST_SUBMITTED: usize = 3 * MAX_SUBMIT;
/// How often the port is filled while it takes more at once, as an emulator's does: without end it would
/// be waited for.
const FILLS: usize = 4;
/// And after a program's text: as often as it takes to send as much as was submitted. A port that takes everything at
/// once, fed by one CPU and left with a rest each time, would interrupt another without end.
const FILLS_OF_SUBMITTED: usize = MOST_SUBMITTED.div_ceil(serial::FIFO);
/// Causes served in one interrupt: each of the port's four once.
const CAUSES: usize = 4;
/// How often the lock is tried for at the end of a run before it is done without.
const PATIENCE: u32 = 1_000_000;

static RING: TakeOnce<[u8; RING_BYTES]> = TakeOnce::new([0; RING_BYTES]);
static CONSOLE: TicketLock<Console> = TicketLock::with_class(
    LockClass::Console,
    Console {
        serial: None,
        screen: None,
        ring: None,
        drain: Drain::new(),
        serial_on: true,
        screen_on: true,
        by_interrupt: false,
        is_stolen: false,
        wants_room: false,
        looked_at: 0,
    },
);
static RECORDS: TicketLock<Option<SerialPort>> = TicketLock::with_class(LockClass::Records, None);
static IS_STOLEN: AtomicBool = AtomicBool::new(false);
static ON_ROOM: Once<fn()> = Once::new();

/// What text goes to.
pub struct Console {
    serial: Option<SerialPort>,
    screen: Option<Screen>,
    ring: Option<LogRing<'static>>,
    /// How far the port is with the ring.
    drain: Drain,
    serial_on: bool,
    screen_on: bool,
    /// The port interrupts when it takes more; otherwise it is waited for.
    by_interrupt: bool,
    /// A report is being printed: what is written shows at once.
    is_stolen: bool,
    /// Somebody could not submit everything.
    wants_room: bool,
    /// How far the port was when somebody last looked after it.
    looked_at: u64,
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

    /// Text to the log ring and to the screen's cells. If the port is far behind it is waited for; what is
    /// sent is sent when all of a text is there ([`Console::send`]), but for a report's.
    fn put(&mut self, text: &str) {
        for piece in text.as_bytes().chunks(PIECE) {
            self.make_room(piece.len());
            if let Some(ring) = &mut self.ring {
                ring.push(piece);
            }
        }
        if self.is_stolen {
            self.send_all();
        }
        if self.screen_on
            && let Some(screen) = &mut self.screen
        {
            screen.write(text);
            while self.is_stolen && screen.paint() {}
        }
    }

    /// Bytes that are UTF-8 if they are to be read: what is not shows as such.
    fn put_bytes(&mut self, bytes: &[u8]) {
        for chunk in bytes.utf8_chunks() {
            self.put(chunk.valid());
            if !chunk.invalid().is_empty() {
                self.put("\u{fffd}");
            }
        }
    }

    /// Sends what waits: all of it, or what the port takes at once, in so many fills.
    fn send(&mut self, fills: usize) {
        if !self.by_interrupt {
            return self.send_all();
        }
        for _ in 0..fills {
            if !self.fill_port() {
                break;
            }
        }
        self.ask_for_more();
    }

    /// Has the port interrupt when it takes more, if there is more.
    fn ask_for_more(&mut self) {
        let is_wanted = self.by_interrupt && !self.is_sent();
        if let Some(serial) = &mut self.serial {
            serial.tell_empty(is_wanted);
        }
    }

    /// Waits until everything is sent; what a port that takes nothing does not take is given up.
    fn send_all(&mut self) {
        while !self.is_sent() {
            if !self.serial.as_mut().is_some_and(SerialPort::wait_until_ready) {
                return self.give_up();
            }
            self.fill_port();
        }
    }

    /// Waits until so many bytes can be queued without losing others.
    fn make_room(&mut self, bytes: usize) {
        while !self.is_sent() && self.room() < bytes {
            if !self.serial.as_mut().is_some_and(SerialPort::wait_until_ready) {
                return self.give_up();
            }
            self.fill_port();
        }
    }

    fn room(&self) -> usize {
        self.ring.as_ref().map_or(0, |ring| self.drain.room(ring))
    }

    fn is_sent(&self) -> bool {
        self.ring.as_ref().is_none_or(|ring| self.drain.is_done(ring))
    }

    fn give_up(&mut self) {
        if let Some(ring) = &self.ring {
            self.drain.skip(ring);
        }
        if let Some(serial) = &mut self.serial {
            serial.tell_empty(false);
        }
    }

    /// Gives the port what it takes at once; whether it took some.
    fn fill_port(&mut self) -> bool {
        let (Some(serial), Some(ring), true) = (&mut self.serial, &self.ring, self.serial_on)
        else {
            self.give_up();
            return false;
        };
        let is_sent = self.drain.is_done(ring);
        let takes = !is_sent && serial.is_ready();
        if takes {
            let mut bytes = [0; FIFO];
            let count = self.drain.take(ring, &mut bytes);
            serial.send(bytes.get(..count).unwrap_or(&[]));
        }
        takes
    }

    /// Serves the port's interrupt; whether there is room that somebody waits for.
    fn serve(&mut self) -> bool {
        for _ in 0..CAUSES {
            let Some(serial) = &mut self.serial else { return false };
            match serial.cause() {
                Some(Cause::Arrived) => {
                    let mut bytes = [0; FIFO];
                    let count = serial.read(&mut bytes);
                    typed::arrived(bytes.get(..count).unwrap_or(&[]));
                }
                Some(Cause::Empty) => {
                    self.fill_port();
                    self.ask_for_more();
                }
                Some(Cause::Other) => {}
                None => return self.has_wanted_room(),
            }
        }
        if let Some(serial) = &mut self.serial {
            serial.raise_again();
        }
        self.has_wanted_room()
    }

    /// Whether there is room for a portion of a program's text; if not, it is wanted.
    fn has_room(&mut self) -> bool {
        let has_room = self.is_sent() || self.room() >= MOST_SUBMITTED;
        self.wants_room |= !has_room;
        has_room
    }

    /// Whether half the ring is free and somebody waits for that; it is told once.
    fn has_wanted_room(&mut self) -> bool {
        let has_room = self.wants_room && self.room() >= RING_BYTES / 2;
        self.wants_room &= !has_room;
        has_room
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

/// What arrives by interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByInterrupt {
    /// The first serial port, which also sends by interrupt.
    pub serial: bool,
    /// A keyboard.
    pub keyboard: bool,
}

impl fmt::Display for ByInterrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = |is_there| if is_there { "by interrupt" } else { "not" };
        write!(f, "COM1 {}, a keyboard {}", how(self.serial), how(self.keyboard))
    }
}

/// Lets the port and a keyboard interrupt; on the boot CPU, once lines can be had.
pub fn start_interrupts() -> ByInterrupt {
    let keyboard = typed::open_keyboard() && irq::attach(Driver::Keyboard).is_ok();
    let mut console = CONSOLE.lock();
    let serial = console.serial.is_some() && irq::attach(Driver::Serial).is_ok();
    if let (true, Some(port)) = (serial, &mut console.serial) {
        port.start_interrupts();
    }
    console.by_interrupt = serial;
    ByInterrupt { serial, keyboard }
}

/// Serves an interrupt of a console; whether somebody was told of something.
pub(crate) fn serve(driver: Driver) -> bool {
    let arrived = typed::count();
    let has_room = match driver {
        Driver::Serial => CONSOLE.lock().serve(),
        Driver::Keyboard => {
            typed::serve_keyboard();
            false
        }
        Driver::Timer => false,
    };
    let has_input = typed::count() != arrived && typed::tell();
    let told_room = has_room
        && ON_ROOM.get().is_some_and(|tell| {
            tell();
            true
        });
    has_input || told_room
}

/// Names what is called when there is room again after [`submit`] did not take everything: in an interrupt,
/// with no lock held. It may wake threads, and must not print. Once.
pub fn on_room(tell: fn()) {
    ON_ROOM.call_once(|| tell);
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
        while screen.paint() {}
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

/// Paints some of what has changed on the screen, for as long as a section of the kernel may be; whether there
/// may be more.
pub fn paint() -> bool {
    CONSOLE.lock().screen.as_mut().is_some_and(Screen::paint)
}

/// Runs `write` on the console, and paints what came of it, once.
fn written<T>(write: impl FnOnce(&mut Console) -> T) -> T {
    if stop::is_alone() {
        return write(take_over());
    }
    let mut console = CONSOLE.lock();
    let result = write(&mut console);
    console.send(FILLS);
    drop(console);
    while paint() {}
    result
}

/// Prints text as it is.
pub fn print(text: fmt::Arguments<'_>) {
    written(|console| console.put_values(text));
}

/// Prints a program's bytes, which are UTF-8 if they are to be read: what is not shows as such.
pub fn print_bytes(bytes: &[u8]) {
    written(|console| console.put_bytes(bytes));
}

/// Whether [`submit`] would take something. If not, [`on_room`]'s function is called when it would again.
pub fn has_room() -> bool {
    CONSOLE.lock().has_room()
}

/// Looks after a port that has made no room for long: one that takes bytes is given some, in case it did not
/// interrupt, and one that has taken none since the last look is given up, with what waits for it.
pub fn look_after() {
    let mut console = CONSOLE.lock();
    let at = console.drain.at();
    if !console.fill_port() && at == console.looked_at {
        console.give_up();
    }
    console.looked_at = at;
    console.ask_for_more();
}

/// Takes of a program's bytes at most [`MAX_SUBMIT`] and some lines, if there is room for them, and waits for
/// nothing; how many it took. If none, [`on_room`]'s function is called when it is worth trying again. What shows on
/// the screen is painted by [`paint`].
pub fn submit(bytes: &[u8]) -> usize {
    let mut console = CONSOLE.lock();
    if !console.has_room() {
        return 0;
    }
    let length = core_console::portion(bytes, MAX_SUBMIT, MAX_LINES);
    console.put_bytes(bytes.get(..length).unwrap_or(bytes));
    console.send(FILLS_OF_SUBMITTED);
    length
}

/// Whether everything that was written has gone to the port.
pub fn is_sent() -> bool {
    if stop::is_alone() { take_over().is_sent() } else { CONSOLE.lock().is_sent() }
}

/// A byte somebody typed, if there is one.
pub fn read_byte() -> Option<u8> {
    typed::pop().or_else(|| {
        let mut console = CONSOLE.lock();
        if console.by_interrupt {
            return None;
        }
        console.serial.as_mut().and_then(SerialPort::read_byte)
    })
}

/// Sends everything that waits, as the last thing of a run.
pub(crate) fn flush() {
    // A report has sent what it printed; its lock may be held for good.
    if IS_STOLEN.load(Ordering::Relaxed) {
        return;
    }
    if stop::is_alone() {
        return take_over().send_all();
    }
    for _ in 0..PATIENCE {
        if let Some(mut console) = CONSOLE.try_lock() {
            return console.send_all();
        }
        crate::cpu::relax();
    }
}

/// Connects what the port sends with what it receives, or the line again: for tests.
pub fn set_loop_back(is_on: bool) {
    if let Some(serial) = &mut CONSOLE.lock().serial {
        serial.set_loop_back(is_on);
    }
}

/// How often the port lost bytes that arrived, because nobody took them in time.
pub fn overruns() -> u64 {
    CONSOLE.lock().serial.as_ref().map_or(0, SerialPort::overruns)
}

/// Has the keyboard's controller hand out a scan code as if a key had sent it: for tests.
pub fn echo_scan_code(code: u8) {
    typed::echo(code);
}

/// Prints a line with the time and the part of the kernel that says it.
pub fn line(area: &str, text: fmt::Arguments<'_>) {
    written(|console| {
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
    });
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

/// Takes the console for the end of a run, whoever holds it: a CPU that was stopped in an interrupt of the
/// port, for example. What waits is sent, and nothing is left to interrupts from then on.
fn take_over() -> &'static mut Console {
    // SAFETY: called by the one CPU that has claimed the end of the run, after it stopped the others
    // (`stop`). A holder that was interrupted never runs again. What it left half-done are plain
    // numbers and cells: every use of them is bounds-checked.
    let console = unsafe { &mut *CONSOLE.as_mut_ptr() };
    if !console.is_stolen {
        console.is_stolen = true;
        console.by_interrupt = false;
        IS_STOLEN.store(true, Ordering::Relaxed);
        if let Some(serial) = &mut console.serial {
            serial.stop_interrupts();
        }
        console.send_all();
    }
    console
}

/// Takes the console for a report that ends the run, whoever holds it.
pub fn steal() -> &'static mut Console {
    let console = take_over();
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
