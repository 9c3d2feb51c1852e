//! What the tests share: siblings that compute, sleep and say what they counted.

use abi_types::{CapSlot, Pid, Tid};
use capos_rt::caller::Caller;
use capos_rt::{Env, Error, now_ns};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use schema::scheduler_control::{ThreadAccount, ThreadName};
use schema::scheduling_policy::SnapshotResults;
use schema::{scheduler_control, scheduling_policy, timer};
use schema_wire::CallError;
use test_bare::program::{Program, Sibling, work};
use test_bare::raw::Child;

/// A quantum.
pub const QUANTUM_NS: u64 = 10_000_000;

/// Siblings at once.
pub const SIBLINGS: usize = 8;
static MEMORY: [Sibling; SIBLINGS] = [const { Sibling::new() }; SIBLINGS];

/// The capabilities of the tests.
pub struct Bench {
    /// The process.
    pub program: Program,
    /// A SchedulingPolicyCap with the greatest ceiling, one of 100, one without.
    pub policy: CapSlot,
    pub low: CapSlot,
    pub unset: CapSlot,
    /// A SchedulerControl.
    pub scheduler: CapSlot,
    /// The address space.
    pub memory: CapSlot,
}

/// What siblings use.
pub static POLICY: AtomicU64 = AtomicU64::new(0);
pub static UNSET: AtomicU64 = AtomicU64::new(0);
pub static TIMER: AtomicU64 = AtomicU64::new(0);
/// Whether computing gives the emulator a hint: with several CPUs one is emulated after the other.
static GIVES_WAY: AtomicU32 = AtomicU32::new(0);

pub fn slot(of: &AtomicU64) -> CapSlot {
    CapSlot::from_bits(of.load(Ordering::Relaxed))
}

impl Bench {
    pub fn new(env: &'static Env) -> Result<Self, Error> {
        let program = Program::new(env, &MEMORY)?;
        let policy = |name| env.cap(name, scheduling_policy::INTERFACE_ID);
        let bench = Self {
            policy: policy("policy")?,
            low: policy("low")?,
            unset: policy("unset")?,
            scheduler: env.cap("scheduler", scheduler_control::INTERFACE_ID)?,
            memory: env.cap("memory", schema::virtual_memory::INTERFACE_ID)?,
            program,
        };
        POLICY.store(bench.policy.to_bits(), Ordering::Relaxed);
        UNSET.store(bench.unset.to_bits(), Ordering::Relaxed);
        TIMER.store(bench.program.timer.to_bits(), Ordering::Relaxed);
        GIVES_WAY.store(u32::from(bench.program.cpus() > 1), Ordering::Relaxed);
        Ok(bench)
    }

    /// Whether times may be asserted.
    pub fn is_deterministic(&self) -> bool {
        self.program.cpus() <= 2
    }

    /// The first thread's own share, by the capability in `slot`.
    pub fn own(&self, slot: CapSlot) -> scheduling_policy::Client<Caller<'static>> {
        scheduling_policy::Client::new(self.program.io().caller(), slot)
    }

    /// All threads.
    pub fn scheduler(&self) -> scheduler_control::Client<Caller<'static, 128>> {
        scheduler_control::Client::new(self.program.io().large(), self.scheduler)
    }

    /// Every thread of the machine whose account `is_meant` takes; the first of them.
    pub fn find(&self, mut is_meant: impl FnMut(&ThreadAccount) -> bool) -> Option<ThreadAccount> {
        let mut after = NO_NAME;
        let mut scheduler = self.scheduler();
        loop {
            let page = scheduler.threads(after).ok()?;
            let page = page.get().ok()?;
            for account in page.accounts.iter() {
                let account = account.ok()?;
                if is_meant(&account) {
                    return Some(account);
                }
                after = name_of(&account);
            }
            if !page.more {
                return None;
            }
        }
    }

    /// The thread of this process with that number.
    pub fn named(&self, tid: Tid) -> Option<ThreadName> {
        let Pid(pid) = self.program.env.pid;
        let found = self.find(|account| account.pid == pid && account.tid == tid.0)?;
        Some(name_of(&found))
    }

    /// A thread's account, as long as it is there.
    pub fn account(&self, name: ThreadName) -> Option<ThreadAccount> {
        let seen = self.scheduler().snapshot(name).ok()?;
        (seen.result == OK).then_some(seen.account)
    }

    /// Starts a sibling that computes until it is told to stop, with that weight; its handle and its number.
    pub fn start(&self, number: usize, order: Order) -> Option<CapSlot> {
        TIDS[number].store(0, Ordering::Relaxed);
        ORDERS[number].store(order.to_bits(), Ordering::Relaxed);
        self.program.spawn(number, obey, number as u64).ok()
    }

    /// Its number, once it runs.
    pub fn tid_of(&self, number: usize) -> Tid {
        loop {
            // Acquire: pairs with the release in `obey`.
            match TIDS[number].load(Ordering::Acquire) {
                0 => self.program.sleep(200_000),
                tid => return Tid(tid - 1),
            }
        }
    }

    /// Ends the siblings that compute.
    pub fn finish(&self, handles: &[CapSlot]) -> bool {
        UNTIL_NS.store(0, Ordering::Relaxed);
        handles.iter().all(|handle| self.program.finish(*handle) == Ok(0))
    }
}

pub const OK: schema::scheduler_control_capnp::ControlResult =
    schema::scheduler_control_capnp::ControlResult::Ok;
pub const STALE: schema::scheduler_control_capnp::ControlResult =
    schema::scheduler_control_capnp::ControlResult::StaleGeneration;

pub const NO_NAME: ThreadName =
    ThreadName { pid: 0, process_generation: 0, tid: 0, thread_generation: 0 };

