//! A process that tries to hurt others, in the way an observer tells it to.
//!
//! It has nothing that any program may not have: its own ring, threads, endpoint, timer and console.
//!
//! * [`rings`]: the ring, its credits and cells. [`objects`]: threads, facets, sleeps, parks, messages.
//!   [`shared`]: memory objects. [`told`]: what is only read.
//! * [`mixed`]: several of these at once. [`open`]: attacks on what is known to be open. [`sizes`]: little or much of
//!   the same.
#![no_std]
#![no_main]

mod mixed;
mod objects;
mod open;
mod rings;
mod shared;
mod sizes;
mod told;

use abi_types::{CapSlot, Opcode, Sqe, SqeFlags, Status};
use attack_orders::Order;
use capos_rt::io::status_of;
use capos_rt::{Env, Error, Io, Ring, now_ns};
use core::sync::atomic::{AtomicU64, Ordering};
use test_bare::program::{Sibling, work};
use test_bare::raw::{By, Child, Main, Run};

capos_rt::main!(main);

/// Siblings at once.
const SIBLINGS: usize = 12;
static MEMORY: [Sibling; SIBLINGS] = [const { Sibling::new() }; SIBLINGS];

/// An hour: longer than any run.
const HOUR_NS: u64 = 3_600_000_000_000;

/// What an attack has at hand.
struct Attacker {
    env: &'static Env,
    timer: CapSlot,
    park: CapSlot,
    console: CapSlot,
    by: By,
    /// Its own endpoint, and a facet of it.
    own: CapSlot,
    to_self: CapSlot,
    /// Its address space, and what makes memory objects.
    memory: CapSlot,
    frames: CapSlot,
    /// What each CPU does.
    trace: CapSlot,
    /// A facet of a server that others call too.
    echo: CapSlot,
    /// A facet of the observer's endpoint.
    observer: CapSlot,
}

/// What siblings use.
static TIMER: AtomicU64 = AtomicU64::new(0);
static PARK: AtomicU64 = AtomicU64::new(0);
static OWN: AtomicU64 = AtomicU64::new(0);
static TO_SELF: AtomicU64 = AtomicU64::new(0);
static ECHO: AtomicU64 = AtomicU64::new(0);
/// When siblings end by themselves.
static UNTIL_NS: AtomicU64 = AtomicU64::new(0);

fn slot(of: &AtomicU64) -> CapSlot {
    CapSlot::from_bits(of.load(Ordering::Relaxed))
}

/// Whether siblings go on.
fn goes_on() -> bool {
    now_ns() < UNTIL_NS.load(Ordering::Relaxed)
}

impl Attacker {
    fn io(&self) -> &'static Io {
        &self.env.io
    }

    fn spawn(&self, number: usize, main: Main) -> Option<CapSlot> {
        let run = Run { main, argument: number as u64, fs_base: 0 };
        MEMORY[number].start(self.io(), self.by, run).ok()
    }

    /// Makes siblings, lets `meanwhile` run, and joins them: how many there were.
    fn with_siblings(&self, count: usize, main: Main, meanwhile: impl FnOnce()) -> u64 {
        let handles: [Option<CapSlot>; SIBLINGS] =
            core::array::from_fn(
                |number| if number < count { self.spawn(number, main) } else { None },
            );
        meanwhile();
        for handle in handles.into_iter().flatten() {
            let _ = schema::thread_handle::Client::new(self.io().caller(), handle).join();
            let _ = self.io().release(handle);
        }
        handles.iter().flatten().count() as u64
    }
}

