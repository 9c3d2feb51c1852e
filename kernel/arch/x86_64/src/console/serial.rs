//! A 16550 serial port that never hangs the kernel.

use crate::port;
use uart_16550::backend::PioBackend;
use uart_16550::spec::registers::{IER, InterruptType, LSR};
use uart_16550::{BaudRate, Config, Uart16550};

/// The console for people.
pub(super) const COM1: u16 = 0x3f8;
/// The records for the harness.
pub(super) const COM2: u16 = 0x2f8;

/// Bytes the port takes or gives at once.
pub(super) const FIFO: usize = 16;

/// How often a full transmitter is looked at before the byte is given up. At 115200 baud a full
/// queue empties in 1.4 ms; a look at the port takes about a microsecond.
const POLLS: u32 = 100_000;

/// The modem control register, and its loop from the transmitter to the receiver.
const MODEM_CONTROL: u16 = 4;
const LOOP_BACK: u8 = 1 << 4;

/// Why a port interrupts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cause {
    /// Bytes have arrived.
    Arrived,
    /// The transmitter is empty.
    Empty,
    /// Something about the line, which reading it has cleared.
    Other,
}

/// An open port.
pub(super) struct SerialPort {
    uart: Uart16550<PioBackend>,
    base: u16,
    /// Set when the other side stopped taking bytes: no more waiting, or a run would crawl.
    stuck: bool,
    /// Whether it interrupts when the transmitter is empty.
    tells_empty: bool,
    /// Bytes that arrived when its queue was full.
    overruns: u64,
}

impl SerialPort {
    /// The port at an I/O address, 115200 baud, 8 bits, no parity; `None` if there is none.
    pub(super) fn open(base: u16) -> Option<SerialPort> {
        // SAFETY: the two standard serial ports are driven by this module alone.
        let mut uart = unsafe { Uart16550::new_port(base) }.ok()?;
        uart.init(Config { baud_rate: BaudRate::Baud115200, ..Config::default() }).ok()?;
        Some(SerialPort { uart, base, stuck: false, tells_empty: false, overruns: 0 })
    }

    /// Whether the port takes [`FIFO`] bytes now.
    pub(super) fn is_ready(&mut self) -> bool {
        self.uart.ready_to_send().is_ok()
    }

    /// Waits until the port takes bytes; `false` if it does not for longer than that can take.
    pub(super) fn wait_until_ready(&mut self) -> bool {
        let polls = if self.stuck { 1 } else { POLLS };
        self.stuck = !(0..polls).any(|_| {
            let is_ready = self.is_ready();
            if !is_ready {
                crate::cpu::relax();
            }
            is_ready
        });
        !self.stuck
    }

    /// Sends bytes as they are, at most [`FIFO`], to a port that is ready.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        // What a port does not take that said it would is lost, as on a line that is cut.
        let _taken = self.uart.send_bytes(bytes);
    }

    /// Sends bytes as they are, and waits as long as it takes.
    pub(super) fn write_bytes(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(FIFO) {
            if !self.wait_until_ready() {
                return;
            }
            self.send(piece);
        }
    }

    /// A byte that has arrived, if one has.
    pub(super) fn read_byte(&mut self) -> Option<u8> {
        self.uart.try_receive_byte().ok()
    }

    /// Bytes that have arrived, at most [`FIFO`]; how many.
    pub(super) fn read(&mut self, into: &mut [u8; FIFO]) -> usize {
        let count = self.uart.receive_bytes(into);
        self.note_errors();
        count
    }

    fn note_errors(&mut self) {
        self.overruns += u64::from(self.uart.lsr().contains(LSR::OVERRUN_ERROR));
    }

    /// How often bytes were lost because its queue was full.
    pub(super) const fn overruns(&self) -> u64 {
        self.overruns
    }

    /// Makes the port interrupt when bytes arrive.
    pub(super) fn start_interrupts(&mut self) {
        self.uart.enable_interrupts(IER::DATA_READY | IER::RECEIVER_LINE_STATUS);
    }

    /// Makes the port silent.
    pub(super) fn stop_interrupts(&mut self) {
        self.uart.disable_interrupts(IER::all());
        self.tells_empty = false;
    }

    /// Whether the port is to interrupt when the transmitter is empty.
    pub(super) fn tell_empty(&mut self, is_wanted: bool) {
        if is_wanted != self.tells_empty {
            self.tells_empty = is_wanted;
            match is_wanted {
                true => self.uart.enable_interrupts(IER::THR_EMPTY),
                false => self.uart.disable_interrupts(IER::THR_EMPTY),
            }
        }
    }

    /// Why the port interrupts, if it does.
    pub(super) fn cause(&mut self) -> Option<Cause> {
        Some(match self.uart.isr().interrupt_type()? {
            InterruptType::ReceivedDataReady | InterruptType::ReceptionTimeout => Cause::Arrived,
            InterruptType::TransmitterHoldingRegisterEmpty => Cause::Empty,
            InterruptType::ReceiverLineStatus => {
                self.note_errors();
                Cause::Other
            }
            _ => {
                let _changes = self.uart.msr();
                Cause::Other
            }
        })
    }

    /// Lets the line go down and up again if there still is a cause: on a line that interrupts by edge one that
    /// comes while another is served would never be heard.
    pub(super) fn raise_again(&mut self) {
        let on = self.uart.ier();
        self.uart.disable_interrupts(IER::all());
        self.uart.enable_interrupts(on);
    }

    /// Connects the transmitter with the receiver, or the line again.
    pub(super) fn set_loop_back(&mut self, is_on: bool) {
        let control = self.base + MODEM_CONTROL;
        // SAFETY: the port's register; the loop touches nothing but the port.
        unsafe {
            let before = port::read_u8(control);
            port::write_u8(control, if is_on { before | LOOP_BACK } else { before & !LOOP_BACK });
        }
    }
}
