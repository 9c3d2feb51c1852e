//! CPU time adds up: what the kernel says each process ran, and how long the CPU was idle, is all the time
//! there was.
//!
//! The kernel says at the end of a process how much CPU time its threads had; the last process says how
//! long the CPU was idle. What is missing to the clock is the time before there was a scheduler. Two
//! boots that differ in the number of calls alone miss the same: so no call is charged for a nanosecond
//! that it did not take. Decided in ADR 226.

mod boot;

use boot::boot;
use qemu_command::Lane;

/// The processes, all of which end.
const PROCESSES: [&str; 7] =
    ["server", "caller", "computer", "sleeper", "yielder", "leaver", "watch"];

/// The number before `unit` in the line that has `words`.
fn number(console: &str, words: &str, unit: &str) -> i64 {
    let line = console.lines().find(|line| line.contains(words));
    let line = line.unwrap_or_else(|| panic!("no line with {words:?} in:\n{console}"));
    let before = line.split(unit).next().unwrap_or_default();
    let digits = before.rsplit(' ').next().unwrap_or_default();
    digits.parse().unwrap_or_else(|_| panic!("no number of {unit:?} in {line:?}"))
}

/// A boot's account, in ns.
#[derive(Debug)]
struct Account {
    /// The clock, just before the last process ended.
    clock: i64,
    idle: i64,
    /// What each process ran, to a microsecond.
    ran: Vec<i64>,
    /// What the reaper ran: nearly all of it after the last look at the clock.
    reaper: i64,
}

impl Account {
    fn of(console: &str) -> Self {
        let line = console.lines().find(|line| line.contains("idle for")).expect("a last line");
        let idle = number(line, "idle for", " ns until");
        let clock: i64 = line
            .split("until ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next())
            .and_then(|digits| digits.parse().ok())
            .unwrap_or_else(|| panic!("no time in {line:?}"));
        let ran = PROCESSES.map(|name| {
            let words = format!("\"{name}\" ended with 0;");
            number(console, &words, " us of CPU time") * 1_000
        });
        let reaper = number(console, "The reaper has had", " us of CPU time") * 1_000;
        Self { clock, idle, ran: ran.into(), reaper }
    }

    /// The time that nobody ran and the CPU was not idle.
    fn missing(&self) -> i64 {
        self.clock - self.idle - self.ran.iter().sum::<i64>()
    }
}

/// What is lost to microseconds: half of one for each process on average, all of one at most.
const ROUNDING_NS: i64 = PROCESSES.len() as i64 * 1_000;
/// When the scheduler's clock begins: after the boot, which waits for 12 ms to measure clocks and gathers entropy, and
/// before the programs are loaded.
const BOOT_NS: std::ops::Range<i64> = 12_000_000..14_500_000;

#[test]
fn all_time_is_somebodys() {
    let account = |name| Account::of(&boot(name, Lane::Deterministic, 1));
    let (few, many) = (account("few"), account("many"));
    println!("few calls:  {few:?}, missing {}", few.missing());
    println!("many calls: {many:?}, missing {}", many.missing());
    for account in [&few, &many] {
        // The last process writes its line and ends after it has looked at the clock.
        assert!(BOOT_NS.contains(&account.missing()), "missing {}: {account:?}", account.missing());
        assert!(account.ran.iter().all(|ran| *ran > 0), "somebody ran for nothing: {account:?}");
        assert!(account.reaper > 0, "the ends of processes cost nothing: {account:?}");
    }
    let difference = few.missing() - many.missing();
    assert!(difference.abs() <= ROUNDING_NS, "{difference} ns: {few:?}, {many:?}");
    // There were more calls.
    assert!(many.ran[0] > 4 * few.ran[0] && many.ran[1] > 4 * few.ran[1], "{few:?}, {many:?}");
}
