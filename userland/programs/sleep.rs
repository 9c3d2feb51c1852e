//! Sleeps for so many milliseconds.
#![no_std]
#![no_main]

use capos_rt::{Env, Error, println};
use schema::timer;

capos_rt::main!(main);

const NS_PER_MILLISECOND: u64 = 1_000_000;

fn main(env: &Env) -> Result<i64, Error> {
    let Some(Ok(milliseconds)) = env.arguments().next().map(str::parse::<u32>) else {
        println!(env, "sleep takes a number of milliseconds: sleep 500");
        return Ok(1);
    };
    let mut timer = timer::Client::new(env.io.caller(), env.cap("timer", timer::INTERFACE_ID)?);
    timer.sleep(u64::from(milliseconds) * NS_PER_MILLISECOND)?;
    Ok(0)
}
