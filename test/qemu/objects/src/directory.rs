//! ProcessDirectory: what is told of a process that is looked at.

use abi_types::ExceptionKind;
use schema::process_directory::{self, ProcessEntry, ThreadEntry};
use schema::process_directory_capnp::{
    CapabilityKind, DirectoryResult, ProcessState, ThreadState, WaitsFor,
};
use schema::process_handle::ProcessUsage;
use schema::process_handle_capnp::ExitReason;
use schema::timer;
use test_kit::{Outcome, check, check_eq, require_ok, require_some};

use crate::{Directory, Run, kind_of};

/// Shows every process.
pub fn each_process(
    directory: &mut Directory<'_>,
    mut visit: impl FnMut(&ProcessEntry<'_>),
) -> bool {
    let mut from = 0;
    loop {
        let Ok(message) = directory.processes(from) else { return false };
        let Ok(page) = message.get() else { return false };
        for entry in page.processes.iter() {
            let Ok(entry) = entry else { return false };
            visit(&entry);
        }
        if !page.more {
            return true;
        }
        from = page.next;
    }
}

/// What is kept of an entry whose page goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    state: ProcessState,
    reason: ExitReason,
    code: i64,
    weight: u16,
    threads: u32,
    parent: (u32, u32),
    is_named: bool,
    started_ns: u64,
    cpu_time_ns: u64,
}

/// The process of that number, if it is listed.
fn find(directory: &mut Directory<'_>, name: &str, key: (u32, u32)) -> Option<Seen> {
    let mut found = None;
    let is_whole = each_process(directory, |entry| {
        if (entry.pid, entry.generation) == key {
            found = Some(Seen {
                state: entry.state,
                reason: entry.exit_reason,
                code: entry.exit_code,
                weight: entry.weight,
                threads: entry.live_threads,
                parent: (entry.parent_pid, entry.parent_generation),
                is_named: entry.name == name,
                started_ns: entry.started_ns,
                cpu_time_ns: entry.cpu_time_ns,
            });
        }
    });
    found.filter(|_| is_whole)
}

/// Shows every thread of a process; how many there were, unless it is gone.
fn each_thread(
    directory: &mut Directory<'_>,
    (pid, generation): (u32, u32),
    mut visit: impl FnMut(&ThreadEntry),
) -> Option<u32> {
    let (mut from, mut count) = (0, 0);
    loop {
        let message = directory.threads(pid, generation, from).ok()?;
        let page = message.get().ok()?;
        if page.result != DirectoryResult::Ok {
            return None;
        }
        for entry in page.threads.iter() {
            visit(&entry.ok()?);
            count += 1;
        }
        if !page.more {
            return Some(count);
        }
        from = page.next;
    }
}

/// The account of a process, unless it is gone.
pub fn usage(directory: &mut Directory<'_>, (pid, generation): (u32, u32)) -> Option<ProcessUsage> {
    let told = directory.ledger(pid, generation).ok()?;
    (told.result == DirectoryResult::Ok).then_some(told.usage)
}

/// The reader itself: its name, its one thread, which runs, and its account against its profile.
pub fn own(t: &mut Run<'_>) -> Outcome {
    let mut directory = t.env.directory();
    let own = require_ok!(t, directory.own());
    let key = (own.pid, own.generation);
    let mut seen = require_some!(t, find(&mut directory, "objects", key));
    // What it ran is told up to its last stop, and a sleep that is over before it began is none.
    for _ in 0..1000 {
        if seen.cpu_time_ns > 0 {
            break;
        }
        t.env.program.sleep(1_000_000);
        seen = require_some!(t, find(&mut directory, "objects", key));
    }
    check!(t, seen.is_named && seen.state == ProcessState::Running, "{seen:?}");
    check_eq!(t, (seen.threads, seen.weight, seen.parent), (1, 64, (0, 0)));
    check!(t, seen.started_ns > 0 && seen.cpu_time_ns > 0, "{seen:?}");
    let mut running = 0;
    let count = each_thread(&mut directory, key, |thread| {
        let is_it =
            thread.state == ThreadState::Running && thread.waits_for == WaitsFor::NotWaiting;
        running += u32::from(is_it && !thread.killed && thread.weight == 64);
    });
    check_eq!(t, (count, running), (Some(1), 1));
    let before = require_some!(t, usage(&mut directory, key));
    check_eq!(t, (before.cap_slots.limit, before.threads.limit), (256, 300));
    check_eq!(t, before.threads.used, 1);
    let child = require_ok!(t, t.env.child("lent", &["sleep"]));
    let after = require_some!(t, usage(&mut directory, key));
    check_eq!(t, after.cap_slots.used, before.cap_slots.used + 1);
    check_eq!(t, after.threads.lent, before.threads.lent + 8);
    let io = t.env.program.io();
    check!(t, child.kill(io, 0).is_ok() && child.wait(io).is_ok() && child.release(io).is_ok());
    let again = require_some!(t, usage(&mut directory, key));
    check_eq!(t, again.threads.lent, before.threads.lent);
    Ok(())
}

