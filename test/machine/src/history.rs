//! Histories: random threads that call, park, sleep, cancel, make threads and end, beside a server.
//!
//! Each thread keeps book of what it has under way. An operation completes once, with a status that its kind
//! can have, a call with its own answer, a sleep not before its time; at the end of its steps a thread cancels
//! what is left and waits for it, so that an operation that never completes is a lost wake. After each entry
//! the cells in use are as many as the completions that are owed. What is left at the end is the machine's to
//! check.

use crate::user::{Done, User};
use crate::world::{Body, Config, Grant, Process, Report, run};
use abi_types::{CapSlot, NEVER, Opcode, Sqe, SqeFlags, Status};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What a thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Calls the server; the deadline is so many µs away, or there is none.
    Call(Option<u16>),
    /// Calls with a message that fits no receive.
    CallTooLarge,
    /// Sleeps so many µs.
    Sleep(u16),
    /// Parks at one of four words, for so many µs or for good.
    Park(u8, Option<u16>),
    /// Wakes so many at one of four words.
    Unpark(u8, u8),
    /// Changes one of four words.
    Store(u8),
    /// Cancels one of the operations under way.
    Cancel(u8),
    /// Enters the kernel for so many completions, for so many µs.
    Enter(u8, u16),
    /// Waits for one of the calls and sleeps under way, however long it takes.
    Await(u8),
    /// Yields.
    Yield,
    /// Computes for a moment, or for a slice.
    Compute(bool),
    /// Makes a thread that does the steps of that number, if it is larger than that of its own.
    Spawn(u8),
    /// Joins one of the threads it made.
    Join(u8),
    /// Lets go of one of the threads it made.
    Release(u8),
    /// Ends the thread, without waiting for anything.
    ExitThread,
    /// Ends the process.
    ExitProcess,
}

const WORDS: u64 = 0x10_0000;
const LARGE: u64 = 0x20_0000;
const NS_PER_US: u64 = 1_000;
/// Says in a message whose it is and which.
const MARK: u64 = 0x5eed_0000_0000_0000;
/// Longer than any history takes.
const PATIENCE_NS: u64 = 20_000_000_000;
/// Inline slots of a ring.
const SLOTS: u16 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Call,
    TooLarge,
    Sleep { until_ns: u64 },
    Park,
    Unpark,
    Cancel,
    Yield,
    Join,
    Release,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Call => "CALL",
            Self::TooLarge => "CALL that fits nowhere",
            Self::Sleep { .. } => "sleep",
            Self::Park => "PARK",
            Self::Unpark => "UNPARK",
            Self::Cancel => "CANCEL",
            Self::Yield => "YIELD",
            Self::Join => "join",
            Self::Release => "RELEASE",
        }
    }

    fn may_end_with(self, status: Status) -> bool {
        use Status::*;
        match self {
            Self::Call => {
                matches!(status, Ok | Disconnected | Cancelled | Overloaded | DeadlineExpired)
            }
            Self::TooLarge => {
                matches!(status, ParamsTooLarge | Disconnected | Cancelled | Overloaded)
            }
            Self::Sleep { .. } => matches!(status, Ok | Cancelled | Exception),
            Self::Park => matches!(status, Woken | TimedOut | Cancelled | Mismatch | Overloaded),
            Self::Unpark | Self::Yield => status == Ok,
            Self::Cancel => matches!(status, Ok | NotFound),
            Self::Join => matches!(status, Ok | Cancelled | Exception | Disconnected),
            Self::Release => matches!(status, Ok | Disconnected),
        }
    }
}

