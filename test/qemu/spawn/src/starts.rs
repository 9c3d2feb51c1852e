//! What a child starts with, and what is refused.

use abi_types::{CapSlot, ExceptionKind};
use capos_rt::process::{Command, copied, moved, own};
use schema::process_spawner_capnp::GrantSource;
use schema::{manifest, process_spawner, timer};
use test_kit::{Outcome, check, check_eq, require_ok, require_some};

use crate::{PROFILE, Run, kind_of};

/// A name of 45 bytes.
const LONG: &str = "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn";

/// This program's own, from the manifest.
pub fn own_arguments(t: &mut Run<'_>) -> Outcome {
    check!(t, t.env.program.env.arguments().eq(["first", ""]));
    check!(t, t.env.program.env.environment().eq([("HOME", "/a=b")]));
    Ok(())
}

/// A child finds its arguments, environment and capabilities under the names it was given.
pub fn starts_with(t: &mut Run<'_>) -> Outcome {
    let io = t.env.program.io();
    let grants = [
        copied("clock", t.env.timer),
        own("threads", GrantSource::ThreadSpawner),
        own("space", GrantSource::VirtualMemory),
    ];
    let command = Command {
        arguments: &["look", "a b", "", "naïve"],
        environment: &[("A", "1"), ("B", "x=y")],
        grants: &grants,
        profile: PROFILE,
        ..Command::new("looks", "child.elf")
    };
    let child = require_ok!(t, t.env.processes.spawn(io, &command));
    check_eq!(t, require_ok!(t, child.wait(io)).exit_code, 0b11111);
    check!(t, child.release(io).is_ok());
    // Without anything at all.
    let child = require_ok!(
        t,
        t.env
            .processes
            .spawn(io, &Command { profile: PROFILE, ..Command::new("bare", "child.elf") })
    );
    check_eq!(t, require_ok!(t, child.wait(io)).exit_code, 0);
    check!(t, child.release(io).is_ok());
    Ok(())
}

