//! How children end, who hears of it, and that nothing is left.

use abi_types::ExceptionKind;
use capos_rt::now_ns;
use capos_rt::process::{Command, copied, own};
use schema::manifest::ResourceProfile;
use schema::process_handle;
use schema::process_handle_capnp::ExitReason;
use schema::process_spawner_capnp::GrantSource;
use schema::system_info_capnp::ImageProfile;
use test_kit::{Outcome, check, check_eq, require, require_ok, require_some};

use crate::{PROFILE, Run, kind_of};

/// What spawn, exit and wait of a small program may take together, in a release image: no more than they do. 60,000
/// would be right, and are not reached (docs/book/figures.md).
const MOST_OF_A_LIFE: u64 = 125_000;
/// The same for a kill of a process with 16 threads, up to the answer of who waits for it.
const MOST_OF_A_KILL: u64 = 102_000;

/// The code arrives once the child is gone, and again.
pub fn exit_code(t: &mut Run<'_>) -> Outcome {
    let io = t.env.program.io();
    for code in ["0", "1", "-7", "9223372036854775807", "-9223372036854775808"] {
        let child = require_ok!(t, t.env.child(&["exit", code]));
        let ended = require_ok!(t, child.wait(io));
        check_eq!(t, Some(ended.exit_code), code.parse().ok());
        check_eq!(t, ended.reason, ExitReason::Exited);
        check_eq!(t, require_ok!(t, child.wait(io)).exit_code, ended.exit_code);
        let seen = require_ok!(t, child.exit_code(io));
        check_eq!(t, (seen.exited, seen.exit_code), (true, ended.exit_code));
        check_eq!(t, require_ok!(t, child.info(io)).live_threads, 0);
        check!(t, child.release(io).is_ok());
        check!(t, child.wait(io).is_err());
    }
    Ok(())
}

/// A fault ends the child alone, with its code and reason.
pub fn fault(t: &mut Run<'_>) -> Outcome {
    let io = t.env.program.io();
    let bystander = require_ok!(t, t.env.child(&["sleep"]));
    let child = require_ok!(t, t.env.child(&["fault"]));
    let ended = require_ok!(t, child.wait(io));
    check_eq!(t, (ended.exit_code, ended.reason), (-256 - 14, ExitReason::Faulted));
    check!(t, !require_ok!(t, bystander.exit_code(io)).exited);
    check!(t, bystander.kill(io, 0).is_ok());
    check_eq!(t, require_ok!(t, bystander.wait(io)).reason, ExitReason::Killed);
    check!(t, child.release(io).is_ok() && bystander.release(io).is_ok());
    Ok(())
}

/// A kill ends what sleeps, computes or has many threads; a second one changes nothing.
pub fn kill(t: &mut Run<'_>) -> Outcome {
    let io = t.env.program.io();
    for what in ["sleep", "spin"] {
        let child = require_ok!(t, t.env.child(&[what]));
        t.env.program.sleep(1_000_000);
        check!(t, !require_ok!(t, child.exit_code(io)).exited);
        check!(t, child.kill(io, 12).is_ok());
        check!(t, child.kill(io, 13).is_ok());
        let ended = require_ok!(t, child.wait(io));
        check_eq!(t, (ended.exit_code, ended.reason), (12, ExitReason::Killed));
        check!(t, child.kill(io, 14).is_ok());
        check_eq!(t, require_ok!(t, child.wait(io)).exit_code, 12);
        check!(t, child.release(io).is_ok());
    }
    Ok(())
}

