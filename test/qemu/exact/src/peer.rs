//! The other processes: one that serves and revokes, and ones that compute until they are ended.

use abi_types::{CapSlot, Opcode, Sqe, SqeFlags, Status};
use capos_rt::io::status_of;
use capos_rt::{Env, Error, exit, now_ns};
use core::sync::atomic::{AtomicU32, Ordering};
use schema::endpoint;
use test_bare::program::{Sibling, nameless_slots, work};
use test_bare::raw::{By, Child, Run};

use crate::SIBLINGS;

/// Answers its payload's first word.
pub const ECHO: u16 = 0;
/// Revokes the facets with the badge in its payload; answers how many there were.
pub const REVOKE: u16 = 1;
/// Answers how many names the process's CapSet has, and how many slots without a name it holds.
pub const SLOTS: u16 = 2;
/// Ends the process, without an answer.
pub const END: u16 = 3;
/// Answers the badge that the call came with.
pub const BADGE: u16 = 4;

/// What the process with a secret has in every word of its rings.
pub const SECRET: u64 = 0x5ec2_e75e_c2e7_5ec2;

/// Receives calls on `endpoint` and answers what `handle` makes of method and first word; it answers
/// and waits for the next call in one, as services do.
fn receive(
    env: &Env,
    endpoint: CapSlot,
    mut handle: impl FnMut(u16, u64) -> [u64; 2],
) -> Result<(), Error> {
    let cap = endpoint.to_bits();
    let mut words = [0; 16];
    let recv = Sqe { opcode: Opcode::Recv as u8, cap, ..Sqe::default() };
    let mut cqe = env.io.run(recv, &[], &mut words)?;
    loop {
        if status_of(&cqe) != Status::Ok {
            return Err(status_of(&cqe).into());
        }
        let answer = match cqe.method {
            SLOTS => [env.caps.iter().count() as u64, nameless_slots(env).into()],
            BADGE => [cqe.badge, 0],
            method => handle(method, words[0]),
        };
        let sqe = Sqe {
            opcode: Opcode::Return as u8,
            flags: SqeFlags::THEN_RECV,
            cap,
            arg: cqe.token,
            length: 16,
            ..Sqe::default()
        };
        cqe = env.io.run(sqe, &answer, &mut words)?;
    }
}

/// Serves, and revokes its own facets when it is asked to.
pub fn serve(env: &'static Env, requests: CapSlot) -> Result<(), Error> {
    receive(env, requests, |method, word| {
        if method == REVOKE {
            let revoked = endpoint::Client::new(env.io.caller(), requests).revoke_facets(word);
            return [revoked.map_or(u64::MAX, |found| found.revoked.into()), 0];
        }
        [word, !word]
    })
}

/// Makes siblings at the first echo, which write over their rings, and ends when it is told to. What the
/// rings were is the machine's next memory of that size.
pub fn keep_a_secret(env: &'static Env, requests: CapSlot) -> Result<(), Error> {
    let by = By {
        spawner: env.cap("spawner", schema::thread_spawner::INTERFACE_ID)?,
        control: env.cap("control", schema::thread_control::INTERFACE_ID)?,
    };
    let mut are_made = false;
    receive(env, requests, |method, _| {
        if method == END {
            exit(0);
        }
        if !are_made {
            are_made = true;
            for sibling in &SIBLINGS {
                let run = Run { main: fill_own_ring, argument: 0, fs_base: 0 };
                if sibling.start(&env.io, by, run).is_err() {
                    exit(1);
                }
            }
        }
        [u64::from(FILLED.load(Ordering::Relaxed)), 0]
    })
}

static FILLED: AtomicU32 = AtomicU32::new(0);