/// Each wrong argument is refused with its kind, and nothing is left of it.
pub fn wrong_arguments(t: &mut Run<'_>) -> Outcome {
    use ExceptionKind::{Failed, InvalidArgument, Overloaded};
    let io = t.env.program.io();
    let good = Command { profile: PROFILE, ..Command::new("x", "child.elf") };
    let same = [copied("a", t.env.timer), copied("a", t.env.timer)];
    let nameless = [copied("", t.env.timer)];
    let control = [copied("c", t.env.program.control)];
    let empty = [copied("e", CapSlot::new(400, 1))];
    let twice = [moved("a", t.env.timer), copied("b", t.env.timer)];
    let other = [process_spawner::SpawnGrant { interface_id: 77, ..copied("t", t.env.timer) }];
    let own_slot =
        [process_spawner::SpawnGrant { slot_index: 1, ..own("s", GrantSource::ThreadSpawner) }];
    let p = PROFILE;
    let cases: &[(&str, Command<'_>, ExceptionKind)] = &[
        ("no name", Command { name: "", ..good }, InvalidArgument),
        ("long name", Command { name: LONG, ..good }, InvalidArgument),
        ("control character", Command { name: "a\u{7}", ..good }, InvalidArgument),
        ("no module", Command { binary: "none.elf", ..good }, Failed),
        ("the manifest", Command { binary: "manifest.bin", ..good }, Failed),
        ("weight 0", Command { weight: 0, ..good }, InvalidArgument),
        ("weight 1025", Command { weight: 1025, ..good }, InvalidArgument),
        ("above the spawner's weight", Command { weight: 65, ..good }, InvalidArgument),
        (
            "frames",
            Command { profile: manifest::ResourceProfile { frames: 15, ..p }, ..good },
            InvalidArgument,
        ),
        (
            "ring",
            Command { profile: manifest::ResourceProfile { ring_entries: 3, ..p }, ..good },
            InvalidArgument,
        ),
        (
            "ring above the spawner's",
            Command { profile: manifest::ResourceProfile { ring_entries: 128, ..p }, ..good },
            InvalidArgument,
        ),
        (
            "more than the spawner has",
            Command { profile: manifest::ResourceProfile { frames: 50_000, ..p }, ..good },
            Overloaded,
        ),
        (
            "program does not fit",
            Command { profile: manifest::ResourceProfile { frames: 16, ..p }, ..good },
            Overloaded,
        ),
        ("two of a name", Command { grants: &same, ..good }, InvalidArgument),
        ("nameless", Command { grants: &nameless, ..good }, InvalidArgument),
        ("not transferable", Command { grants: &control, ..good }, Failed),
        ("empty slot", Command { grants: &empty, ..good }, Failed),
        ("moved twice", Command { grants: &twice, ..good }, Failed),
        ("another interface", Command { grants: &other, ..good }, InvalidArgument),
        ("own with a slot", Command { grants: &own_slot, ..good }, InvalidArgument),
        ("variable", Command { environment: &[("a=b", "c")], ..good }, InvalidArgument),
    ];
    for (what, command, expected) in cases {
        let refused = t.env.processes.spawn(io, command);
        if kind_of(&refused) != Some(*expected) {
            return t.fail(format_args!("{what}: {refused:?}"));
        }
    }
    // The timer was in a list that was refused, as a move: it is there.
    let mut timer = timer::Client::new(io.caller(), t.env.timer);
    check!(t, timer.now().is_ok());
    Ok(())
}

/// A copy stays with the spawner, a move does not; a failed spawn moves nothing.
pub fn grants(t: &mut Run<'_>) -> Outcome {
    let io = t.env.program.io();
    // A handle is something that can be moved and counted.
    let child = require_ok!(t, t.env.child(&["sleep"]));
    let list = [moved("handle", child.slot()), copied("timer", t.env.timer)];
    let command = Command {
        arguments: &["sleep"],
        grants: &list,
        profile: PROFILE,
        ..Command::new("keeper", "child.elf")
    };
    let refused = t.env.processes.spawn(io, &Command { binary: "none.elf", ..command });
    check!(t, refused.is_err());
    check!(t, child.info(io).is_ok());
    let keeper = require_ok!(t, t.env.processes.spawn(io, &command));
    check!(t, child.info(io).is_err());
    check!(t, keeper.kill(io, 3).is_ok());
    check_eq!(t, require_ok!(t, keeper.wait(io)).exit_code, 3);
    check!(t, keeper.release(io).is_ok());
    // Not killed with who held its handle: it goes on without any, and ends with the system.
    let machine = require_some!(t, t.env.machine());
    check_eq!(t, machine.accounts_not_zero, 0);
    Ok(())
}

/// What is lent is not there for others, and comes back with the child.
pub fn lent(t: &mut Run<'_>) -> Outcome {
    let io = t.env.program.io();
    let half = manifest::ResourceProfile { frames: 15_000, ..PROFILE };
    let list = [copied("timer", t.env.timer)];
    let command = Command {
        arguments: &["sleep"],
        grants: &list,
        profile: half,
        ..Command::new("half", "child.elf")
    };
    let first = require_ok!(t, t.env.processes.spawn(io, &command));
    let second = require_ok!(t, t.env.processes.spawn(io, &command));
    let third = t.env.processes.spawn(io, &command);
    check_eq!(t, kind_of(&third), Some(ExceptionKind::Overloaded));
    let usage = require_ok!(t, first.usage(io));
    check_eq!(t, usage.frames.limit, 15_000);
    check!(t, usage.frames.used > 64 && usage.threads.used == 1);
    let info = require_ok!(t, first.info(io));
    check_eq!(t, info.live_threads, 1);
    check!(t, info.started_ns > 0);
    check!(t, first.kill(io, -1).is_ok());
    check_eq!(t, require_ok!(t, first.wait(io)).exit_code, -1);
    let usage = require_ok!(t, first.usage(io));
    check_eq!(t, (usage.frames.used, usage.threads.used, usage.kernel_bytes.used), (0, 0, 0));
    let again = require_ok!(t, t.env.processes.spawn(io, &command));
    for child in [second, again] {
        check!(t, child.kill(io, 0).is_ok());
        check!(t, child.wait(io).is_ok());
    }
    for child in [first, second, again] {
        check!(t, child.release(io).is_ok());
    }
    Ok(())
}

/// Entries of the manifest, one instance at a time, with the manifest's grants.
pub fn entries(t: &mut Run<'_>) -> Outcome {
    let io = t.env.program.io();
    let processes = t.env.processes;
    let start = |name: &str| processes.start_entry(io, name);
    check_eq!(t, kind_of(&start("nobody")), Some(ExceptionKind::Failed));
    check_eq!(t, kind_of(&start("spawn")), Some(ExceptionKind::Failed));
    for _ in 0..3 {
        let later = require_ok!(t, start("later"));
        check_eq!(t, require_ok!(t, later.wait(io)).exit_code, 31);
        check!(t, later.release(io).is_ok());
    }
    // A client whose server does not run, and then does.
    check_eq!(t, kind_of(&start("client")), Some(ExceptionKind::Failed));
    let server = require_ok!(t, start("server"));
    check_eq!(t, kind_of(&start("server")), Some(ExceptionKind::Failed));
    let client = require_ok!(t, start("client"));
    check_eq!(t, require_ok!(t, client.wait(io)).exit_code, 5);
    check!(t, server.kill(io, 1).is_ok());
    check_eq!(t, require_ok!(t, server.wait(io)).exit_code, 1);
    check_eq!(t, kind_of(&start("client")), Some(ExceptionKind::Failed));
    let server_again = require_ok!(t, start("server"));
    for child in [server, client] {
        check!(t, child.release(io).is_ok());
    }
    check!(t, server_again.kill(io, 1).is_ok());
    check!(t, server_again.wait(io).is_ok() && server_again.release(io).is_ok());
    Ok(())
}
