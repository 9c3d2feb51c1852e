//! The shell, over the kernel: `shell_core` with a machine under it.
//!
//! One thread waits for everything at once: a byte that is typed, a call of a program on its console, the end of a
//! process. What it may start, and with what, is in [`start`]; how it is a console, in [`terminal`].
#![no_std]
#![no_main]
#![allow(
    clippy::result_large_err,
    reason = "a sentence is where it is written: there is no heap to put it into"
)]

mod machine;
mod measure;
mod start;
mod terminal;

use arrayvec::ArrayVec;
use capos_rt::{Env, Error};
use shell_core::shell::MOST_PROGRAMS;
use shell_core::{Program, Shell};

capos_rt::main!(main);

/// What the names of variables begin with that name a program; the value says what it does.
const PROGRAM: &str = "program/";

fn main(env: &'static Env) -> Result<i64, Error> {
    let mut machine = machine::Kernel::new(env)?;
    let programs: ArrayVec<Program, MOST_PROGRAMS> = env
        .environment()
        .filter_map(|(variable, about)| {
            let name = variable.strip_prefix(PROGRAM)?;
            Some(Program { name, about })
        })
        .take(MOST_PROGRAMS)
        .collect();
    Ok(Shell::new(&mut machine, &programs).run())
}