/// One call waits; it can be given up, and another waits then.
pub fn waits(t: &mut Run<'_>) -> Outcome {
    let io = t.env.program.io();
    let child = require_ok!(t, t.env.child(&["sleep"]));
    let first = require_ok!(
        t,
        io.start::<process_handle::methods::Wait>(child.slot(), &process_handle::WaitParams {})
    );
    check_eq!(t, kind_of(&child.wait(io)), Some(ExceptionKind::Overloaded));
    check!(t, io.cancel(&first).is_ok());
    let mut words = [0; 16];
    let cqe = io.wait(first, &mut words);
    check_eq!(t, capos_rt::io::status_of(&cqe), abi_types::Status::Cancelled);
    let second = require_ok!(
        t,
        io.start::<process_handle::methods::Wait>(child.slot(), &process_handle::WaitParams {})
    );
    check!(t, child.kill(io, 4).is_ok());
    let cqe = io.wait(second, &mut words);
    check_eq!(t, capos_rt::io::status_of(&cqe), abi_types::Status::Ok);
    check_eq!(t, require_ok!(t, child.wait(io)).exit_code, 4);
    check!(t, child.release(io).is_ok());
    Ok(())
}

/// A process does not depend on its handle; a pending wait is answered without one.
pub fn handles(t: &mut Run<'_>) -> Outcome {
    let io = t.env.program.io();
    let child = require_ok!(t, t.env.child(&["exit", "6"]));
    let wait = require_ok!(
        t,
        io.start::<process_handle::methods::Wait>(child.slot(), &process_handle::WaitParams {})
    );
    check!(t, child.release(io).is_ok());
    let mut words = [0; 16];
    let cqe = io.wait(wait, &mut words);
    check_eq!(t, capos_rt::io::status_of(&cqe), abi_types::Status::Ok);
    // A handle of one that is gone names nobody, whoever has its record now.
    let stale = child;
    let next = require_ok!(t, t.env.child(&["sleep"]));
    check!(t, stale.kill(io, 1).is_err() && stale.info(io).is_err());
    check!(t, !require_ok!(t, next.exit_code(io)).exited);
    check!(t, next.kill(io, 0).is_ok() && next.wait(io).is_ok() && next.release(io).is_ok());
    Ok(())
}

/// What may start children of its own.
const LARGE: ResourceProfile = ResourceProfile {
    cap_slots: 64,
    threads: 40,
    kernel_stack_pages: 1280,
    frames: 4000,
    sleep_waiters: 40,
    kernel_bytes: 1 << 20,
    ..PROFILE
};

/// A child that ends before its own child: what it was lent is not back before that one is gone too.
pub fn orphans(t: &mut Run<'_>) -> Outcome {
    let io = t.env.program.io();
    let grants = [copied("processes", t.env.spawner), copied("timer", t.env.timer)];
    let command = Command {
        arguments: &["orphan"],
        grants: &grants,
        profile: LARGE,
        ..Command::new("parent", "child.elf")
    };
    let child = require_ok!(t, t.env.processes.spawn(io, &command));
    check_eq!(t, require_ok!(t, child.wait(io)).exit_code, 9);
    let usage = require_ok!(t, child.usage(io));
    check_eq!(t, (usage.frames.used, usage.frames.lent), (0, 200));
    check!(t, child.release(io).is_ok());
    Ok(())
}

/// A process that spawns itself as often as it can has what it was lent and no more.
pub fn bomb(t: &mut Run<'_>) -> Outcome {
    let io = t.env.program.io();
    let grants = [copied("processes", t.env.spawner)];
    let command = Command {
        arguments: &["bomb"],
        grants: &grants,
        profile: LARGE,
        ..Command::new("bomb", "child.elf")
    };
    let before = require_some!(t, t.env.machine()).frames_free;
    let child = require_ok!(t, t.env.processes.spawn(io, &command));
    let ended = require_ok!(t, child.wait(io));
    // Those of its children that have ended give back what they had, but for the slot of their handle.
    check!(t, ended.exit_code > 0 && ended.exit_code < i64::from(LARGE.cap_slots));
    let after = require_some!(t, t.env.machine()).frames_free;
    check!(t, before.saturating_sub(after) < 4000 + 1280);
    check!(t, child.release(io).is_ok());
    // Others are served meanwhile and afterwards.
    let child = require_ok!(t, t.env.child(&["exit", "1"]));
    check_eq!(t, require_ok!(t, child.wait(io)).exit_code, 1);
    check!(t, child.release(io).is_ok());
    Ok(())
}

