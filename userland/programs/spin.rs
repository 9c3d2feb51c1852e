//! Computes for ever, with as many threads as it is told to use: something for the scheduler to share out.
#![no_std]
#![no_main]

use capos_rt::thread::Threads;
use capos_rt::{Env, Error, println};

capos_rt::main!(main);

/// Threads beside the first.
const MOST: usize = 7;

capos_rt::stacks! {
    static STACKS: [8192; MOST];
}

fn main(env: &Env) -> Result<i64, Error> {
    let wanted = match env.arguments().next().map(str::parse::<usize>) {
        None => 1,
        Some(Ok(wanted)) if (1..=MOST + 1).contains(&wanted) => wanted,
        Some(_) => {
            println!(env, "spin takes a number of threads from 1 to {}: spin 4", MOST + 1);
            return Ok(1);
        }
    };
    println!(env, "spin: computes for ever; threads: {wanted}");
    let threads = Threads::of(&env.caps)?;
    for stack in STACKS.iter().take(wanted - 1) {
        let _never_joined = threads.spawn(&env.io, stack, |_| forever(), 0)?;
    }
    Ok(forever())
}

fn forever() -> i64 {
    loop {
        core::hint::spin_loop();
    }
}