/// A child from its start until its handle goes.
pub fn children(t: &mut Run<'_>) -> Outcome {
    let io = t.env.program.io();
    let mut directory = t.env.directory();
    let own = require_ok!(t, directory.own());
    let child = require_ok!(t, t.env.child("a sleeper", &["threads"]));
    let info = require_ok!(t, child.info(io));
    let key = (info.pid, info.generation);
    // Until its three threads sleep.
    let mut sleeping = 0;
    for _ in 0..1000 {
        sleeping = 0;
        let _ = each_thread(&mut directory, key, |thread| {
            let sleeps = thread.waits_for == WaitsFor::Sleep && thread.sleeps == 1;
            sleeping += u32::from(sleeps && thread.state == ThreadState::Waiting);
        });
        if sleeping == 3 {
            break;
        }
        t.env.program.sleep(100_000);
    }
    check_eq!(t, sleeping, 3);
    let seen = require_some!(t, find(&mut directory, "a sleeper", key));
    check!(t, seen.is_named && seen.state == ProcessState::Running, "{seen:?}");
    check_eq!(t, (seen.threads, seen.parent), (3, (own.pid, own.generation)));
    check_eq!(t, seen.started_ns, info.started_ns);
    check!(t, seen.cpu_time_ns > 0, "{seen:?}");
    let told = require_some!(t, usage(&mut directory, key));
    check_eq!(t, told, require_ok!(t, child.usage(io)));
    check_eq!(t, (told.sleep_waiters.used, told.threads.used), (3, 3));
    let mut names = 0;
    {
        let message = require_ok!(t, directory.capabilities(key.0, key.1, 0));
        let page = require_ok!(t, message.get());
        for entry in page.capabilities.iter() {
            let entry = require_ok!(t, entry);
            let is_timer = entry.name == "timer" && entry.interface_id == timer::INTERFACE_ID;
            names += u32::from(is_timer) + u32::from(entry.name == "threads");
        }
        check_eq!(t, page.result, DirectoryResult::Ok);
    }
    check_eq!(t, names, 2);
    check!(t, child.kill(io, -5).is_ok() && child.wait(io).is_ok());
    let seen = require_some!(t, find(&mut directory, "a sleeper", key));
    check_eq!(
        t,
        (seen.state, seen.reason, seen.code),
        (ProcessState::Gone, ExitReason::Killed, -5)
    );
    check!(t, seen.is_named && seen.threads == 0 && seen.cpu_time_ns > 0, "{seen:?}");
    check_eq!(t, each_thread(&mut directory, key, |_| {}), None);
    check_eq!(t, usage(&mut directory, key), None);
    check!(t, child.release(io).is_ok());
    check_eq!(t, find(&mut directory, "a sleeper", key), None);
    Ok(())
}

/// Every name of the reader's CapSet is told once, with its slot and its interface; the rest has none.
pub fn capabilities(t: &mut Run<'_>) -> Outcome {
    let io = t.env.program.io();
    let mut directory = t.env.directory();
    let own = require_ok!(t, directory.own());
    let child = require_ok!(t, t.env.child("held", &["sleep"]));
    let (mut named, mut nameless, mut kinds, mut from) = (0, 0, [0; 3], 0);
    loop {
        let message = require_ok!(t, directory.capabilities(own.pid, own.generation, from));
        let page = require_ok!(t, message.get());
        check_eq!(t, page.result, DirectoryResult::Ok);
        for entry in page.capabilities.iter() {
            let entry = require_ok!(t, entry);
            let slot = abi_types::CapSlot::new(entry.slot, entry.generation);
            let is_right =
                t.env.program.env.caps.iter().any(|(name, of)| (name, of) == (entry.name, slot));
            check!(t, is_right != entry.name.is_empty(), "{entry:?}");
            named += u32::from(is_right);
            if slot == child.slot() {
                nameless += u32::from(entry.interface_id == schema::process_handle::INTERFACE_ID);
            }
            let kind = match entry.kind {
                CapabilityKind::Object => 0,
                CapabilityKind::Endpoint => 1,
                CapabilityKind::Client => 2,
            };
            if let Some(count) = kinds.get_mut(kind) {
                *count += 1;
            }
        }
        if !page.more {
            break;
        }
        from = page.next;
    }
    check_eq!(t, (named, nameless), (13, 1));
    check_eq!(t, kinds, [12, 1, 1]);
    check!(t, child.kill(io, 0).is_ok() && child.wait(io).is_ok() && child.release(io).is_ok());
    Ok(())
}

/// Names of nobody, places beyond the end, and results that have no room.
pub fn wrong_arguments(t: &mut Run<'_>) -> Outcome {
    let mut directory = t.env.directory();
    let own = require_ok!(t, directory.own());
    for key in [(own.pid, own.generation + 2), (own.pid, 0), (u32::MAX, 1), (99_999, 7)] {
        check_eq!(t, each_thread(&mut directory, key, |_| {}), None);
        check_eq!(t, usage(&mut directory, key), None);
        let message = require_ok!(t, directory.capabilities(key.0, key.1, 0));
        let page = require_ok!(t, message.get());
        check!(t, page.result == DirectoryResult::StaleGeneration && page.capabilities.is_empty());
    }
    for from in [1_000_000, u32::MAX] {
        {
            let message = require_ok!(t, directory.processes(from));
            let page = require_ok!(t, message.get());
            check!(t, page.processes.is_empty() && !page.more);
        }
        {
            let message = require_ok!(t, directory.threads(own.pid, own.generation, from));
            let page = require_ok!(t, message.get());
            check!(t, page.threads.is_empty() && !page.more);
        }
        let message = require_ok!(t, directory.capabilities(own.pid, own.generation, from));
        let page = require_ok!(t, message.get());
        check!(t, page.capabilities.is_empty() && !page.more);
    }
    let io = t.env.program.io();
    let mut narrow = process_directory::Client::new(io.caller(), t.env.directory);
    check_eq!(t, kind_of(&narrow.processes(0).map(|_| ())), Some(ExceptionKind::InvalidArgument));
    let one = require_ok!(t, narrow.threads(own.pid, own.generation, 0));
    check_eq!(t, require_ok!(t, one.get()).threads.len(), 1);
    Ok(())
}
