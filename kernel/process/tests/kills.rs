//! Random kills: processes begin, again and again, in records that others have left, do whatever they can, and are
//! killed or end by themselves at random. After each round everything is where it was before it.
//!
//! The default lane has a thousand ends of threads and processes, the long lane a hundred thousand. A failure says
//! its seed; `KILLS_SEED` repeats it.

use abi_types::{CapSlot, NEVER, Opcode, Sqe};
use kernel_ops::machine::Defect;
use kernel_process::end;
use kernel_process::process::Reason;
use schema::console::{WriteParams, methods};
use schema::thread_control::{ExitThreadParams, methods as control};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use test_machine::{Body, Config, Grant, HostObject, Process, User, run};

const WORDS: u64 = 0x10_0000;
const US: u64 = 1_000;
/// By then one more end has come, or none will.
const PATIENCE_NS: u64 = 20_000_000_000;

/// A xorshift generator (Marsaglia 2003).
#[derive(Clone)]
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    fn below(&mut self, most: u64) -> u64 {
        self.next() % most
    }
}

fn sqe(opcode: Opcode) -> Sqe {
    Sqe { opcode: opcode as u8, ..Sqe::default() }
}

/// A thread that does whatever comes into its mind, and does not care how it ends.
struct Actor {
    user: User,
    random: Random,
    threads: Vec<CapSlot>,
    depth: u64,
}

impl Actor {
    fn submit(&mut self, sqe: Sqe) {
        while !self.user.submit(sqe) {
            self.enter(0, 0);
            // No time passes in an entry that does nothing.
            self.user.compute();
        }
    }

    fn enter(&mut self, min_complete: u64, timeout_ns: u64) {
        self.user.enter(min_complete, timeout_ns);
        while self.user.take().is_some() {}
        self.user.check_cells();
    }

    /// A wait that ends: soon, or with the process.
    fn time(&mut self) -> u64 {
        match self.random.below(4) {
            0 => NEVER,
            1 => 1 << 40,
            _ => self.random.below(300) * US,
        }
    }

    /// One thing that threads do; `false` ends it.
    fn act(&mut self) -> bool {
        let time = self.time();
        match self.random.below(18) {
            0 | 1 => {
                let sleep = self.user.sleeping(0, time.min(1 << 40));
                self.submit(sleep);
                self.enter(0, 0);
            }
            2 | 3 => {
                let cap = self.user.cap("park").to_bits();
                let arg = WORDS + self.random.below(4) * 4;
                self.submit(Sqe { cap, arg, result_address: time, ..sqe(Opcode::Park) });
            }
            4 => {
                let cap = self.user.cap("park").to_bits();
                let arg = WORDS + self.random.below(4) * 4;
                self.submit(Sqe { cap, arg, address: 2, ..sqe(Opcode::Unpark) });
            }
            5 => {
                let cap = self.user.cap("endpoint").to_bits();
                self.submit(Sqe { cap, ..sqe(Opcode::Recv) });
            }
            6 | 7 => {
                let deadline = if time > 1 << 40 { 0 } else { self.user.machine().now() + time };
                let service = self.user.cap("service");
                self.submit(Sqe { arg: deadline, ..User::calling(service, 0, 8) });
            }
            8 => {
                let console = self.user.cap("console");
                let text = WriteParams { bytes: b"here I am, and soon no longer\n" };
                let write = self.user.typed::<methods::Write>(console, 0, &text);
                self.submit(write);
                self.enter(0, 0);
            }
            9 => self.submit(sqe(Opcode::Yield)),
            10 => self.user.compute(),
            11 => self.user.compute_a_slice(),
            12 => self.spawn(),
            13 => {
                if let Some(handle) = self.threads.pop() {
                    let join = self.user.joining(handle);
                    self.submit(join);
                }
            }
            14 => {
                if let Some(handle) = self.threads.pop() {
                    self.submit(Sqe { cap: handle.to_bits(), ..sqe(Opcode::Release) });
                }
            }
            15 | 16 => {
                let count = self.random.below(3);
                self.enter(count, time);
            }
            _ => return self.random.below(3) != 0,
        }
        true
    }

    /// Makes a thread. Nothing may be pending: the call that makes it takes the next completion there is.
    fn spawn(&mut self) {
        if self.depth == 2 || self.user.has_pending() {
            return;
        }
        while self.user.take().is_some() {}
        let argument = self.random.next() << 2 | (self.depth + 1);
        if let Ok(handle) = self.user.spawn(0, argument) {
            self.threads.push(handle);
        }
    }
}

/// Threads that have begun.
type Count = Arc<AtomicU64>;

/// What every thread does; the argument is its seed, and how many made each other before it.
fn actor(begun: Count) -> Body {
    Arc::new(move |user| {
        begun.fetch_add(1, SeqCst);
        let (random, depth) = (Random::new(user.argument), user.argument & 3);
        let mut actor = Actor { user, random, threads: Vec::new(), depth };
        for _ in 0..40 {
            if !actor.act() {
                break;
            }
        }
        let mut user = actor.user;
        match actor.random.below(3) {
            0 => user.exit(7),
            1 => {
                let to = user.cap("control");
                let exit = user.typed::<control::ExitThread>(to, 0, &ExitThreadParams { code: 3 });
                // Whatever is pending goes with it.
                while !user.submit(exit) {
                    user.enter(0, 0);
                    user.compute();
                }
                user.enter(0, 0);
            }
            _ => {}
        }
    })
}

