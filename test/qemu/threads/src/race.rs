//! Exit, join, detach and cancel against each other, from several threads at once.

use abi_types::{CapSlot, ExceptionKind};
use capos_rt::Io;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use schema::thread_handle;
use schema_wire::CallError;
use test_bare::program::{Program, is_exception};
use test_bare::raw::{By, Child, Raw, Run};
use test_kit::{Outcome, T, check, check_eq, require_eq, require_ok};

type Test<'a> = T<'a, Program>;

/// Threads that make and end others. With their two each and the first thread this is what the
/// profile allows.
const DRIVERS: usize = 3;
/// Lives a driver sees in one round.
const LIVES: u32 = 120;
/// Threads a driver detaches in a round: each has memory of its own until the round is over.
const DETACHED: usize = 16;

static DRIVER: [Raw<16384>; DRIVERS] = [const { Raw::new() }; DRIVERS];
static PLACES: [[Raw<8192>; 2]; DRIVERS] = [const { [const { Raw::new() }; 2] }; DRIVERS];
static DETACH: [[Raw<8192>; DETACHED]; DRIVERS] =
    [const { [const { Raw::new() }; DETACHED] }; DRIVERS];

static LIVED: AtomicU32 = AtomicU32::new(0);
static MADE: AtomicU32 = AtomicU32::new(0);
static OPERATIONS: AtomicU64 = AtomicU64::new(0);
static SEED: AtomicU64 = AtomicU64::new(0);
static SPAWNER: AtomicU64 = AtomicU64::new(0);
static CONTROL: AtomicU64 = AtomicU64::new(0);
static TIMER: AtomicU64 = AtomicU64::new(0);

/// Numbers that look random, from a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // xorshift64*, Vigna 2016.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 33) % end
    }
}

fn live(child: &Child) -> i64 {
    let how = child.argument;
    LIVED.fetch_add(1, Ordering::Relaxed);
    for _ in 0..(how >> 8) % 64 {
        core::hint::spin_loop();
    }
    if how & 1 == 1 {
        let _ = child.io.yield_now();
    }
    how as i64
}

fn by() -> By {
    let slot = |word: &AtomicU64| CapSlot::from_bits(word.load(Ordering::Relaxed));
    By { spawner: slot(&SPAWNER), control: slot(&CONTROL) }
}

/// Waits a moment without keeping the CPU, and the locks that asking again takes, busy.
fn pause(io: &Io) {
    let timer = CapSlot::from_bits(TIMER.load(Ordering::Relaxed));
    let _ = schema::timer::Client::new(io.caller(), timer).sleep(20_000);
}

/// Starts a life; waits while detached ones that have not been taken apart hold the records.
fn begin<const BYTES: usize>(io: &Io, raw: &'static Raw<BYTES>, argument: u64) -> Option<CapSlot> {
    loop {
        match raw.start(io, by(), Run { main: live, argument, fs_base: 0 }) {
            Ok(handle) => {
                MADE.fetch_add(1, Ordering::Relaxed);
                // Its start and its exit.
                OPERATIONS.fetch_add(2, Ordering::Relaxed);
                return Some(handle);
            }
            refused if is_exception(&refused, ExceptionKind::Overloaded, "as many threads") => {
                pause(io);
            }
            Err(_) => return None,
        }
    }
}

fn exit_code(io: &Io, handle: CapSlot) -> Result<Option<i64>, CallError> {
    let found = thread_handle::Client::new(io.caller(), handle).exit_code()?;
    Ok(found.exited.then_some(found.exit_code))
}

/// Joins, gives the handle back while the join waits, and takes the code all the same.
fn join_without_handle(io: &Io, handle: CapSlot) -> Option<i64> {
    let join = io
        .submit(capos_rt::caller::call_of::<thread_handle::methods::Join>(handle, 0), &[])
        .ok()?;
    io.release(handle).ok()?;
    let mut words = [0; 16];
    let cqe = io.wait(join, &mut words);
    // The root pointer, then the code.
    (cqe.status == 0).then_some(words[1] as i64)
}

