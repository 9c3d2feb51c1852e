//! The shell: what a line means, what its commands do, which programs it started. Everything but the machine.
//!
//! * [`words`]: a line becomes words.
//! * [`commands`]: the table of commands, one file each.
//! * [`jobs`]: the programs that were started.
//! * [`shell`]: a person's lines, in turn with what the programs write, read and come to.
//! * [`system`]: what the shell asks of the machine; the program implements it over the kernel, tests over a script.
//! * [`text`]: sentences and numbers for people.
//!
//! The contract: whatever is typed or written, there is a prompt again; only `logout`, `poweroff` and the end of
//! input end the shell. Wrong input is one sentence that says what would be right, and changes nothing.
//!
//! The shell is its programs' console (ADR 371):
//! what they write passes through it, and it alone reads the keyboard.
#![no_std]
#![allow(
    clippy::result_large_err,
    reason = "a sentence is where it is written: there is no heap to put it into"
)]

#[cfg(test)]
extern crate std;

mod candidates;
pub mod commands;
pub mod jobs;
pub mod shell;
pub mod system;
pub mod text;
pub mod words;

pub use commands::COMMANDS;
pub use shell::Shell;
pub use system::{Happening, Program, System};
pub use text::Sentence;
