//! What is spawned: does what its first argument says.
//!
//! `exit N`; `fault`; `sleep` (for good); `spin`; `look` (exits with what it finds of its arguments, environment and
//! capabilities); `threads` (16 threads that sleep); `bomb` (spawns itself as long as it can); `orphan` (spawns a
//! sleeper and ends).
#![no_std]
#![no_main]

use capos_rt::process::{Command, DEFAULT_PROFILE, Processes, copied};
use capos_rt::thread::Threads;
use capos_rt::{Env, Error};
use schema::manifest::ResourceProfile;
use schema::{process_spawner, timer};

capos_rt::main!(main);

capos_rt::stacks! {
    /// For threads that sleep.
    static STACKS: [8192; 15];
}

fn main(env: &Env) -> Result<i64, Error> {
    let mut arguments = env.arguments();
    match arguments.next().unwrap_or("exit") {
        "exit" => Ok(number(arguments.next())),
        "fault" => Ok(test_bare::fault::read(0x10).into()),
        "sleep" => sleep(env),
        "spin" => loop {
            core::hint::spin_loop();
        },
        "look" => Ok(look(env)),
        "threads" => {
            let threads = Threads::of(&env.caps)?;
            for stack in &STACKS {
                let _joined_by_nobody =
                    threads.spawn(&env.io, stack, |env| sleep(env).unwrap_or(1), 0)?;
            }
            sleep(env)
        }
        "bomb" => Ok(bomb(env)),
        "orphan" => {
            let processes = Processes::of(&env.caps)?;
            let timer = env.cap("timer", timer::INTERFACE_ID)?;
            let grants = [copied("timer", timer)];
            let command = Command {
                arguments: &["sleep"],
                grants: &grants,
                profile: SMALL,
                ..Command::new("orphan", "child.elf")
            };
            let _goes_on = processes.spawn(&env.io, &command)?;
            Ok(9)
        }
        _ => Ok(77),
    }
}

/// What a child of a child may use.
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

fn number(text: Option<&str>) -> i64 {
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn sleep(env: &Env) -> Result<i64, Error> {
    let slot = env.cap("timer", timer::INTERFACE_ID)?;
    timer::Client::new(env.io.caller(), slot).sleep(u64::MAX / 4)?;
    Ok(2)
}

/// A bit for each thing that is as the test says.
fn look(env: &Env) -> i64 {
    let arguments = env.arguments().eq(["look", "a b", "", "naïve"]);
    let environment = env.environment().eq([("A", "1"), ("B", "x=y")]);
    let variable = env.variable("B") == Some("x=y") && env.variable("C").is_none();
    let names = env.caps.iter().map(|(name, _)| name).eq(["clock", "threads", "space"]);
    let clock = env
        .cap("clock", timer::INTERFACE_ID)
        .is_ok_and(|slot| timer::Client::new(env.io.caller(), slot).now().is_ok());
    [arguments, environment, variable, names, clock]
        .into_iter()
        .enumerate()
        .map(|(bit, holds)| i64::from(holds) << bit)
        .sum()
}

/// Spawns itself until it is refused; how many it was.
fn bomb(env: &Env) -> i64 {
    let Ok(processes) = Processes::of(&env.caps) else { return -1 };
    let Ok(spawner) = env.cap("processes", process_spawner::INTERFACE_ID) else { return -2 };
    let grants = [copied("processes", spawner)];
    let command = Command {
        arguments: &["bomb"],
        grants: &grants,
        profile: SMALL,
        ..Command::new("bomb", "child.elf")
    };
    let mut count = 0;
    while processes.spawn(&env.io, &command).is_ok() {
        count += 1;
    }
    count
}
