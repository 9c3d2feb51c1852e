//! The smallest program: says hello.
#![no_std]
#![no_main]

use capos_rt::{Env, println};

capos_rt::main!(main);

fn main(env: &Env) {
    println!(env, "hello, {}", env.arguments().next().unwrap_or("world"));
}
