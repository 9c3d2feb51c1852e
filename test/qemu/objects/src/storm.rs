//! Readers of the directory while processes come and go: nothing is told of two at once, and nobody is held up.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};

use abi_types::CapSlot;
use capos_rt::process::{Child, Command, DEFAULT_PROFILE, copied};
use schema::manifest::ResourceProfile;
use schema::process_directory;
use schema::process_directory_capnp::{DirectoryResult, ProcessState, ThreadState, WaitsFor};
use test_bare::raw;
use test_kit::{Outcome, check, require_ok};

use crate::directory::each_process;
use crate::{Directory, Run, Shared};

/// What a storm may use: two children at once, and one that is not gone yet.
const STORM: ResourceProfile = ResourceProfile {
    cap_slots: 64,
    threads: 24,
    kernel_stack_pages: 768,
    frames: 3000,
    sleep_waiters: 24,
    kernel_bytes: 1_048_576,
    ..DEFAULT_PROFILE
};

/// Readings of everything in the storm, at least, and lives that are seen in them.
const ROUNDS: u32 = 100;
const SEEN: u32 = 150;

static IS_OVER: AtomicBool = AtomicBool::new(false);
static DIRECTORY: AtomicU64 = AtomicU64::new(0);
static STORMS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static READ: AtomicU32 = AtomicU32::new(0);
static LIVES: AtomicU32 = AtomicU32::new(0);
static TORN: AtomicU32 = AtomicU32::new(0);

fn key_bits((pid, generation): (u32, u32)) -> u64 {
    u64::from(pid) | u64::from(generation) << 32
}

fn start_storm(shared: &Shared, weight: &str) -> Option<Child> {
    let spawner =
        shared.program.env.cap("processes", schema::process_spawner::INTERFACE_ID).ok()?;
    let grants = [copied("timer", shared.program.timer), copied("processes", spawner)];
    let command = Command {
        arguments: &["storm", weight],
        grants: &grants,
        profile: STORM,
        ..Command::new("storm", "worker.elf")
    };
    shared.processes.spawn(shared.program.io(), &command).ok()
}

/// One reading of everything; what is wrong with it is counted.
fn read_all(directory: &mut Directory<'_>) {
    let storms = STORMS.each_ref().map(|storm| storm.load(SeqCst));
    let (mut lives, mut torn, mut last) = (0, 0, None);
    let mut keys = [(0, 0); 16];
    let is_whole = each_process(directory, |entry| {
        torn += u32::from(last.is_some_and(|last| last >= entry.pid));
        last = Some(entry.pid);
        let parent = key_bits((entry.parent_pid, entry.parent_generation));
        let storm = match entry.name {
            "life-10" => Some((10, storms[0], 10)),
            "life-20" => Some((20, storms[1], 20)),
            "objects" | "storm" => None,
            _ => {
                torn += 1;
                None
            }
        };
        let Some((weight, storm, killed)) = storm else { return };
        lives += 1;
        torn += u32::from(entry.weight != weight || parent != storm);
        torn += u32::from(entry.live_threads > 1);
        let is_end = entry.exit_code == 0 || entry.exit_code == killed;
        torn += u32::from(!is_end || entry.state != ProcessState::Gone && entry.exit_code != 0);
        if let Some(place) = keys.get_mut(lives as usize - 1) {
            *place = (entry.pid, entry.generation);
        }
    });
    torn += u32::from(!is_whole);
    for (pid, generation) in keys.into_iter().take(lives as usize) {
        torn += u32::from(!is_sound(directory, pid, generation));
    }
    LIVES.fetch_add(lives, SeqCst);
    TORN.fetch_add(torn, SeqCst);
    READ.fetch_add(1, SeqCst);
}

