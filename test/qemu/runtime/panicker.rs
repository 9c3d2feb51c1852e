//! A service that panics when it is called, on a thread that is not its process's first.
#![no_std]
#![no_main]

use capos_rt::thread::Threads;
use capos_rt::{Env, Error, serve};

capos_rt::main!(main);

capos_rt::stacks! {
    static STACK: [32768; 1];
}

fn main(env: &Env) -> Result<i64, Error> {
    Threads::of(&env.caps)?.spawn(&env.io, &STACK[0], receive, 0)?.join(&env.io)
}

fn receive(env: &Env) -> i64 {
    let Ok(requests) = env.cap("requests", schema::endpoint::INTERFACE_ID) else { return 1 };
    serve(&env.io, requests, |call, _| panic!("method {} was called", call.method));
    2
}
