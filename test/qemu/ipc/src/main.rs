//! Calls between processes, and what becomes of them when a side ends.
//!
//! * [`calls`]: matching, order, limits, tokens, counters. [`races`]: cancels against answers.
//!   [`requeue`]: a cancel of a receive that was put back. [`midway`]: either side gives up in a delivery.
//! * [`kill`]: a peer ends at each point of a call.
#![no_std]
#![no_main]

mod calls;
mod kill;
mod midway;
mod races;
mod requeue;

use abi_types::{CapSlot, Status};
use capos_rt::thread::Threads;
use capos_rt::{Env, Error};
use schema::endpoint::LoadResults;
use schema::system_info::{Machine, MachineResults};
use schema::timer::SleepParams;
use test_kit::{Suite, Test};
use test_ring::{Raw, sqe};

capos_rt::main!(main);

/// Peers the manifest starts.
pub const PEERS: usize = 25;
/// The badge of the tester's own facet.
pub const OWN_BADGE: u64 = 1000;
/// What is added to a peer's number for the badge of its service.
pub const SERVICE_BADGE: u64 = 500;

/// What the tests share.
pub struct Bench {
    pub env: &'static Env,
    pub timer: CapSlot,
    pub info: CapSlot,
    pub threads: Threads,
    /// The tester's own endpoint, which peers call with their number as badge.
    pub own: CapSlot,
    pub own_facet: CapSlot,
    pub spare: CapSlot,
    pub spare_facet: CapSlot,
    pub echo: CapSlot,
    pub commands: [CapSlot; PEERS],
    pub services: [CapSlot; PEERS],
    /// What the end of a peer gave back, once one has ended.
    pub given_back: Option<kill::Memory>,
}

const SUITE: Suite<Bench> = Suite::new(&[
    Test::new("ipc.echo", calls::echo),
    Test::new("ipc.other_interfaces", calls::other_interfaces),
    Test::new("ipc.hand_off_is_counted", calls::hand_off_is_counted),
    Test::new("ipc.no_allocation", calls::no_allocation),
    Test::new("ipc.one_entry_a_side", calls::one_entry_a_side),
    Test::new("ipc.fifo", calls::fifo),
    Test::new("ipc.batch_of_returns", calls::batch_of_returns),
    Test::new("ipc.tokens", calls::tokens),
    Test::new("ipc.limits", calls::limits),
    Test::new("ipc.large_messages", calls::large_messages),
    Test::new("ipc.deadlines_cost_no_timer", calls::deadlines_cost_no_timer),
    Test::new("ipc.requeued_receive_is_cancelled", requeue::cancelled),
    Test::new("ipc.receive_given_up_midway", midway::receive_given_up),
    Test::new("ipc.call_given_up_midway", midway::call_given_up),
    // The spare endpoint is gone after this.
    Test::new("ipc.endpoint_released", calls::endpoint_released),
    Test::new("ipc.cancel_races_answer", races::cancel_races_answer),
    Test::new("ipc.server_threads", races::server_threads),
    Test::new("ipc.server_thread_ends", races::server_thread_ends),
    Test::new("kill.caller_that_waits", kill::caller_that_waits),
    Test::new("kill.caller_that_is_served", kill::caller_that_is_served),
    Test::new("kill.receiver", kill::receiver),
    Test::new("kill.server", kill::server),
    Test::new("kill.after_return", kill::after_return),
    Test::new("kill.sleeping", kill::sleeping),
    Test::new("kill.joining", kill::joining),
    Test::new("kill.parked", kill::parked),
    Test::new("kill.reading", kill::reading),
    Test::new("kill.waiting", kill::waiting),
    Test::new("kill.running", kill::running),
    Test::new("kill.calling", kill::calling),
]);

fn main(env: &'static Env) -> Result<(), Error> {
    let named = |name: &str| env.caps.named(name).unwrap_or(CapSlot::NONE);
    let mut bench = Bench {
        env,
        timer: named("timer"),
        info: named("info"),
        threads: Threads::of(&env.caps)?,
        own: named("t"),
        own_facet: named("self"),
        spare: named("spare"),
        spare_facet: named("spare_client"),
        echo: named("echo"),
        commands: core::array::from_fn(|peer| named(numbered(b'c', peer).as_str())),
        services: core::array::from_fn(|peer| named(numbered(b's', peer).as_str())),
        given_back: None,
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

/// What waits and is served at an endpoint of the tester's.
pub fn load(ring: &mut Raw<'_>, endpoint: CapSlot) -> (u32, u32) {
    let got =
        ring.ends(sqe::named(sqe::call_endpoint(endpoint, 2, 0, 0), 0x10ad), Status::Ok, "load");
    got.results().map_or((u32::MAX, u32::MAX), |load: LoadResults| (load.queued, load.in_flight))
}

/// Lets `ns` pass.
pub fn sleep(ring: &mut Raw<'_>, timer: CapSlot, ns: u64) {
    let length = ring.put_params(60, &SleepParams { ns });
    ring.ends(sqe::named(sqe::call_timer(timer, 1, 60, length), 0x51ee), Status::Ok, "sleep");
}

/// The machine's counters.
pub fn machine(ring: &mut Raw<'_>, info: CapSlot) -> Option<Machine> {
    let got = ring.ends(sqe::named(sqe::call_info(info, 0, 0, 0), 0x3ac1), Status::Ok, "machine");
    got.results().map(|results: MachineResults| results.machine)
}