pub fn name_of(account: &ThreadAccount) -> ThreadName {
    ThreadName {
        pid: account.pid,
        process_generation: account.process_generation,
        tid: account.tid,
        thread_generation: account.thread_generation,
    }
}

/// What a sibling does: it asks for a weight, then computes; and whether it sleeps once in between, so that what it
/// asked for is in effect.
#[derive(Clone, Copy)]
pub struct Order {
    /// 0 to ask for none.
    pub weight: u16,
    /// For how long it computes in between, in ns; 0 to sleep only once.
    pub computes_ns: u32,
}

impl Order {
    /// Computes under the share it was made with.
    pub const COMPUTE: Self = Self { weight: 0, computes_ns: 0 };

    /// Computes with that weight.
    pub const fn weigh(weight: u16) -> Self {
        Self { weight, computes_ns: 0 }
    }

    fn to_bits(self) -> u64 {
        u64::from(self.weight) << 32 | u64::from(self.computes_ns)
    }

    fn from_bits(bits: u64) -> Self {
        Self { weight: (bits >> 32) as u16, computes_ns: bits as u32 }
    }
}

static ORDERS: [AtomicU64; SIBLINGS] = [const { AtomicU64::new(0) }; SIBLINGS];
/// One more than the number of each sibling, once it runs.
static TIDS: [AtomicU32; SIBLINGS] = [const { AtomicU32::new(0) }; SIBLINGS];
/// When siblings begin to count and when they end.
static FROM_NS: AtomicU64 = AtomicU64::new(0);
static UNTIL_NS: AtomicU64 = AtomicU64::new(0);
/// What siblings say at the end: runtime, virtual runtime, blocks, preemptions, time of waiting to run, weight; and for
/// how long they counted.
pub const WORDS: usize = 7;
pub static SAID: [[AtomicU64; WORDS]; SIBLINGS] =
    [const { [const { AtomicU64::new(0) }; WORDS] }; SIBLINGS];

/// Siblings begin to count in a while, when all of them are there, and compute for `for_ns` from then on.
pub fn set_times(for_ns: u64) {
    let from = now_ns() + 3 * QUANTUM_NS;
    FROM_NS.store(from, Ordering::Relaxed);
    UNTIL_NS.store(from + for_ns, Ordering::Relaxed);
}

/// Whether siblings go on.
pub fn goes_on() -> bool {
    now_ns() < UNTIL_NS.load(Ordering::Relaxed)
}

/// Computes a little.
pub fn compute() {
    match GIVES_WAY.load(Ordering::Relaxed) {
        0 => work(32),
        _ => {
            work(4_000);
            core::hint::spin_loop();
        }
    }
}

/// Computes for so long by the clock.
pub fn compute_for(ns: u64) {
    let until = now_ns() + ns;
    while now_ns() < until && goes_on() {
        compute();
    }
}

/// The sibling's own share.
pub fn own(child: &Child) -> scheduling_policy::Client<Caller<'_>> {
    scheduling_policy::Client::new(child.io.caller(), slot(&POLICY))
}

/// The sibling's clock.
pub fn timer(child: &Child) -> timer::Client<Caller<'_>> {
    timer::Client::new(child.io.caller(), slot(&TIMER))
}

/// What a thread counted between two looks, for how long, and its weight at the second.
pub fn say(number: usize, before: &SnapshotResults, after: &SnapshotResults, for_ns: u64) {
    let words = [
        after.runtime_ns - before.runtime_ns,
        after.virtual_runtime_ns - before.virtual_runtime_ns,
        after.voluntary_blocks - before.voluntary_blocks,
        after.preemptions - before.preemptions,
        after.runnable_accumulated_ns - before.runnable_accumulated_ns,
        after.weight.into(),
        for_ns,
    ];
    for (place, word) in SAID[number].iter().zip(words) {
        place.store(word, Ordering::Relaxed);
    }
}

/// What a sibling said.
#[derive(Clone, Copy, Debug)]
pub struct Said {
    pub runtime_ns: u64,
    pub virtual_ns: u64,
    pub blocks: u64,
    pub preemptions: u64,
    pub waited_ns: u64,
    pub weight: u64,
    pub for_ns: u64,
}

pub fn said(number: usize) -> Said {
    let word = |at: usize| SAID[number][at].load(Ordering::Relaxed);
    Said {
        runtime_ns: word(0),
        virtual_ns: word(1),
        blocks: word(2),
        preemptions: word(3),
        waited_ns: word(4),
        weight: word(5),
        for_ns: word(6),
    }
}

/// A sibling that does as it is ordered.
fn obey(child: &Child) -> i64 {
    let number = child.argument as usize;
    // Release: pairs with the acquire in `tid_of`.
    TIDS[number].store(child.tid.0 + 1, Ordering::Release);
    i64::from(
        obeyed(child, number, Order::from_bits(ORDERS[number].load(Ordering::Relaxed))).is_err(),
    )
}

fn obeyed(child: &Child, number: usize, order: Order) -> Result<(), CallError> {
    if order.weight > 0 {
        own(child).set_weight(order.weight)?;
        // A sleep that is over before the thread has stopped queues nobody.
        while own(child).snapshot()?.weight != order.weight {
            timer(child).sleep(100_000)?;
        }
    }
    timer(child).sleep_until(FROM_NS.load(Ordering::Relaxed))?;
    let (from, before) = (now_ns(), own(child).snapshot()?);
    while goes_on() {
        if order.computes_ns > 0 {
            compute_for(order.computes_ns.into());
            timer(child).sleep(QUANTUM_NS / 5)?;
        } else {
            compute();
        }
    }
    let after = own(child).snapshot()?;
    say(number, &before, &after, now_ns() - from);
    Ok(())
}
