//! How a guest program declares its tests and reports them.
//!
//! A program under test, be it a kernel or a user program, has one [`Suite`]: a table of
//! stable ids and functions. [`main`] plans them all, runs them in order and leaves through
//! its [`Port`] with the verdict. A test gets a [`T`]: assertions that record a failure with
//! place and values, metrics, and a way to say that the test cannot run here.
//!
//! ```
//! # use test_kit::{check, require_eq, Outcome, Suite, T, Test};
//! const SUITE: Suite<()> = Suite::new(&[Test::new("arith.add", add)]);
//!
//! fn add(t: &mut T<'_, ()>) -> Outcome {
//!     require_eq!(t, 2 + 2, 4);
//!     check!(t, 2 < 4, "two is small");
//!     t.metric("cost", 3, "instructions");
//!     Ok(())
//! }
//! ```
//!
//! `check…!` records a failure and goes on; `require…!` records it and ends the test. A
//! panic is not an assertion: the panicking kernel ends the run with its own exit code, and
//! the test that was running is judged by that. A last test that means to end the machine
//! leaves its [`LastWords`] where a panic or fault handler finds them.
//!
//! The kit allocates nothing and contains no `unsafe`: what touches ports is the program's
//! [`Port`].
#![no_std]

mod assert;
mod last_words;
mod suite;
mod text;

pub use abi_report::{Exit, Sink};
pub use assert::{Ended, Outcome, T};
pub use last_words::LastWords;
pub use suite::{Port, Suite, Test, main, run};