/// Three processes that serve and call each other, all of whose threads are actors.
fn batch(seed: u64, begun: &Count) -> Vec<Process> {
    let mut random = Random::new(seed);
    let mut one = |name, peer| {
        let argument = random.next() << 2;
        let main = actor(begun.clone());
        let mut process = Process::new(name, move |mut user| {
            user.argument = argument;
            if user.space().map_paid(WORDS, 1, true).is_ok() {
                main(user);
            }
        });
        process.profile.sleep_waiters = 3;
        process.profile.ring_entries = 4;
        let memory = Grant::Object(HostObject::VirtualMemory);
        process
            .with("endpoint", Grant::Endpoint)
            .with("service", Grant::Client(peer, 0, 1))
            .with("memory", memory)
    };
    vec![one("first", 1), one("second", 2), one("third", 0)]
}

/// Begins processes and kills them until so many threads and processes have ended.
fn kill_at_random(config: Config, ends: u64, seed: u64) {
    let begun = Count::default();
    let bodies = vec![actor(begun.clone())];
    let coordinator = move |mut user: User| {
        let m = user.machine();
        let mut random = Random::new(seed);
        let (mut processes, mut round) = (0, 0);
        while begun.load(SeqCst) + processes < ends {
            round += 1;
            let batch = m.begin(batch(random.next(), &begun));
            processes += batch.len() as u64;
            let names: Vec<_> = batch.iter().map(|process| process.key()).collect();
            let mut left: Vec<usize> = (0..batch.len()).collect();
            while m.live() > 1 {
                match random.below(3) {
                    0 => user.compute_a_slice(),
                    1 => user.compute(),
                    _ => {
                        let _ = user.call(sqe(Opcode::Yield));
                    }
                }
                if !left.is_empty() && random.below(6) == 0 {
                    let at = left.swap_remove(random.below(left.len() as u64) as usize);
                    if batch[at].key() == names[at] {
                        end::close(m, batch[at], 9, Reason::Killed);
                    }
                }
            }
            // The last of them may still leave the list it was in.
            while m.has_remains() {
                user.compute_a_slice();
            }
            // This thread alone, in round after round.
            m.check_settled(1);
            assert!(m.records_made() <= 60, "{} records in round {round}", m.records_made());
        }
    };
    let config = Config { threads: 100, processes: 5, patience_ns: ends * PATIENCE_NS, ..config };
    let mut process = Process::new("coordinator", coordinator);
    process.grants.retain(|(name, _)| *name != "console");
    run(config, vec![process], bodies);
}

/// How many ends there are, and from which seed.
fn asked() -> (u64, u64) {
    let number = |name: &str, otherwise| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    (number("KILLS", 1_000), number("KILLS_SEED", 1))
}

fn kill_on(cpus: usize, share: u64) {
    let (ends, seed) = asked();
    println!("KILLS={ends} KILLS_SEED={seed} on {cpus} CPUs");
    kill_at_random(Config { cpus, ..Config::default() }, ends / share, seed);
}

#[test]
fn nothing_is_left_of_whatever_is_killed_on_one_cpu() {
    kill_on(1, 2);
}

#[test]
fn nothing_is_left_of_whatever_is_killed_on_two_cpus() {
    kill_on(2, 4);
}

#[test]
fn nothing_is_left_of_whatever_is_killed_on_three_cpus() {
    kill_on(3, 4);
}

#[test]
fn planted_bugs_are_found() {
    for defect in [
        Defect::TimerKept,
        Defect::SleepNotCountedOut,
        Defect::RecordChargeKept,
        Defect::StackChargeKept,
    ] {
        let config = Config { defect: Some(defect), ..Config::default() };
        let found = (1..20).any(|seed| {
            catch_unwind(AssertUnwindSafe(|| kill_at_random(config, 200, seed))).is_err()
        });
        assert!(found, "{defect:?} is not noticed");
    }
}

/// More threads than one section of kernel code takes out of a queue: the machine fails if they go in one.
#[test]
fn a_crowd_ends_in_sections() {
    for cpus in [1, 2] {
        let waits: Body = Arc::new(|mut user: User| {
            let sleep = user.sleeping(0, 1 << 40);
            user.call(sleep);
        });
        let computes: Body = Arc::new(|mut user: User| {
            loop {
                user.compute();
            }
        });
        let main = |mut user: User| {
            for number in 0..60 {
                user.spawn(number % 2, 0).unwrap();
            }
            for _ in 0..70 {
                user.call(sqe(Opcode::Yield));
            }
            user.exit(5)
        };
        let mut process = Process::new("crowd", main);
        process.profile.threads = 64;
        process.profile.cap_slots = 128;
        process.profile.kernel_stack_pages = 64;
        process.profile.frames = 512;
        process.profile.sleep_waiters = 64;
        let config = Config { cpus, threads: 80, ..Config::default() };
        let report = run(config, vec![process], vec![waits, computes]);
        assert_eq!(report.ends, [("crowd".to_string(), 5)]);
    }
}