fn main(env: &'static Env) -> Result<(), Error> {
    let named = |name| env.caps.named(name).unwrap_or(CapSlot::NONE);
    let attacker = Attacker {
        env,
        timer: named("timer"),
        park: named("park"),
        console: named("console"),
        by: By { spawner: named("spawner"), control: named("control") },
        own: named("own"),
        to_self: named("self"),
        memory: named("memory"),
        frames: named("frames"),
        trace: named("trace"),
        echo: named("echo"),
        observer: named("observer"),
    };
    let shared = [
        (&TIMER, attacker.timer),
        (&PARK, attacker.park),
        (&OWN, attacker.own),
        (&TO_SELF, attacker.to_self),
        (&ECHO, attacker.echo),
    ];
    for (place, slot) in shared {
        place.store(slot.to_bits(), Ordering::Relaxed);
    }
    let orders = named("orders").to_bits();
    let mut words = [0; 16];
    let recv = Sqe { opcode: Opcode::Recv as u8, cap: orders, ..Sqe::default() };
    let mut cqe = env.io.run(recv, &[], &mut words)?;
    while status_of(&cqe) == Status::Ok {
        UNTIL_NS.store(words[0], Ordering::Relaxed);
        let done = match Order::of(cqe.method) {
            Some(order) => carry_out(&attacker, order, words[0], words[1]),
            None => [0; 2],
        };
        let answer = Sqe {
            opcode: Opcode::Return as u8,
            flags: SqeFlags::THEN_RECV,
            cap: orders,
            arg: cqe.token,
            length: 16,
            ..Sqe::default()
        };
        cqe = env.io.run(answer, &done, &mut words)?;
    }
    Ok(())
}

/// How often it was done, and what else the observer wants to know.
fn carry_out(attacker: &Attacker, order: Order, until_ns: u64, word: u64) -> [u64; 2] {
    let attack: fn(&Attacker) -> u64 = match order {
        Order::Compute => |_| compute(),
        Order::Rings => rings::failures,
        Order::Cells => rings::cells,
        Order::Credits => rings::credits,
        Order::Handles => objects::handles,
        Order::Facets => objects::facets,
        Order::Sleepers => objects::sleepers,
        Order::Parkers => return [objects::parkers(attacker, word), 0],
        Order::Yields => objects::yields,
        Order::Messages => objects::messages,
        Order::Segments => return [objects::segments(attacker, word), 0],
        Order::Bursts => objects::bursts,
        Order::PendingEnds => mixed::pending_ends,
        Order::FullFacets => mixed::full_facets,
        Order::LostCalls => mixed::lost_calls,
        Order::Timeouts => mixed::timeouts,
        Order::Objects => shared::objects,
        Order::Trace => mixed::trace,
        Order::Readers => told::readers,
        Order::End => mixed::end,
        Order::Fault => mixed::fault,
        Order::ConsoleReads => open::console_reads,
        Order::Newlines => open::newlines,
        Order::Close => return [open::close(attacker), 0],
        Order::ReceiverEnds => open::receiver_ends,
        Order::Threads => return [1, open::threads(attacker)],
        Order::Queue => open::queue,
        Order::ComputeInASibling => {
            |attacker| attacker.with_siblings(1, |_| compute() as i64, || ())
        }
        Order::Hold => return [sizes::hold(attacker, word), 0],
        Order::Crowd => return [sizes::crowd(attacker, word), 0],
        Order::Receive => return [sizes::receive(attacker, word), 0],
        Order::Leave => sizes::leave,
        Order::Shut => return [sizes::shut(attacker), 0],
        Order::Exits | Order::Flood | Order::Free => |_| 0,
    };
    let attack = |attacker: &Attacker| match order {
        Order::Exits => sizes::exits(attacker, word),
        Order::Flood => sizes::flood(attacker, word),
        Order::Free => sizes::free(attacker, word),
        _ => attack(attacker),
    };
    // Once in any case: where CPUs race, the time may be over before it has begun.
    let mut rounds = 0;
    loop {
        let more = attack(attacker);
        rounds += more;
        if more == 0 || now_ns() >= until_ns {
            return [rounds, 0];
        }
    }
}

/// Computes to the end.
fn compute() -> u64 {
    let mut turns = 0;
    loop {
        work(64);
        turns += 1;
        if !goes_on() {
            return turns;
        }
    }
}

/// Takes all completions there are.
fn drain(ring: &mut Ring) -> u64 {
    let mut count = 0;
    while let Some(completion) = ring.pop() {
        let _ = completion.take();
        count += 1;
    }
    count
}

/// User data of raw operations: the top bit is theirs.
const fn raw(number: u64) -> u64 {
    1 << 63 | number
}

/// Lets others run until the time is over.
fn stay(child: &Child) {
    while goes_on() {
        let _ = child.io.yield_now();
    }
}
