//! Which locks scheduling takes, how often a CPU waits for one, and how long one is held.
//!
//! A kernel of the measure profile says at the system's end what it counted. Two boots differ in the number of
//! rounds of a mix alone: calls that hand the CPU over, calls with deadlines, sleeps, PARK with a time limit and
//! UNPARK between two threads, yields. What they differ in is what a round takes. Decided in ADR 285.

mod boot;

use boot::boot;
use qemu_command::Lane;
use std::collections::BTreeMap;

/// The rounds that the second boot has beyond those of the first: see the two manifests.
const MORE_ROUNDS: u64 = 1000;

/// The classes of which there is one lock for the whole machine.
const GLOBAL: [&str; 15] = [
    "Global",
    "Changes",
    "Keyboard",
    "Console",
    "Input",
    "Lines",
    "Records",
    "Reaper",
    "StackSlots",
    "Devices",
    "Heap",
    "KernelTables",
    "TimePage",
    "Frames",
    "Entropy",
];
/// Those that a round is known to take.
const TAKEN: [&str; 5] = ["Endpoint", "Table", "Queue", "Cq", "Deadlines"];

/// What was counted of a class.
#[derive(Clone, Copy, Debug)]
struct Tally {
    taken: u64,
    waited: u64,
    longest: u64,
}

/// The table that a kernel prints at the end, by class.
fn table(console: &str) -> BTreeMap<String, Tally> {
    let lines = console.lines().skip_while(|line| !line.starts_with("Locks ")).skip(1);
    let of = |line: &str| {
        let mut words = line.strip_prefix("  ")?.split_whitespace();
        let class = words.next()?.to_string();
        let mut number = || words.next()?.parse().ok();
        Some((class, Tally { taken: number()?, waited: number()?, longest: number()? }))
    };
    let table: BTreeMap<_, _> = lines.map_while(of).collect();
    assert!(GLOBAL.iter().chain(&TAKEN).all(|class| table.contains_key(*class)), "{console}");
    table
}

/// What a round takes, shown as a table.
fn rounds(lane: Lane, cpus: u32) -> BTreeMap<String, u64> {
    let few = table(&boot("locks_few", lane, cpus));
    let many = table(&boot("locks_many", lane, cpus));
    println!("{lane:?}, CPUs: {cpus}\nclass         in 1000 rounds      waited  held ticks");
    let mut of_rounds = BTreeMap::new();
    for (class, tally) in &many {
        let taken = tally.taken.saturating_sub(few[class].taken);
        println!("{class:<13} {taken:>14} {:>11} {:>11}", tally.waited, tally.longest);
        of_rounds.insert(class.clone(), taken);
    }
    of_rounds
}

fn check(lane: Lane, cpus: u32, noise: u64) {
    let rounds = rounds(lane, cpus);
    for class in GLOBAL {
        let taken = rounds[class];
        assert!(taken <= noise, "rounds of scheduling take a lock of all CPUs: {class}, {taken}");
    }
    for class in TAKEN {
        assert!(rounds[class] >= MORE_ROUNDS, "a mix without {class}: {}", rounds[class]);
    }
}

/// S2: none is shared by all CPUs.
#[test]
fn scheduling_takes_no_lock_of_all_cpus() {
    check(Lane::Deterministic, 1, 0);
}

/// S2: nor with steals, IPIs and CPUs that come and go.
#[test]
fn scheduling_takes_no_lock_of_all_cpus_on_four() {
    // How often the port interrupts for the lines of the boot is not the same in two boots.
    check(Lane::Racing, 4, MORE_ROUNDS / 20);
}
