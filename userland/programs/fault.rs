//! Overflows its stack: the kernel ends it with a report, and nothing else notices.
#![no_std]
#![no_main]

use capos_rt::{Env, println};

capos_rt::main!(main);

fn main(env: &Env) -> i64 {
    println!(env, "fault: calls itself until its stack is used up");
    deeper(0)
}

/// Each call keeps something on the stack that the one after it looks at.
#[inline(never)]
fn deeper(depth: i64) -> i64 {
    let kept = core::hint::black_box([depth; 32]);
    // The end of the stack is reached long before.
    if kept.contains(&i64::MAX) {
        return depth;
    }
    deeper(depth + 1) + kept.iter().sum::<i64>()
}
