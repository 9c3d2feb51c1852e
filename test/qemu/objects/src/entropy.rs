//! Entropy: bytes that nobody else is given.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

use abi_types::{CapSlot, ExceptionKind};
use schema::entropy;
use test_bare::raw;
use test_kit::{Outcome, check, check_eq, require, require_ok};

use crate::{Run, kind_of};

/// Right and wrong counts; what it rests on.
pub fn arguments(t: &mut Run<'_>) -> Outcome {
    let io = t.env.program.io();
    let mut client = entropy::Client::new(io.large(), t.env.entropy);
    for count in [1_u32, 8, 63, 128, 960] {
        let message = require_ok!(t, client.fill(count));
        let bytes = require_ok!(t, message.get()).bytes;
        check_eq!(t, bytes.len(), count as usize);
        check!(t, count < 63 || bytes.iter().any(|byte| *byte != 0), "{count}");
    }
    // The last would need more than the 1 KiB that results may have here.
    for count in [0, 1025, u32::MAX, 1024] {
        check_eq!(
            t,
            kind_of(&client.fill(count).map(|_| ())),
            Some(ExceptionKind::InvalidArgument)
        );
    }
    let mut narrow = entropy::Client::new(io.caller(), t.env.entropy);
    check!(t, narrow.fill(64).is_ok());
    check_eq!(t, kind_of(&narrow.fill(128).map(|_| ())), Some(ExceptionKind::InvalidArgument));
    let info = require_ok!(t, narrow.info());
    let bits = info.seed_bits + info.generator_bits + info.jitter_bits;
    check_eq!(t, info.enough, bits >= 256);
    t.metric("bits gathered", bits.into(), "bits");
    Ok(())
}

/// Words that each of the threads draws.
const WORDS: usize = 1536;
const THREADS: usize = 3;

static SLOT: AtomicU64 = AtomicU64::new(0);
static DRAWN: [[AtomicU64; WORDS]; THREADS] =
    [const { [const { AtomicU64::new(0) }; WORDS] }; THREADS];
static FAILED: AtomicU32 = AtomicU32::new(0);

/// Draws as much as it can get.
fn drawer(child: &raw::Child) -> i64 {
    let slot = CapSlot::from_bits(SLOT.load(SeqCst));
    let mut client = entropy::Client::new(child.io.large(), slot);
    let Some(places) = DRAWN.get(child.argument as usize) else { return 1 };
    for part in places.chunks(96) {
        let Ok(message) = client.fill(part.len() as u32 * 8) else {
            FAILED.fetch_add(1, SeqCst);
            return 2;
        };
        let Ok(results) = message.get() else { return 3 };
        for (place, word) in part.iter().zip(results.bytes.chunks_exact(8)) {
            let word = word.try_into().map_or(0, u64::from_le_bytes);
            place.store(word, SeqCst);
        }
    }
    0
}

/// Threads on all CPUs draw at once: no word comes twice, and each gets all of its.
pub fn never_twice(t: &mut Run<'_>) -> Outcome {
    SLOT.store(t.env.entropy.to_bits(), SeqCst);
    let mut threads = [CapSlot::NONE; THREADS];
    for (number, place) in threads.iter_mut().enumerate() {
        *place = require_ok!(t, t.env.program.spawn(number, drawer, number as u64));
    }
    for thread in threads {
        check_eq!(t, t.env.program.finish(thread), Ok(0));
    }
    check_eq!(t, FAILED.load(SeqCst), 0);
    // Of 4,608 words of 64 bits two are the same once in 10¹² runs.
    const BUCKETS: usize = 8192;
    static SEEN: [AtomicU64; BUCKETS] = [const { AtomicU64::new(0) }; BUCKETS];
    let mut twice = 0;
    let mut ones = 0_u64;
    for word in DRAWN.iter().flatten().map(|word| word.load(SeqCst)) {
        ones += u64::from(word.count_ones());
        let mut at = word as usize % BUCKETS;
        while let Some(place) = SEEN.get(at) {
            match place.load(SeqCst) {
                0 => {
                    place.store(word, SeqCst);
                    break;
                }
                found => {
                    twice += u32::from(found == word);
                    at = (at + 1) % BUCKETS;
                }
            }
        }
    }
    let bits = (THREADS * WORDS * 64) as u64;
    require!(t, twice == 0, "{twice} words came twice");
    // Half of the bits, but for 2 %: 20 times the deviation that chance has.
    check!(t, ones.abs_diff(bits / 2) < bits / 50, "{ones} of {bits} bits are set");
    Ok(())
}
