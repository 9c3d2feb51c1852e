//! The smallest program: it says hello if it has a console, and ends.
#![no_std]
#![no_main]

use capos_rt::{Env, println};

capos_rt::main!(main);

fn main(env: &Env) -> i64 {
    println!(env, "hello");
    1
}