/// Children that end by themselves while they are killed, and waited for meanwhile.
pub fn races(t: &mut Run<'_>) -> Outcome {
    let io = t.env.program.io();
    for round in 0..40 {
        let child = require_ok!(t, t.env.child(&["exit", "1"]));
        let wait = require_ok!(
            t,
            io.start::<process_handle::methods::Wait>(child.slot(), &process_handle::WaitParams {})
        );
        for _ in 0..round % 8 {
            t.env.program.yield_now();
        }
        check!(t, child.kill(io, 2).is_ok());
        let mut words = [0; 16];
        let cqe = io.wait(wait, &mut words);
        check_eq!(t, capos_rt::io::status_of(&cqe), abi_types::Status::Ok);
        let ended = require_ok!(t, child.wait(io));
        let expected = match ended.reason {
            ExitReason::Exited => 1,
            _ => 2,
        };
        check_eq!(t, ended.exit_code, expected);
        check!(t, child.release(io).is_ok());
    }
    Ok(())
}

/// A hundred children one after the other leave frames where they were.
pub fn nothing_is_left(t: &mut Run<'_>) -> Outcome {
    let io = t.env.program.io();
    let child = require_ok!(t, t.env.child(&["exit", "1"]));
    check!(t, child.wait(io).is_ok() && child.release(io).is_ok());
    t.env.program.sleep(20_000_000);
    let before = t.env.program.free_frames();
    for _ in 0..100 {
        let child = require_ok!(t, t.env.child(&["exit", "1"]));
        check_eq!(t, require_ok!(t, child.wait(io)).exit_code, 1);
        check!(t, child.release(io).is_ok());
    }
    check_eq!(t, t.env.program.until_frames(before), before);
    check_eq!(t, require_some!(t, t.env.machine()).accounts_not_zero, 0);
    Ok(())
}

/// What a life and a kill cost, in instructions: in the deterministic lane alone.
pub fn cost(t: &mut Run<'_>) -> Outcome {
    let (mut least, mut least_spawn) = (u64::MAX, u64::MAX);
    let io = t.env.program.io();
    for _ in 0..4 {
        let from = now_ns();
        let hello = Command { profile: PROFILE, ..Command::new("hello", "hello.elf") };
        let child = require_ok!(t, t.env.processes.spawn(io, &hello));
        let spawned = now_ns();
        check!(t, child.wait(io).is_ok());
        let took = now_ns() - from;
        least = least.min(took);
        least_spawn = least_spawn.min(spawned - from);
        check!(t, child.release(io).is_ok());
    }
    let grants = [
        copied("timer", t.env.timer),
        own("spawner", GrantSource::ThreadSpawner),
        own("control", GrantSource::ThreadControl),
    ];
    let command = Command {
        arguments: &["threads"],
        grants: &grants,
        // A handle for each of them.
        profile: ResourceProfile { cap_slots: 32, ..PROFILE },
        ..Command::new("threads", "child.elf")
    };
    let child = require_ok!(t, t.env.processes.spawn(io, &command));
    let until = now_ns() + 2_000_000_000;
    while require_ok!(t, child.info(io)).live_threads < 16 {
        require!(t, now_ns() < until);
        t.env.program.sleep(1_000_000);
    }
    t.env.program.sleep(10_000_000);
    let from = now_ns();
    check!(t, child.kill(io, 1).is_ok());
    check!(t, child.wait(io).is_ok());
    let kill = now_ns() - from;
    check!(t, child.release(io).is_ok());
    t.metric("spawn", least_spawn, "instructions");
    t.metric("spawn, exit and wait", least, "instructions");
    t.metric("kill of 16 threads", kill, "instructions");
    if require_some!(t, t.env.machine()).profile == ImageProfile::Release {
        check!(t, least <= MOST_OF_A_LIFE, "{least} instructions for a life");
        check!(t, kill <= MOST_OF_A_KILL, "{kill} instructions for a kill");
    }
    Ok(())
}