/// Sees lives through, each to one of its ends; how many did not end as they should.
fn drive(child: &Child) -> i64 {
    let (io, number) = (&child.io, child.argument as usize);
    let mut random = Random(SEED.load(Ordering::Relaxed).wrapping_add(number as u64 * 77) | 1);
    let mut places: [Option<(CapSlot, u64)>; 2] = [None; 2];
    let (mut begun, mut detached, mut wrong) = (0, 0, 0);
    while begun < LIVES || places.iter().any(Option::is_some) {
        OPERATIONS.fetch_add(1, Ordering::Relaxed);
        let which = random.below(2) as usize;
        let code = random.below(1 << 20);
        let Some((handle, expected)) = places[which] else {
            if begun < LIVES && random.below(6) == 0 && detached < DETACHED {
                let Some(handle) = begin(io, &DETACH[number][detached], code) else { return -1 };
                wrong += i64::from(io.release(handle).is_err());
                detached += 1;
                begun += 1;
            } else if begun < LIVES {
                let Some(handle) = begin(io, &PLACES[number][which], code) else { return -2 };
                places[which] = Some((handle, code));
                begun += 1;
            }
            continue;
        };
        match random.below(5) {
            0 => {
                let joined = thread_handle::Client::new(io.caller(), handle).join();
                wrong += i64::from(joined.map(|found| found.exit_code) != Ok(expected as i64));
                wrong += i64::from(io.release(handle).is_err());
                places[which] = None;
            }
            1 => {
                wrong += i64::from(join_without_handle(io, handle) != Some(expected as i64));
                places[which] = None;
            }
            2 => {
                loop {
                    match exit_code(io, handle) {
                        Ok(None) => pause(io),
                        found => {
                            wrong += i64::from(found != Ok(Some(expected as i64)));
                            break;
                        }
                    }
                }
                wrong += i64::from(io.release(handle).is_err());
                places[which] = None;
            }
            _ => {}
        }
    }
    wrong + i64::try_from(io.strays()).unwrap_or(i64::MAX)
}

fn round(t: &mut Test<'_>) -> Outcome {
    let mut handles = [CapSlot::NONE; DRIVERS];
    for (number, handle) in handles.iter_mut().enumerate() {
        let run = Run { main: drive, argument: number as u64, fs_base: 0 };
        *handle = require_ok!(t, DRIVER[number].start(t.env.io(), t.env.by(), run));
    }
    for handle in handles {
        require_eq!(t, t.env.finish(handle), Ok(0));
    }
    // Every record can be had: so nothing that was detached is still there, nor its stack in use.
    let mut lives = [CapSlot::NONE; DRIVERS * 2 + DRIVERS];
    let memory = PLACES.iter().flatten().chain(DETACH.iter().flatten());
    for (handle, raw) in lives.iter_mut().zip(memory) {
        *handle = test_kit::require_some!(t, begin(t.env.io(), raw, 0));
    }
    for handle in lives {
        check_eq!(t, t.env.finish(handle), Ok(0));
    }
    Ok(())
}

pub fn race(t: &mut Test<'_>) -> Outcome {
    SPAWNER.store(t.env.spawner.to_bits(), Ordering::Relaxed);
    CONTROL.store(t.env.control.to_bits(), Ordering::Relaxed);
    TIMER.store(t.env.timer.to_bits(), Ordering::Relaxed);
    let seed = capos_rt::time::ticks() | 1;
    t.metric("seed", seed, "");
    // Once around, so that every ring is there and frames can be compared.
    SEED.store(seed, Ordering::Relaxed);
    round(t)?;
    t.env.sleep(2_000_000);
    let frames = t.env.free_frames();
    LIVED.store(0, Ordering::Relaxed);
    MADE.store(0, Ordering::Relaxed);
    for number in 1..=6 {
        SEED.store(seed.wrapping_mul(2 * number + 1), Ordering::Relaxed);
        round(t)?;
    }
    check_eq!(t, LIVED.load(Ordering::Relaxed), MADE.load(Ordering::Relaxed));
    t.metric("operations", OPERATIONS.load(Ordering::Relaxed), "");
    // The kernel's heap keeps what the most lives at once ever took, and racing ones can be more
    // at once than the first time around; what each life leaves behind would be far more.
    let kept = if t.env.cpus() == 1 { 0 } else { 8 };
    let after = t.env.until_frames(frames);
    check!(t, frames.abs_diff(after) <= kept, "{after} free frames, {frames} before");
    check_eq!(t, t.env.io().strays(), 0);
    Ok(())
}
