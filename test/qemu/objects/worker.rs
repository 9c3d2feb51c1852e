//! What is looked at: does what its first argument says.
//!
//! `exit N`; `sleep` (for good); `threads` (three that sleep); `storm WEIGHT` (starts children of that weight, named after
//! it, and kills or awaits them, for good); `logout` (ends the session it is given: 1 if that was live); `login` (waits
//! a little, and says what it finds of its session before and after its end).
#![no_std]
#![no_main]

use capos_rt::process::{Command, DEFAULT_PROFILE, Processes, copied};
use capos_rt::thread::Threads;
use capos_rt::{Env, Error};
use schema::manifest::ResourceProfile;
use schema::{timer, user_session};

capos_rt::main!(main);

capos_rt::stacks! {
    /// For threads that sleep.
    static STACKS: [8192; 2];
}

fn main(env: &Env) -> Result<i64, Error> {
    let mut arguments = env.arguments();
    let what = arguments.next().unwrap_or("exit");
    let number = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(0);
    match what {
        "exit" => Ok(number),
        "sleep" => sleep(env),
        "threads" => {
            let threads = Threads::of(&env.caps)?;
            for stack in &STACKS {
                let _joined_by_nobody =
                    threads.spawn(&env.io, stack, |env| sleep(env).unwrap_or(1), 0)?;
            }
            sleep(env)
        }
        "storm" => storm(env, number as u16),
        "logout" => {
            let session = env.cap("session", user_session::INTERFACE_ID)?;
            let ended = user_session::Client::new(env.io.caller(), session).logout()?;
            Ok(ended.was_live.into())
        }
        "login" => login(env),
        _ => Ok(77),
    }
}

fn sleep(env: &Env) -> Result<i64, Error> {
    let slot = env.cap("timer", timer::INTERFACE_ID)?;
    timer::Client::new(env.io.caller(), slot).sleep(u64::MAX / 4)?;
    Ok(2)
}

/// A bit for each thing that is as it is to be.
fn login(env: &Env) -> Result<i64, Error> {
    let timer = env.cap("timer", timer::INTERFACE_ID)?;
    timer::Client::new(env.io.caller(), timer).sleep(20_000_000)?;
    let slot = env.cap("session", user_session::INTERFACE_ID)?;
    let mut session = user_session::Client::new(env.io.caller(), slot);
    let before = session.info()?;
    let (first, second) = (session.logout()?, session.logout()?);
    let bits = [before.live, first.was_live, second.was_live, before.processes == 1];
    Ok(bits.into_iter().enumerate().map(|(bit, holds)| i64::from(holds) << bit).sum())
}

/// What a child of a storm may use.
const SMALL: ResourceProfile = ResourceProfile {
    cap_slots: 8,
    threads: 2,
    kernel_stack_pages: 64,
    frames: 200,
    sleep_waiters: 2,
    ring_entries: 8,
    kernel_bytes: 65_536,
    ..DEFAULT_PROFILE
};

/// Children that come and go, one half killed, the other by themselves.
fn storm(env: &Env, weight: u16) -> Result<i64, Error> {
    let processes = Processes::of(&env.caps)?;
    let timer = env.cap("timer", timer::INTERFACE_ID)?;
    let grants = [copied("timer", timer)];
    let name = if weight == 10 { "life-10" } else { "life-20" };
    for turn in 0_u64.. {
        let what = if turn.is_multiple_of(2) { "exit" } else { "sleep" };
        let command = Command {
            arguments: &[what],
            grants: &grants,
            profile: SMALL,
            weight,
            ..Command::new(name, "worker.elf")
        };
        let child = processes.spawn(&env.io, &command)?;
        if what == "sleep" {
            child.kill(&env.io, i64::from(weight))?;
        }
        let _ended = child.wait(&env.io)?;
        let _ = child.release(&env.io);
    }
    Ok(0)
}
