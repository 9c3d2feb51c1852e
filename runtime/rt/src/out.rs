//! Text to a console capability: collected, then written a piece at a time.
//!
//! A piece is what a console takes with one call, and fits an inline slot, so that a program can serve the interface
//! as well as the kernel.

use core::fmt;

use abi_ring::{INLINE_WORDS, Memory};
use abi_types::CapSlot;
use schema::console;

use crate::caller::Caller;
use crate::io::Io;
use crate::ring::Enter;

/// Text that is collected before it is written.
pub const TEXT_BYTES: usize = 1024;
/// Text of one call: what the kernel's console takes at most.
pub const PIECE_BYTES: usize = 64;

/// Collects text for a console; writes it when full, when told, and when dropped.
#[derive(Debug)]
pub struct Out<'io, M: Memory, K: Enter> {
    caller: Caller<'io, INLINE_WORDS, M, K>,
    console: CapSlot,
    text: [u8; TEXT_BYTES],
    used: usize,
}

impl<'io, M: Memory, K: Enter> Out<'io, M, K> {
    /// Text for `console`.
    pub const fn new(io: &'io Io<M, K>, console: CapSlot) -> Self {
        Self { caller: Caller::new(io), console, text: [0; TEXT_BYTES], used: 0 }
    }

    /// Takes bytes.
    pub fn push(&mut self, mut bytes: &[u8]) -> fmt::Result {
        while !bytes.is_empty() {
            if self.used == TEXT_BYTES {
                self.flush()?;
            }
            let room = self.text.get_mut(self.used..).unwrap_or_default();
            let (now, later) = bytes.split_at(bytes.len().min(room.len()));
            room.iter_mut().zip(now).for_each(|(to, byte)| *to = *byte);
            self.used += now.len();
            bytes = later;
        }
        Ok(())
    }

    /// Writes what was collected. What the console did not take is dropped with the error.
    pub fn flush(&mut self) -> fmt::Result {
        let mut rest = self.text.get(..self.used).unwrap_or_default();
        self.used = 0;
        let mut console = console::Client::new(&mut self.caller, self.console);
        while !rest.is_empty() {
            let piece = rest.get(..PIECE_BYTES).unwrap_or(rest);
            let written = console.write(piece).map_err(|_| fmt::Error)?.written;
            rest = match rest.get(written as usize..) {
                Some(rest) if written > 0 => rest,
                _ => return Err(fmt::Error),
            };
        }
        Ok(())
    }
}

impl<M: Memory, K: Enter> fmt::Write for Out<'_, M, K> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes())
    }
}

impl<M: Memory, K: Enter> Drop for Out<'_, M, K> {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = self.flush();
    }
}

/// Prints a line to the console, if the program has one: `println!(env, "{} calls", count)`.
#[macro_export]
macro_rules! println {
    ($env:expr) => { $env.print(::core::format_args!("\n")) };
    ($env:expr, $format:literal $($arguments:tt)*) => {
        $env.print(::core::format_args!("{}\n", ::core::format_args!($format $($arguments)*)))
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CONSOLE, with_io};
    use core::fmt::Write;
    use std::string::String;

    /// The bytes of each write the console was asked for.
    fn written(asked: &[String]) -> std::vec::Vec<usize> {
        asked.iter().map(|asked| asked.matches(", ").count() + 1).collect()
    }

    #[test]
    fn text_of_several_pieces_is_one_call() {
        with_io(
            8,
            |_| (),
            |io| {
                let mut out = Out::new(io, CONSOLE);
                write!(out, "{}-{}\n", 1, "two").unwrap();
            },
            |kernel, ()| {
                let expected = std::format!("{:?}", console::WriteParams { bytes: b"1-two\n" });
                assert_eq!(kernel.service.asked, [expected]);
            },
        );
    }

    #[test]
    fn text_longer_than_a_call_is_several() {
        with_io(
            8,
            |_| (),
            |io| Out::new(io, CONSOLE).push(&[b'x'; 2 * TEXT_BYTES + 5]).unwrap(),
            |kernel, ()| {
                let written = written(&kernel.service.asked);
                assert_eq!((written.len(), written[32]), (33, 5));
                assert!(written[..32].iter().all(|bytes| *bytes == PIECE_BYTES));
            },
        );
    }

    #[test]
    fn a_console_that_takes_little_gets_the_rest_again() {
        with_io(
            8,
            |kernel| kernel.console_takes = 24,
            |io| Out::new(io, CONSOLE).push(&[b'x'; 100]).unwrap(),
            |kernel, ()| assert_eq!(written(&kernel.service.asked), [64, 64, 52, 28, 4]),
        );
    }

    #[test]
    fn a_console_that_takes_nothing_is_an_error() {
        with_io(
            8,
            |kernel| kernel.console_takes = 0,
            |io| {
                let mut out = Out::new(io, CONSOLE);
                out.push(b"text").unwrap();
                assert_eq!(out.flush(), Err(fmt::Error));
            },
            |kernel, ()| assert_eq!(kernel.service.asked.len(), 1),
        );
    }

    #[test]
    fn without_a_console_there_is_an_error_and_no_end() {
        let nothing = CapSlot::new(40, 1);
        with_io(
            8,
            |_| (),
            |io| {
                let mut out = Out::new(io, nothing);
                assert_eq!(out.push(&[b'x'; 2 * TEXT_BYTES]), Err(fmt::Error));
                assert_eq!(out.flush(), Ok(()));
            },
            |kernel, ()| assert_eq!(kernel.service.asked.len(), 0),
        );
    }
}