/// How often operations of each kind ended how.
pub type Tally = HashMap<(&'static str, Status), u64>;

/// A thread and its book.
struct Player {
    user: User,
    all: Arc<All>,
    under_way: BTreeMap<u64, (Kind, Option<u16>)>,
    threads: Vec<CapSlot>,
    next: u64,
    /// Which of all threads it is.
    number: u64,
    /// Whose steps it does.
    program: usize,
}

impl Player {
    fn new(user: User, all: Arc<All>, program: usize) -> Self {
        let (under_way, threads) = (BTreeMap::new(), Vec::new());
        let number = all.players.fetch_add(1, Ordering::Relaxed);
        Self { user, all, under_way, threads, next: 1, number, program }
    }

    /// Starts an operation; waits for others if there is no room for it.
    fn start(&mut self, kind: Kind, slot: Option<u16>, sqe: Sqe) {
        let user_data = self.next;
        self.next += 1;
        while !self.user.submit(Sqe { user_data, ..sqe }) {
            self.enter(0, 0);
        }
        self.under_way.insert(user_data, (kind, slot));
    }

    /// An inline slot that no operation uses.
    fn free_slot(&mut self) -> u16 {
        loop {
            let is_free =
                |slot: &u16| !self.under_way.values().any(|(_, used)| *used == Some(*slot));
            if let Some(slot) = (0..SLOTS).find(is_free) {
                return slot;
            }
            self.enter(1, 50 * NS_PER_US);
            self.cancel_one(0);
        }
    }

    fn enter(&mut self, min_complete: u64, timeout_ns: u64) {
        self.user.enter(min_complete, timeout_ns);
        while let Some(done) = self.user.take() {
            self.completed(&done);
        }
        self.user.check_cells();
    }

    fn completed(&mut self, done: &Done) {
        let number = done.cqe.user_data;
        let Some((kind, _)) = self.under_way.remove(&number) else {
            panic!("operation {number} completed twice, or was never begun: {done:?}");
        };
        let status = done.status();
        assert!(kind.may_end_with(status), "{kind:?} ended with {status:?}");
        *self.all.tally.lock().unwrap().entry((kind.name(), status)).or_default() += 1;
        match (kind, status) {
            (Kind::Call, Status::Ok) => {
                assert_eq!(done.words[0], number ^ MARK, "another call's answer");
            }
            (Kind::Sleep { until_ns }, Status::Ok) => {
                assert!(self.user.machine().now() >= until_ns, "woken before its time");
            }
            _ => {}
        }
    }

    fn cancel_one(&mut self, which: u8) {
        let is_meant = |(_, (kind, _)): &(&u64, &(Kind, _))| *kind != Kind::Cancel;
        let targets: Vec<u64> = self.under_way.iter().filter(is_meant).map(|(n, _)| *n).collect();
        if targets.is_empty() {
            return;
        }
        let arg = targets[usize::from(which) % targets.len()];
        self.start(Kind::Cancel, None, Sqe { arg, ..sqe(Opcode::Cancel) });
    }

    fn play(&mut self, step: Step) {
        match step {
            Step::Call(deadline) => {
                let slot = self.free_slot();
                self.user.write(slot, &[self.next, self.number << 32 | self.next]);
                let service = self.user.cap("service");
                let now = self.user.machine().now();
                let arg = deadline.map_or(0, |us| now + u64::from(us) * NS_PER_US);
                let call = Sqe { buffer: slot, arg, ..User::calling(service, 1, 16) };
                self.start(Kind::Call, Some(slot), call);
            }
            Step::CallTooLarge => {
                let flags = SqeFlags::BY_ADDRESS;
                let service = self.user.cap("service");
                let call = Sqe { flags, address: LARGE, ..User::calling(service, 1, 1000) };
                self.start(Kind::TooLarge, None, call);
            }
            Step::Sleep(us) => {
                let slot = self.free_slot();
                let ns = u64::from(us) * NS_PER_US;
                let until_ns = self.user.machine().now() + ns;
                let sleep = self.user.sleeping(slot, ns);
                self.start(Kind::Sleep { until_ns }, Some(slot), sleep);
            }
            Step::Park(word, us) => {
                let cap = self.user.cap("park").to_bits();
                let timeout = us.map_or(NEVER, |us| u64::from(us) * NS_PER_US);
                let arg = WORDS + u64::from(word % 4) * 4;
                let park = Sqe { cap, arg, result_address: timeout, ..sqe(Opcode::Park) };
                self.start(Kind::Park, None, park);
            }
            Step::Unpark(word, count) => {
                let cap = self.user.cap("park").to_bits();
                let arg = WORDS + u64::from(word % 4) * 4;
                let address = u64::from(count % 4) + 1;
                self.start(Kind::Unpark, None, Sqe { cap, arg, address, ..sqe(Opcode::Unpark) });
            }
            Step::Store(word) => {
                self.user
                    .space()
                    .store_u32(WORDS + u64::from(word % 4) * 4, u32::from(word / 4 % 2));
            }
            Step::Cancel(which) => self.cancel_one(which),
            Step::Enter(min_complete, us) => {
                self.enter(u64::from(min_complete % 4), u64::from(us) * NS_PER_US);
            }
            Step::Await(which) => self.wait_for(which),
            Step::Yield => self.start(Kind::Yield, None, sqe(Opcode::Yield)),
            Step::Compute(false) => self.user.compute(),
            Step::Compute(true) => self.user.compute_a_slice(),
            Step::Spawn(program) => self.spawn(program),
            Step::Join(which) => {
                if let Some(handle) = self.thread(which) {
                    let join = self.user.joining(handle);
                    self.start(Kind::Join, None, join);
                }
            }
            Step::Release(which) => {
                if let Some(handle) = self.thread(which) {
                    let cap = handle.to_bits();
                    self.start(Kind::Release, None, Sqe { cap, ..sqe(Opcode::Release) });
                }
            }
            Step::ExitThread | Step::ExitProcess => {}
        }
    }

    fn wait_for(&mut self, which: u8) {
        let ends = |kind: &Kind| matches!(kind, Kind::Call | Kind::Sleep { .. });
        let all = self.under_way.iter().filter(|(_, (kind, _))| ends(kind));
        let all: Vec<u64> = all.map(|(number, _)| *number).collect();
        if let Some(number) = all.get(usize::from(which) % all.len().max(1)) {
            while self.under_way.contains_key(number) {
                self.enter(1, NEVER);
            }
        }
    }

    fn thread(&self, which: u8) -> Option<CapSlot> {
        let count = self.threads.len().max(1);
        self.threads.get(usize::from(which) % count).copied()
    }

    /// Waits for everything else first: the call that makes a thread waits for its own completion.
    fn spawn(&mut self, program: u8) {
        if usize::from(program) <= self.program {
            return;
        }
        self.settle();
        if let Ok(handle) = self.user.spawn(u64::from(program), self.user.argument) {
            self.threads.push(handle);
        }
    }

    /// Cancels what is under way and waits until it has ended.
    fn settle(&mut self) {
        while !self.under_way.is_empty() {
            for which in 0..self.under_way.len() {
                self.cancel_one(which as u8);
            }
            self.enter(1, NEVER);
        }
    }
}

fn sqe(opcode: Opcode) -> Sqe {
    Sqe { opcode: opcode as u8, ..Sqe::default() }
}

/// What all threads of a history share.
#[derive(Default)]
struct All {
    players: AtomicU64,
    tally: Mutex<Tally>,
}

/// A thread that does these steps.
fn body(program: usize, steps: Vec<Step>, all: Arc<All>) -> Body {
    Arc::new(move |user| {
        let mut player = Player::new(user, all.clone(), program);
        for &step in &steps {
            match step {
                Step::ExitThread => return,
                Step::ExitProcess => player.user.exit(7),
                _ => player.play(step),
            }
        }
        player.settle();
    })
}

/// Calls that were served, by thread and number: none is served twice.
type Served = Arc<Mutex<BTreeSet<u64>>>;

/// A thread that serves calls as long as there is a client; now and then it gives a receive up, or lets a
/// call wait.
fn server(served: Served) -> Body {
    Arc::new(move |mut user| {
        let endpoint = user.cap("endpoint").to_bits();
        let receive = Sqe { cap: endpoint, user_data: 1, ..sqe(Opcode::Recv) };
        let mut rounds = 0_u64;
        assert!(user.submit(receive));
        while user.machine().live() > 1 {
            rounds += 1;
            user.enter(1, 100 * NS_PER_US);
            user.check_cells();
            let Some(done) = user.take() else {
                if rounds.is_multiple_of(3) {
                    // The receive is cancelled, or a call comes; either way it ends.
                    assert!(user.submit(Sqe { arg: 1, user_data: 2, ..sqe(Opcode::Cancel) }));
                    let mut left = 2;
                    let mut call = None;
                    while left > 0 {
                        user.enter(left, NEVER);
                        while let Some(done) = user.take() {
                            left -= 1;
                            if done.cqe.user_data == 1 && done.status() == Status::Ok {
                                call = Some(done);
                            }
                        }
                    }
                    match call {
                        Some(call) => answer(&mut user, &served, &call, endpoint, rounds),
                        None => assert!(user.submit(receive)),
                    }
                }
                continue;
            };
            assert_eq!((done.cqe.user_data, done.status()), (1, Status::Ok), "a receive ended");
            answer(&mut user, &served, &done, endpoint, rounds);
        }
    })
}

fn answer(user: &mut User, served: &Served, call: &Done, endpoint: u64, rounds: u64) {
    let [number, whose, ..] = call.words;
    assert_eq!(whose as u32, number as u32, "a message that nobody sent");
    assert!(served.lock().unwrap().insert(whose), "{number} is served twice");
    if rounds.is_multiple_of(5) {
        user.compute_a_slice();
    }
    user.write(0, &[number ^ MARK]);
    let flags = SqeFlags::THEN_RECV;
    let returning =
        Sqe { flags, arg: call.cqe.token, length: 8, user_data: 1, ..sqe(Opcode::Return) };
    assert!(user.submit(Sqe { cap: endpoint, ..returning }));
}

/// Plays threads in two client processes beside a server of two threads: `programs` are what threads can do,
/// and the first two are the processes' first threads. How it went, and how operations ended.
pub fn play(config: Config, programs: &[Vec<Step>]) -> (Report, Tally) {
    let served = Served::default();
    let all = Arc::new(All::default());
    let body = |program: usize| {
        body(program, programs.get(program).cloned().unwrap_or_default(), all.clone())
    };
    let mut bodies: Vec<Body> = (0..programs.len()).map(body).collect();
    let at = bodies.len() as u64;
    bodies.push(server(served.clone()));
    let first = server(served);
    let serve = move |mut user: User| {
        // Without memory for a second thread, one serves.
        let is_alone = user.spawn(at, 0).is_err();
        assert!(!is_alone || config.out_of_memory_at.is_some(), "a second thread is refused");
        first(user);
    };
    let client = |name, program: usize, badge| {
        let main = body(program);
        let main = move |user: User| {
            user.space().map(WORDS, 1, true);
            user.space().map(LARGE, 1, true);
            main(user);
        };
        let mut process = Process::new(name, main).with("service", Grant::Client(0, 0, badge));
        process.profile.sleep_waiters = 3;
        process
    };
    let processes = vec![
        Process::new("server", serve).with("endpoint", Grant::Endpoint),
        client("left", 0, 1),
        client("right", 1, 2),
    ];
    let report = run(Config { patience_ns: PATIENCE_NS, ..config }, processes, bodies);
    let tally = all.tally.lock().unwrap().clone();
    (report, tally)
}
