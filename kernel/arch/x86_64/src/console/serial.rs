//! A 16550 serial port that never hangs the kernel.

use uart_16550::backend::PioBackend;
use uart_16550::{BaudRate, Config, Uart16550};

/// The console for people.
pub(super) const COM1: u16 = 0x3f8;
/// The records for the harness.
pub(super) const COM2: u16 = 0x2f8;

/// How often a full transmitter is looked at before the byte is given up. At 115200 baud a full
/// queue empties in 1.4 ms; a look at the port takes about a microsecond.
const POLLS: u32 = 100_000;

/// An open port.
pub(super) struct SerialPort {
    uart: Uart16550<PioBackend>,
    /// Set when the other side stopped taking bytes: no more waiting, or a run would crawl.
    stuck: bool,
}

impl SerialPort {
    /// The port at an I/O address, 115200 baud, 8 bits, no parity; `None` if there is none.
    pub(super) fn open(base: u16) -> Option<SerialPort> {
        // SAFETY: the two standard serial ports are driven by this module alone.
        let mut uart = unsafe { Uart16550::new_port(base) }.ok()?;
        uart.init(Config { baud_rate: BaudRate::Baud115200, ..Config::default() }).ok()?;
        Some(SerialPort { uart, stuck: false })
    }

    /// Sends bytes as they are.
    pub(super) fn write_bytes(&mut self, mut bytes: &[u8]) {
        let mut polls = 0;
        while !bytes.is_empty() {
            let sent = self.uart.send_bytes(bytes);
            bytes = bytes.get(sent..).unwrap_or(&[]);
            if sent > 0 {
                polls = 0;
                self.stuck = false;
                continue;
            }
            polls += 1;
            if self.stuck || polls == POLLS {
                self.stuck = true;
                return;
            }
            crate::cpu::relax();
        }
    }

    /// A byte that has arrived, if one has.
    pub(super) fn read_byte(&mut self) -> Option<u8> {
        self.uart.try_receive_byte().ok()
    }

    /// Sends text with the line ends a terminal wants.
    pub(super) fn write_text(&mut self, text: &str) {
        for (i, line) in text.split('\n').enumerate() {
            if i > 0 {
                self.write_bytes(b"\r\n");
            }
            self.write_bytes(line.as_bytes());
        }
    }
}
