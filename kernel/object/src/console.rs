//! Console: bytes to and from a serial line.
//!
//! A write goes into the ring of its process, or waits until there is room (ADR 257). A read that waits is completed
//! by its host when something was typed (ADR 218).

use crate::refuse;
use core_ledger::Line;
use core_output::MAX_WAITING;
pub use core_output::WRITE_BYTES;
use kernel_ops::object::Calling;
use kernel_ops::output::{self, Sent};
use kernel_ops::paid::NoMemory;
use kernel_process::{Machine, drain};
use schema::console::{ReadParams, ReadResults, Server, WriteParams, WriteResults};
use schema_wire::{Answer, ExceptionKind, NoResult};

/// Bytes one `read` gives at most.
pub const READ_BYTES: usize = 64;

/// What a console needs of the kernel.
pub trait Host {
    /// Sends at most [`WRITE_BYTES`], all or none, or completes the call when they can be.
    fn send(&mut self, bytes: &[u8]) -> Sent;
    /// Takes what has arrived, as much as fits; how many bytes.
    fn receive(&mut self, into: &mut [u8]) -> usize;
    /// Completes the call when something arrives, with at most `capacity` bytes. `false` if too
    /// many wait already, or nothing can arrive.
    fn complete_on_input(&mut self, capacity: usize) -> bool;
}

/// Sends bytes of the calling process by way of its ring and the drain.
pub fn send<M: Machine>(calling: &mut Calling<'_, M>, bytes: &[u8]) -> Sent {
    let m = calling.caller.m;
    let sent = output::write(calling, bytes);
    if sent == Sent::Taken {
        drain::wake(m);
    }
    sent
}

/// What is said to a process that has too many writes under way.
const TOO_MANY: &str = "32 writes of the process wait already: let one complete first";
const _: () = assert!(MAX_WAITING == 32, "it says how many");

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
        match self.host.send(bytes) {
            Sent::Taken => Ok(WriteResults { written: bytes.len() as u32 }),
            Sent::Later => Err(NoResult::Later),
            Sent::TooMany => Err(refuse(ExceptionKind::Overloaded, TOO_MANY)),
            Sent::NoMemory(NoMemory::Account(_)) => {
                Err(refuse(ExceptionKind::Overloaded, Line::KernelBytes.exhausted()))
            }
            Sent::NoMemory(NoMemory::Machine) => Err(refuse(
                ExceptionKind::Overloaded,
                "no memory for the ring of the process's output: it may work when others have ended",
            )),
        }
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
    use core_ledger::ChargeError;
    extern crate std;
    use std::vec::Vec;

    #[derive(Default)]
    struct Line {
        out: Vec<u8>,
        input: Vec<u8>,
        waits: Option<usize>,
        refuses: Option<Sent>,
    }

    impl Host for Line {
        fn send(&mut self, bytes: &[u8]) -> Sent {
            if let Some(refusal) = self.refuses {
                return refusal;
            }
            self.out.extend(bytes);
            Sent::Taken
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
    fn a_write_without_room_waits_or_is_refused_with_what_would_be_right() {
        let write = |refusal| {
            let mut line = Line { refuses: Some(refusal), ..Line::default() };
            Console::new(&mut line).write(WriteParams { bytes: b"text" })
        };
        assert_eq!(write(Sent::Later), Err(NoResult::Later));
        for (refusal, sentence) in [
            (Sent::TooMany, "let one complete"),
            (Sent::NoMemory(NoMemory::Machine), "when others have ended"),
            (Sent::NoMemory(NoMemory::Account(ChargeError::Closed)), "kernelBytes"),
        ] {
            let Err(NoResult::Exception(exception)) = write(refusal) else { panic!("{refusal:?}") };
            assert_eq!(exception.kind(), ExceptionKind::Overloaded);
            assert!(exception.message().contains(sentence), "{}", exception.message());
        }
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
