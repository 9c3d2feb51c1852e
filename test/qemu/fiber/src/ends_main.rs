//! Programs whose fibers end them: the name of a grant says how.
#![no_std]
#![no_main]

extern crate alloc;

use capos_rt::Env;
use fiber::{Runtime, nursery, yield_now};

capos_rt::main!(main);
capos_heap::heap!(2 << 20);

fn main(env: &'static Env) -> i64 {
    let caps = env.caps;
    let has = |name: &str| caps.named(name).is_some();
    let built = Runtime::builder().workers(2).stack_bytes(16 << 10).build();
    let runtime = match built {
        Ok(runtime) => runtime,
        Err(error) => {
            capos_rt::println!(env, "{error}");
            return 3;
        }
    };
    runtime.run(|| {
        nursery(|n| {
            // Others are at work meanwhile.
            for _ in 0..4 {
                n.spawn(|| while yield_now().is_ok() {});
            }
            if has("panic") {
                let number = env_number(7);
                n.spawn(move || {
                    fiber::name("the doomed");
                    yield_now().unwrap();
                    panic!("it broke: {number}");
                });
            } else if has("overflow") {
                n.spawn(|| {
                    fiber::name("too deep");
                    let mut first = [1; 24];
                    let sum = dive(core::ptr::from_ref(&first).addr(), &mut first);
                    yield_now().unwrap();
                    assert!(sum > 0);
                });
            } else if has("memory") {
                n.spawn(|| {
                    fiber::name("wants much");
                    alloc::vec![1u8; 64 << 20].len()
                });
            } else {
                n.cancel();
            }
        });
    });
    0
}

/// A number the compiler does not see through.
fn env_number(number: u32) -> u32 {
    core::hint::black_box(number)
}

/// Bytes from a fiber's first frame to beyond the end of its stack, and not beyond what is below that.
const TOO_DEEP: usize = 17_000;

/// Calls itself until it is that far below `start`.
#[inline(never)]
fn dive(start: usize, above: &mut [u64; 24]) -> u64 {
    let mut mine = *core::hint::black_box(above);
    mine[1] += 1;
    let is_deep = start - core::ptr::from_ref(&mine).addr() > TOO_DEEP;
    let below = if is_deep { 0 } else { dive(start, &mut mine) };
    below + core::hint::black_box(&mine).iter().sum::<u64>()
}
