//! The slot of a CPU for the thread that runs next, out of turn.
//!
//! A call whose server waits puts it there. The slot is a preference: whatever keeps its target from
//! running at once, it is queued like any other, once, and nobody notices but by the counters.
//!
//! * [`targets`]: the slot is taken, is not used, its target runs elsewhere. [`ends`]: either side of the
//!   hand-off ends while the target is in it.
#![no_std]
#![no_main]

mod ends;
mod targets;

use abi_types::{CapSlot, Status};
use capos_rt::thread::Threads;
use capos_rt::{Env, Error};
use ipc_protocol::{START, Work};
use schema::system_info;
use test_kit::{Suite, T, Test};
use test_ring::{Raw, sqe};

capos_rt::main!(main);

/// Peers the manifest starts.
pub const PEERS: usize = 12;

/// What the tests share.
pub struct Bench {
    pub env: &'static Env,
    pub timer: CapSlot,
    pub info: CapSlot,
    pub threads: Threads,
    pub echo: CapSlot,
    pub commands: [CapSlot; PEERS],
    pub services: [CapSlot; PEERS],
}

const SUITE: Suite<Bench> = Suite::new(&[
    Test::new("slot.taken", targets::taken),
    Test::new("slot.not_used", targets::not_used),
    Test::new("slot.two_callers", targets::two_callers),
    Test::new("slot.target_runs_elsewhere", targets::runs_elsewhere),
    Test::new("slot.caller_ends", ends::caller_ends),
    Test::new("slot.target_ends", ends::target_ends),
]);

fn main(env: &'static Env) -> Result<(), Error> {
    let named = |name: &str| env.caps.named(name).unwrap_or(CapSlot::NONE);
    let mut bench = Bench {
        env,
        timer: named("timer"),
        info: named("info"),
        threads: Threads::of(&env.caps)?,
        echo: named("echo"),
        commands: core::array::from_fn(|peer| named(numbered(b'c', peer).as_str())),
        services: core::array::from_fn(|peer| named(numbered(b's', peer).as_str())),
    };
    test_user::run_with(env, &SUITE, &mut bench)
}

/// A letter and a number below 100.
struct Name([u8; 3], usize);

fn numbered(letter: u8, number: usize) -> Name {
    let (tens, ones) = (b'0' + (number / 10) as u8, b'0' + (number % 10) as u8);
    if number < 10 { Name([letter, ones, 0], 2) } else { Name([letter, tens, ones], 3) }
}

impl Name {
    fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0[..self.1]).unwrap_or_default()
    }
}

/// Has a peer's worker do something.
pub fn start(ring: &mut Raw<'_>, bench: &Bench, peer: usize, work: Work) {
    ring.put(1, &[work as u64]);
    ring.ends(sqe::call(bench.commands[peer], START, 1, 8), Status::Ok, "start");
}

/// CPUs, hand-offs taken and missed so far.
pub fn counted(t: &mut T<'_, Bench>) -> Option<(u32, u64, u64)> {
    let Bench { env, info, .. } = *t.env;
    let mut info = system_info::Client::new(env.io.large(), info);
    let cpus = info.machine().ok()?.machine.cpus;
    let (mut taken, mut missed) = (0, 0);
    for cpu in 0..cpus {
        let counters = info.cpu(cpu).ok()?.counters;
        taken += counters.handoffs_taken;
        missed += counters.handoffs_missed;
    }
    Some((cpus, taken, missed))
}
