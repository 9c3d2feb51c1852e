//! A line editor for a console of which little is known: bytes typed in, text to show out.
//!
//! * [`keys`]: bytes become keys, one byte at a time, whatever was lost or never finished.
//! * [`line`](mod@line): one line of bounded length and the cursor in it.
//! * [`history`]: lines that were entered.
//! * [`editor`]: what each key does, and how the console comes to show it.
//!
//! The console is asked for nothing and told nothing but text, `\r`, `\n` and blanks: a serial line, a pipe and the
//! kernel's own screen, which knows no escape sequences, show the same. What a line shows is therefore painted
//! over, in one row: a line that is longer than the row scrolls sideways.
//!
//! Neither allocation nor clock nor console in here; decided in ADR 370.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod editor;
pub mod history;
pub mod keys;
pub mod line;

pub use editor::{Candidates, Editor, Event};
pub use keys::{Key, Keys};
pub use line::{LINE_BYTES, Line};
