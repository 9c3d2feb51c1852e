//! Random bytes: there are some on every CPU and CPU model, and nowhere the same.
#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use kernel_arch::{cpu, entropy};
use kernel_sys::{Machine, smp};
use test_kernel::Env;
use test_kit::{Outcome, Suite, T, Test, check, check_eq};

kernel_sys::kernel_main!(main);

const SUITE: Suite<Env> = Suite::new(&[
    Test::new("entropy.sources", sources),
    Test::new("entropy.nothing-twice", nothing_twice),
    Test::new("entropy.no-byte-is-left", no_byte_is_left),
]);

fn main(machine: &'static Machine) -> ! {
    test_kernel::run(machine, &SUITE)
}

fn sources(t: &mut T<'_, Env>) -> Outcome {
    let (gathered, has) = (t.env.entropy, cpu::this().features());
    check_eq!(t, gathered.seed > 0, has.rdseed);
    check_eq!(t, gathered.generator > 0, has.rdrand);
    if has.rdrand || has.rdseed {
        check!(t, gathered.is_enough(), "{gathered}");
    }
    // Where time is instructions there is no chance in it, and a kernel that believes in some is wrong.
    if t.env.words().has("no_chance") {
        check_eq!(t, gathered.jitter, 0);
    }
    t.metric("durations", gathered.jitter, "bits");
    Ok(())
}

const EACH: usize = 64;
const MOST: usize = 8 * EACH;
static DRAWN: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn draw() {
    for word in entropy::words::<EACH>() {
        let at = COUNT.fetch_add(1, Ordering::Relaxed);
        if let Some(place) = DRAWN.get(at) {
            place.store(word, Ordering::Relaxed);
        }
    }
}

/// Words drawn on all CPUs, one after the other and at once.
fn nothing_twice(t: &mut T<'_, Env>) -> Outcome {
    draw();
    smp::run_on_others(draw);
    draw();
    let count = COUNT.load(Ordering::Relaxed).min(MOST);
    check_eq!(t, count, (t.env.cpus().len() + 1) * EACH);
    let mut ones = 0;
    for (at, word) in DRAWN.iter().take(count).enumerate() {
        let word = word.load(Ordering::Relaxed);
        ones += u64::from(word.count_ones());
        let again = DRAWN.iter().take(at).any(|other| other.load(Ordering::Relaxed) == word);
        check!(t, !again, "{word:#x} was drawn twice");
    }
    let half = count as u64 * 32;
    check!(t, ones.abs_diff(half) < half / 8, "{ones} ones of {} bits", 2 * half);
    Ok(())
}

/// Whatever the length, every byte is drawn.
fn no_byte_is_left(t: &mut T<'_, Env>) -> Outcome {
    for length in [1, 7, 63, 64, 65, 200] {
        let mut seen = [0u8; 200];
        for _ in 0..40 {
            let mut bytes = [0u8; 200];
            entropy::fill(&mut bytes[..length]);
            seen.iter_mut().zip(bytes).for_each(|(seen, byte)| *seen |= byte);
        }
        check!(t, seen[..length].iter().all(|byte| *byte == 0xff), "of {length} bytes");
        check!(t, seen[length..].iter().all(|byte| *byte == 0), "beyond {length} bytes");
    }
    Ok(())
}