/// Whether threads, capabilities and account of a process that may go at any moment are its, or nothing.
fn is_sound(directory: &mut Directory<'_>, pid: u32, generation: u32) -> bool {
    {
        let Ok(message) = directory.threads(pid, generation, 0) else { return false };
        let Ok(page) = message.get() else { return false };
        let is_empty = page.threads.is_empty();
        if page.result != DirectoryResult::Ok && !is_empty || page.threads.len() > 1 {
            return false;
        }
        for thread in page.threads.iter().flatten() {
            let is_waiting = thread.state == ThreadState::Waiting;
            if is_waiting == (thread.waits_for == WaitsFor::NotWaiting) {
                return false;
            }
        }
    }
    {
        let Ok(message) = directory.capabilities(pid, generation, 0) else { return false };
        let Ok(page) = message.get() else { return false };
        for entry in page.capabilities.iter().flatten() {
            let is_timer = entry.interface_id == schema::timer::INTERFACE_ID;
            if !is_timer || !(entry.name == "timer" || entry.name.is_empty()) {
                return false;
            }
        }
    }
    let Ok(told) = directory.ledger(pid, generation) else { return false };
    match told.result {
        DirectoryResult::Ok => told.usage.frames.limit == 200 && told.usage.ring_entries == 8,
        DirectoryResult::StaleGeneration => told.usage.frames.limit == 0,
    }
}

fn directory_of(io: &capos_rt::io::Io) -> Directory<'_> {
    let slot = CapSlot::from_bits(DIRECTORY.load(SeqCst));
    process_directory::Client::new(io.large(), slot)
}

/// A reader that goes on until it is told.
fn reader(child: &raw::Child) -> i64 {
    let mut directory = directory_of(&child.io);
    while !IS_OVER.load(SeqCst) {
        read_all(&mut directory);
    }
    0
}

fn begin(shared: &Shared) {
    IS_OVER.store(false, SeqCst);
    DIRECTORY.store(shared.directory.to_bits(), SeqCst);
    for count in [&READ, &LIVES, &TORN] {
        count.store(0, SeqCst);
    }
}

/// Two storms of children, read by two threads: every entry is one process's.
pub fn storm(t: &mut Run<'_>) -> Outcome {
    let io = t.env.program.io();
    begin(t.env);
    let storms = [start_storm(t.env, "10"), start_storm(t.env, "20")];
    for (storm, place) in storms.iter().zip(&STORMS) {
        let info = storm.as_ref().and_then(|storm| storm.info(io).ok());
        place.store(info.map_or(0, |info| key_bits((info.pid, info.generation))), SeqCst);
    }
    let second = require_ok!(t, t.env.program.spawn(0, reader, 0));
    let mut directory = t.env.directory();
    let goes_on = |storm: &Child| storm.exit_code(io).is_ok_and(|seen| !seen.exited);
    while READ.load(SeqCst) < ROUNDS || LIVES.load(SeqCst) < SEEN {
        read_all(&mut directory);
        t.env.program.yield_now();
        if !storms.iter().flatten().all(goes_on) {
            break;
        }
    }
    IS_OVER.store(true, SeqCst);
    check!(t, t.env.program.finish(second).is_ok());
    for storm in storms.iter().flatten() {
        check!(t, goes_on(storm), "a storm ended");
        check!(t, storm.kill(io, 0).is_ok() && storm.wait(io).is_ok() && storm.release(io).is_ok());
    }
    let (torn, lives) = (TORN.load(SeqCst), LIVES.load(SeqCst));
    check!(t, storms.iter().all(Option::is_some) && torn == 0, "{torn} of {lives} torn");
    check!(t, lives >= SEEN, "{lives} were seen");
    t.metric("lives seen", lives.into(), "processes");
    Ok(())
}

/// Lives that are started and awaited beside endless readers.
const BESIDE: u32 = 40;

/// Three threads read without end: processes come and go beside them.
pub fn endless_readers(t: &mut Run<'_>) -> Outcome {
    let io = t.env.program.io();
    begin(t.env);
    let mut readers = [CapSlot::NONE; 3];
    for (number, place) in readers.iter_mut().enumerate() {
        *place = require_ok!(t, t.env.program.spawn(number, reader, 0));
    }
    for number in 0..BESIDE {
        let child = require_ok!(t, t.env.child("storm", &["exit", "3"]));
        let ended = require_ok!(t, child.wait(io));
        check!(t, ended.exit_code == 3 && child.release(io).is_ok(), "{number}");
    }
    // And the other way round: each reader gets on.
    let read = READ.load(SeqCst);
    while READ.load(SeqCst) < read + 3 {
        t.env.program.sleep(1_000_000);
    }
    IS_OVER.store(true, SeqCst);
    for reader in readers {
        check!(t, t.env.program.finish(reader).is_ok());
    }
    Ok(())
}