/// Fills the ring's inline slots, which begin after indices and entries, with words.
fn fill_own_ring(child: &Child) -> i64 {
    child.io.with_ring(|ring| {
        let slots = ring.sq_entries() as u16;
        for slot in 0..slots {
            ring.write_inline(slot, &[SECRET; 16]);
        }
    });
    FILLED.fetch_add(1, Ordering::Relaxed);
    loop {
        let _ = capos_rt::syscall::cap_enter(1, abi_types::NEVER);
    }
}

/// Threads of the largest process, its first among them.
pub const CROWD: usize = 16;

static GATHERED: [Sibling; CROWD - 1] = [const { Sibling::new() }; CROWD - 1];

/// Makes threads that wait for ever at the first echo, as many as its profile allows, and ends when it is told to.
pub fn gather(env: &'static Env, requests: CapSlot) -> Result<(), Error> {
    let by = By {
        spawner: env.cap("spawner", schema::thread_spawner::INTERFACE_ID)?,
        control: env.cap("control", schema::thread_control::INTERFACE_ID)?,
    };
    receive(env, requests, |method, _| {
        if method == END {
            exit(0);
        }
        let run = || Run { main: wait_for_ever, argument: 0, fs_base: 0 };
        let made = GATHERED.iter().take_while(|sibling| sibling.start(&env.io, by, run()).is_ok());
        [made.count() as u64, 0]
    })
}

static MAY_END: AtomicU32 = AtomicU32::new(0);

/// Ends the process as soon as it runs and may.
fn end_it(child: &Child) -> i64 {
    while MAY_END.load(Ordering::Acquire) == 0 {
        let _ = child.io.yield_now();
    }
    exit(0)
}

/// Waits for what never comes.
fn wait_for_ever(_: &Child) -> i64 {
    loop {
        let _ = capos_rt::syscall::cap_enter(1, abi_types::NEVER);
    }
}

/// Makes threads that wait for ever, from as long before the end of its slice as a call says; a sibling
/// ends the process when the slice is over, in the middle of making one.
pub fn make_threads(env: &'static Env, requests: CapSlot) -> Result<(), Error> {
    let by = By {
        spawner: env.cap("spawner", schema::thread_spawner::INTERFACE_ID)?,
        control: env.cap("control", schema::thread_control::INTERFACE_ID)?,
    };
    let start = |number: usize, main| {
        let run = Run { main, argument: 0, fs_base: 0 };
        SIBLINGS[number].start(&env.io, by, run).is_ok()
    };
    receive(env, requests, |_, lead_ns| {
        if !start(0, end_it) || env.io.yield_now().is_err() {
            exit(1);
        }
        MAY_END.store(1, Ordering::Release);
        // The slice began with the return from that yield.
        let from = now_ns() + SLICE_NS - lead_ns;
        while now_ns() < from {
            work(8);
        }
        for number in 1..SIBLINGS.len() {
            let _ = start(number, wait_for_ever);
        }
        [0; 2]
    })
}

/// How long a thread runs while another waits.
const SLICE_NS: u64 = 10_000_000;

/// The sibling runs.
static SPINS: AtomicU32 = AtomicU32::new(0);

fn spin_for_ever(_: &Child) -> i64 {
    loop {
        SPINS.fetch_add(1, Ordering::Relaxed);
        core::hint::spin_loop();
    }
}

/// Serves, with a sibling that computes from the first echo on, until the process is told to end.
pub fn spin(env: &'static Env, requests: CapSlot) -> Result<(), Error> {
    let by = By {
        spawner: env.cap("spawner", schema::thread_spawner::INTERFACE_ID)?,
        control: env.cap("control", schema::thread_control::INTERFACE_ID)?,
    };
    receive(env, requests, |method, _| {
        if method == END {
            exit(0);
        }
        if SPINS.load(Ordering::Relaxed) == 0 {
            let run = Run { main: spin_for_ever, argument: 0, fs_base: 0 };
            if SIBLINGS[0].start(&env.io, by, run).is_err() {
                exit(1);
            }
        }
        [SPINS.load(Ordering::Relaxed).into(), 0]
    })
}
