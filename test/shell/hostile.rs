//! A program that means its shell no good, through the only thing it has of it: the console.
//!
//! `garbage`: calls that say nothing; `reads`: all reads a thread can have under way; `mint`: what is the owner's of an
//! endpoint alone; `flood`: writes from four threads, for ever.
#![no_std]
#![no_main]

use abi_types::{CapSlot, InterfaceTag, Status};
use capos_rt::caller::call;
use capos_rt::io::{PENDING, status_of};
use capos_rt::out::Out;
use capos_rt::thread::Threads;
use capos_rt::{Env, Error, println};
use schema::console::{self, ReadParams, methods::Read};
use schema::endpoint;

capos_rt::main!(main);

capos_rt::stacks! {
    static STACKS: [16384; 3];
}

fn main(env: &Env) -> Result<i64, Error> {
    let console = env.cap("console", console::INTERFACE_ID)?;
    match env.arguments().next().unwrap_or_default() {
        "garbage" => garbage(env, console),
        "reads" => reads(env, console)?,
        "mint" => mint(env, console),
        "flood" => {
            let threads = Threads::of(&env.caps)?;
            for stack in &STACKS {
                let _never_joined = threads.spawn(&env.io, stack, flood, 0)?;
            }
            flood(env);
        }
        _ => return Ok(1),
    }
    Ok(0)
}

/// A call with these words as its parameters, which may be no message.
fn say(env: &Env, console: CapSlot, method: u16, words: &[u64]) {
    let sqe = call(console, console::INTERFACE_TAG, method, (words.len() * 8) as u32);
    let status = match env.io.run(sqe, words, &mut [0; 16]) {
        Ok(cqe) => status_of(&cqe),
        Err(status) => status,
    };
    let refused = if status == Status::Ok { "taken" } else { "refused" };
    println!(env, "hostile: method {method} with {} words is {refused}", words.len());
}

fn garbage(env: &Env, console: CapSlot) {
    say(env, console, 0, &[u64::MAX; 16]);
    say(env, console, 1, &[0x1234_5678_9abc_def0; 3]);
    say(env, console, 99, &[0]);
    // A read of 0 bytes, as the schema says it.
    let nothing = console::Client::new(env.io.caller(), console).read(0).map(|_| ());
    println!(
        env,
        "hostile: a read of nothing is {}",
        if nothing.is_err() { "refused" } else { "taken" }
    );
    // More than the shell has room for comes by address, again and again.
    let mut large = console::Client::new(env.io.large(), console);
    let refused = (0..50).filter(|_| large.write(&[b'x'; 500]).is_err()).count();
    println!(env, "hostile: {refused} of 50 writes of 500 bytes were not taken");
    println!(env, "hostile: garbage done");
}

fn reads(env: &Env, console: CapSlot) -> Result<(), Error> {
    let mut under_way = [const { None }; PENDING];
    for place in &mut under_way {
        *place = Some(env.io.start::<Read>(console, &ReadParams { capacity: 8 })?);
    }
    env.io.flush();
    // The shell answers calls in their order: once this is shown the reads were looked at.
    println!(env, "hostile: reads");
    let refused = under_way.iter().flatten().filter(|read| env.io.is_done(read)).count();
    println!(env, "hostile: {refused} of {PENDING} reads were refused");
    Ok(())
}

fn mint(env: &Env, console: CapSlot) {
    let mut owner = endpoint::Client::new(env.io.caller(), console);
    let minted = owner.mint_facet(1, 0).map(|_| ());
    let revoked = owner.revoke_facets(0).map(|_| ());
    let tag = InterfaceTag::of(endpoint::INTERFACE_ID);
    match (minted, revoked) {
        (Err(_), Err(_)) => println!(env, "hostile: minted nothing as {:?}", tag.is_some()),
        _ => println!(env, "hostile: the console is the shell's endpoint"),
    }
}

fn flood(env: &Env) -> i64 {
    let Ok(console) = env.cap("console", console::INTERFACE_ID) else { return 1 };
    loop {
        let mut out = Out::new(&env.io, console);
        let _written = out.push(b"flood flood flood flood flood flood flood flood\n");
    }
}
