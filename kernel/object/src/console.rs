//! Console: bytes to and from a serial line.
//!
//! A read that waits is completed by its host when something was typed (ADR 218).

use crate::refuse;
use schema::console::{ReadParams, ReadResults, Server, WriteParams, WriteResults};
use schema_wire::{Answer, ExceptionKind, NoResult};

/// Bytes one `write` takes at most: a bound on how long a byte-wise device keeps the CPU.
pub const WRITE_BYTES: usize = 64;
/// Bytes one `read` gives at most.
pub const READ_BYTES: usize = 64;

/// What a console needs of the kernel.
pub trait Host {
    /// Sends bytes.
    fn send(&mut self, bytes: &[u8]);
    /// Takes what has arrived, as much as fits; how many bytes.
    fn receive(&mut self, into: &mut [u8]) -> usize;
    /// Completes the call when something arrives, with at most `capacity` bytes. `false` if too
    /// many wait already, or nothing can arrive.
    fn complete_on_input(&mut self, capacity: usize) -> bool;
}

/// The server, with room for what is read.
#[derive(Debug)]
pub struct Console<'h, H> {
    host: &'h mut H,
    buffer: [u8; READ_BYTES],
}

impl<'h, H: Host> Console<'h, H> {
    /// A server over `host`.
    pub fn new(host: &'h mut H) -> Self {
        Self { host, buffer: [0; READ_BYTES] }
    }
}

impl<H: Host> Server for Console<'_, H> {
    fn write(&mut self, params: WriteParams<'_>) -> Answer<WriteResults> {
        let bytes = params.bytes.get(..WRITE_BYTES).unwrap_or(params.bytes);
        self.host.send(bytes);
        Ok(WriteResults { written: bytes.len() as u32 })
    }

    fn read(&mut self, params: ReadParams, room: usize) -> Answer<ReadResults<'_>> {
        let capacity = (params.capacity as usize).min(room).min(READ_BYTES);
        if params.capacity == 0 {
            return Err(refuse(ExceptionKind::InvalidArgument, "a read of 0 bytes never ends"));
        }
        let into = self.buffer.get_mut(..capacity).unwrap_or_default();
        let length = self.host.receive(into);
        if length > 0 {
            return Ok(ReadResults { bytes: self.buffer.get(..length).unwrap_or_default() });
        }
        if self.host.complete_on_input(capacity) {
            return Err(NoResult::Later);
        }
        Err(refuse(ExceptionKind::Overloaded, "another read waits for input, or there is none"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::vec::Vec;

    #[derive(Default)]
    struct Line {
        out: Vec<u8>,
        input: Vec<u8>,
        waits: Option<usize>,
    }

    impl Host for Line {
        fn send(&mut self, bytes: &[u8]) {
            self.out.extend(bytes);
        }
        fn receive(&mut self, into: &mut [u8]) -> usize {
            let length = into.len().min(self.input.len());
            into[..length].copy_from_slice(&self.input[..length]);
            self.input.drain(..length);
            length
        }
        fn complete_on_input(&mut self, capacity: usize) -> bool {
            self.waits.replace(capacity).is_none()
        }
    }

    #[test]
    fn long_text_is_taken_in_parts() {
        let mut line = Line::default();
        let text = [7; 200];
        let written = Console::new(&mut line).write(WriteParams { bytes: &text }).unwrap().written;
        assert_eq!((written as usize, line.out.len()), (WRITE_BYTES, WRITE_BYTES));
    }

    #[test]
    fn reading_takes_what_is_there_or_waits() {
        let mut line = Line { input: b"hello".to_vec(), ..Line::default() };
        let read = |line: &mut Line, capacity, room| {
            Console::new(line).read(ReadParams { capacity }, room).map(|r| r.bytes.to_vec())
        };
        assert_eq!(read(&mut line, 3, 100), Ok(b"hel".to_vec()));
        assert_eq!(read(&mut line, 9, 1), Ok(b"l".to_vec()));
        assert_eq!(read(&mut line, u32::MAX, 100), Ok(b"o".to_vec()));
        assert_eq!(read(&mut line, 5, 100), Err(NoResult::Later));
        assert_eq!(line.waits, Some(5));
        assert!(matches!(read(&mut line, 5, 100), Err(NoResult::Exception(_))));
        assert!(matches!(read(&mut line, 0, 100), Err(NoResult::Exception(_))));
    }
}
