//! Stacks the program declares: how many there are, who has them, and what is left on them.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::hint::black_box;
use core::time::Duration;

use fiber::channel::bounded;
use fiber::sync::Mutex;
use fiber::{BuildError, Runtime, nursery, yield_now};
use fiber_cases::runtime;
use fiber_rt::{SystemError, scope};
use test_kit::{Outcome, T, check, check_eq, require_ok};
use test_user::Env;

type Test<'a> = T<'a, Env>;

/// Bytes of each fiber's stack.
pub const FIBER_BYTES: usize = 32 << 10;
/// Fibers at once.
pub const FIBERS: usize = 256;

/// Spawns fibers until no stack is left: how many there were beside the first, and what was said.
fn exhaust(runtime: &Runtime) -> (usize, String) {
    runtime.run(|| {
        scope(|s| {
            let mut held = Vec::new();
            loop {
                match s.spawn(|| fiber::sleep(Duration::from_secs(1000))) {
                    Ok(handle) => held.push(handle),
                    Err(error) => {
                        s.cancel();
                        return (held.len(), error.to_string());
                    }
                }
            }
        })
    })
}

pub fn as_many_as_declared(t: &mut Test<'_>) -> Outcome {
    let runtime = runtime(2);
    // Each time all of them, though their fibers ended on one worker or the other.
    for _ in 0..3 {
        let (spawned, refused) = exhaust(&runtime);
        check_eq!(t, spawned + 1, FIBERS);
        let words = ["all 256 fiber stacks", "declare more of them with fiber::stacks!"];
        check!(t, words.iter().all(|words| refused.contains(words)), "{refused}");
    }
    check_eq!(t, runtime.stats().stacks, FIBERS);
    drop(runtime);
    check_eq!(t, fiber_cases::runtime(1).run(|| 5), 5);
    Ok(())
}

/// Runs fibers that are all there at once; where the stack of each is.
fn places(runtime: &Runtime, count: usize, meanwhile: impl FnOnce() + Send) -> Vec<usize> {
    let places = Mutex::new(Vec::new());
    let (tx, rx) = bounded::<()>(0);
    runtime.run(|| {
        nursery(|n| {
            for _ in 0..count {
                n.spawn(|| {
                    let local = 0u8;
                    places.lock().push(core::ptr::from_ref(black_box(&local)).addr());
                    let _ = rx.recv();
                });
            }
            while places.lock().len() < count {
                yield_now().unwrap();
            }
            fiber::blocking(meanwhile);
            drop(tx);
        });
    });
    places.into_inner()
}

pub fn two_runtimes(t: &mut Test<'_>) -> Outcome {
    const EACH: usize = 40;
    let (first, second) = (runtime(1), runtime(1));
    let mut others = Vec::new();
    let mut all = places(&first, EACH, || others = places(&second, EACH, || ()));
    check_eq!(t, (first.stats().stacks, second.stats().stacks), (EACH + 1, EACH + 1));
    all.append(&mut others);
    all.sort_unstable();
    // The compiler may put a local anywhere in its frame, but every frame is at the top of a stack.
    let nearest = all.windows(2).map(|pair| pair[1] - pair[0]).min();
    check!(t, nearest.is_some_and(|bytes| bytes > FIBER_BYTES / 2), "{nearest:?} apart");
    check_eq!(t, all.len(), 2 * EACH);
    // What one has another cannot have, until it is dropped.
    let (spawned, _) = exhaust(&second);
    check_eq!(t, spawned + 1, FIBERS - (EACH + 1));
    drop(first);
    let (spawned, _) = exhaust(&second);
    check_eq!(t, spawned + 1, FIBERS);
    Ok(())
}

/// Though somebody holds on to the runtime: a future by its timers, or a thread that has just woken its last
/// fiber and has lost its CPU at that.
pub fn back_when_the_drop_returns(t: &mut Test<'_>) -> Outcome {
    let (first, second) = (runtime(1), runtime(1));
    check_eq!(t, places(&first, 40, || ()).len(), 40);
    let sleep = first.sleep(Duration::from_secs(1000));
    drop(first);
    let (spawned, _) = exhaust(&second);
    check_eq!(t, spawned + 1, FIBERS);
    drop(sleep);
    Ok(())
}

/// Calls itself until it is `bytes` below `start`, gives its worker up there, and looks at all it has
/// left on the way.
#[inline(never)]
fn dive(start: usize, bytes: usize, mark: u64) -> bool {
    let mine = black_box([mark; 24]);
    let depth = start - core::ptr::from_ref(&mine).addr();
    let is_intact = if depth >= bytes {
        yield_now().is_ok()
    } else {
        dive(start, bytes, mark.wrapping_mul(5).wrapping_add(1))
    };
    is_intact && black_box(&mine).iter().all(|word| *word == mark)
}

fn dive_by(bytes: usize, mark: u64) -> bool {
    let first = 0u8;
    dive(core::ptr::from_ref(black_box(&first)).addr(), bytes, mark)
}

/// What a fiber needs below the place it yields at, and above its first frame.
const RESERVE: usize = 6000;

pub fn used_to_the_bottom(t: &mut Test<'_>) -> Outcome {
    let runtime = runtime(3);
    let intact = runtime.run(|| {
        nursery(|n| {
            let divers: Vec<_> =
                (0..64).map(|mark| n.spawn(move || dive_by(FIBER_BYTES - RESERVE, mark))).collect();
            divers.into_iter().map(|diver| diver.join().unwrap()).filter(|good| *good).count()
        })
    });
    check_eq!(t, intact, 64);
    let stats = runtime.stats();
    let used = stats.stack_high_water_bytes;
    check!(t, used > FIBER_BYTES - RESERVE && used <= FIBER_BYTES, "{used} bytes used");
    Ok(())
}

pub fn clean_for_the_next(t: &mut Test<'_>) -> Outcome {
    let deep = runtime(1);
    check!(t, deep.run(|| dive_by(FIBER_BYTES - RESERVE, 7)));
    let used = deep.stats().stack_high_water_bytes;
    check!(t, used > FIBER_BYTES - RESERVE, "{used} bytes used");
    drop(deep);
    // On the stack that was given back last.
    let shallow = runtime(1);
    check_eq!(t, shallow.run(|| 3), 3);
    let used = shallow.stats().stack_high_water_bytes;
    check!(t, used > 0 && used < FIBER_BYTES / 2, "{used} bytes used");
    Ok(())
}

pub fn of_the_declared_size(t: &mut Test<'_>) -> Outcome {
    for asked in [1, 16 << 10, FIBER_BYTES] {
        let runtime = require_ok!(t, Runtime::builder().workers(1).stack_bytes(asked).build());
        check_eq!(t, runtime.stats().stack_bytes, FIBER_BYTES);
    }
    let asked = FIBER_BYTES + 1;
    let refused = Runtime::builder().workers(1).stack_bytes(asked).build().map(|_| ());
    let expected = SystemError::StackBytes { asked, declared: FIBER_BYTES };
    check_eq!(t, refused, Err(BuildError::System(expected)));
    let text = expected.to_string();
    let words = ["32769 bytes", "declares them with 32768", "larger in fiber::stacks!"];
    check!(t, words.iter().all(|words| text.contains(words)), "{text}");
    Ok(())
}
