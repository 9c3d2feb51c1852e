//! A program with fibers and without a declaration of their stacks.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::string::ToString;

use capos_rt::Env;
use fiber::{BuildError, Runtime, Thread};
use fiber_rt::SystemError;

capos_rt::main!(main);
capos_heap::heap!(1 << 20);

fn main(env: &'static Env) -> i64 {
    let refused = Runtime::builder().workers(1).build().map(|_| ());
    if refused != Err(BuildError::System(SystemError::NoStacks)) {
        return 1;
    }
    if Thread::spawn("none", || ()).map(|_| ()) != Err(SystemError::NoStacks) {
        return 2;
    }
    let text = SystemError::NoStacks.to_string();
    capos_rt::println!(env, "{text}");
    if text.contains("fiber::stacks!(") { 0 } else { 3 }
}
