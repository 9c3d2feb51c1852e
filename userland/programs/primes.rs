//! Counts primes by trial division, with as many threads as it is told to use.
#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU64, Ordering};

use capos_rt::thread::{Thread, Threads};
use capos_rt::{Env, Error, now_ns, println};

capos_rt::main!(main);

/// Numbers that are looked at: those below.
const LIMIT: u64 = 1_000_000;
/// Numbers that a thread takes at a time.
const PORTION: u64 = 1_000;
/// Threads beside the first.
const MOST: usize = 7;

capos_rt::stacks! {
    static STACKS: [16384; MOST];
}

/// The first number that no thread has taken, and the primes that were found.
static NEXT: AtomicU64 = AtomicU64::new(0);
static FOUND: AtomicU64 = AtomicU64::new(0);

fn main(env: &Env) -> Result<i64, Error> {
    let wanted = match env.arguments().next().map(str::parse::<usize>) {
        None => 1,
        Some(Ok(wanted)) if (1..=MOST + 1).contains(&wanted) => wanted,
        Some(_) => {
            println!(env, "primes takes a number of threads from 1 to {}: primes 4", MOST + 1);
            return Ok(1);
        }
    };
    let began_ns = now_ns();
    let threads = Threads::of(&env.caps)?;
    let mut others: [Option<Thread>; MOST] = [const { None }; MOST];
    for (other, stack) in others.iter_mut().zip(&STACKS).take(wanted - 1) {
        *other = Some(threads.spawn(&env.io, stack, |_| count(), 0)?);
    }
    count();
    for other in others.into_iter().flatten() {
        other.join(&env.io)?;
    }
    let took_ms = (now_ns() - began_ns) / 1_000_000;
    let found = FOUND.load(Ordering::Relaxed);
    println!(env, "{found} primes below {LIMIT}, in {took_ms} ms; threads: {wanted}");
    Ok(0)
}

/// Takes portions until none is left.
fn count() -> i64 {
    loop {
        let from = NEXT.fetch_add(PORTION, Ordering::Relaxed);
        if from >= LIMIT {
            return 0;
        }
        let found = (from..from + PORTION).filter(|number| is_prime(*number)).count();
        FOUND.fetch_add(found as u64, Ordering::Relaxed);
    }
}

fn is_prime(number: u64) -> bool {
    let divides = |divisor: &u64| number.is_multiple_of(*divisor);
    number >= 2 && !(2..).take_while(|divisor| divisor * divisor <= number).any(|d| divides(&d))
}
