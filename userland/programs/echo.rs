//! Prints its arguments with a blank between them.
#![no_std]
#![no_main]

use core::fmt::Write;

use capos_rt::out::Out;
use capos_rt::{Env, Error};
use schema::console;

capos_rt::main!(main);

fn main(env: &Env) -> Result<i64, Error> {
    let mut out = Out::new(&env.io, env.cap("console", console::INTERFACE_ID)?);
    let mut between = "";
    let mut written = Ok(());
    for argument in env.arguments() {
        written = written.and_then(|()| write!(out, "{between}{argument}"));
        between = " ";
    }
    Ok(i64::from(written.and_then(|()| out.write_str("\n")).is_err()))
}
