//! Random bytes for the kernel: gathered from the machine at boot, expanded on each CPU by itself.
//!
//! The CPU's own sources where there are some, durations of a read over a slow bus, and facts of this
//! boot go into one pool (`core_entropy`). A CPU takes a generator of its own out of it at its first use;
//! from then on [`fill`] touches nothing that is shared.
//!
//! Decided in ADR 216.

use crate::boot::Handover;
use crate::{cpu, port, time};
use core::arch::asm;
use core::cell::UnsafeCell;
use core::fmt;
use core_entropy::{Generator, Jitter, Pool, Source, is_stuck};
use smp_lock::{LockClass, TicketLock};
use spin::Once;

/// Words taken from each of the CPU's sources: twice what is enough.
const WORDS: usize = 8;
/// How often an empty source is asked again. RDRAND is empty less than once in 2⁶⁴ times after ten
/// (Intel DRNG guide, 5.2.1); RDSEED refills more slowly, and is worth a while at boot.
const RETRIES: u32 = 1000;
/// Durations that are measured: enough by themselves, if they are healthy.
const DURATIONS: usize = 1024;
/// Durations that are mixed at once: hashing them one by one would take longer than they do.
const BATCH: usize = 64;
/// The port of the timer's gate. Reading it does nothing, and takes a bus with a clock of its own.
const SLOW_PORT: u16 = 0x61;

/// How much the sources are believed to have brought, in bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gathered {
    /// RDSEED.
    pub seed: u64,
    /// RDRAND.
    pub generator: u64,
    /// Durations.
    pub jitter: u64,
}

impl Gathered {
    /// Whether nobody can guess what is drawn from it.
    pub const fn is_enough(&self) -> bool {
        self.seed + self.generator + self.jitter >= Pool::ENOUGH_BITS
    }
}

impl fmt::Display for Gathered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gathered { seed, generator, jitter } = self;
        write!(f, "{seed} bits from RDSEED, {generator} from RDRAND, {jitter} from durations")?;
        if !self.is_enough() {
            let enough = Pool::ENOUGH_BITS;
            write!(f, "; {enough} would be enough: secrets of this boot can be guessed")?;
        }
        Ok(())
    }
}

static POOL: Once<(TicketLock<Pool>, Gathered)> = Once::new();

/// A CPU's generator, in its block.
pub(crate) struct OwnGenerator(UnsafeCell<Option<Generator>>);

// SAFETY: touched by the owning CPU only, with interrupts off (invariant CPU-1).
unsafe impl Sync for OwnGenerator {}

impl OwnGenerator {
    pub(crate) const fn new() -> Self {
        Self(UnsafeCell::new(None))
    }
}

/// Gathers what there is, once; what was gathered. `handover` gives facts of this boot.
pub fn gather(handover: &Handover) -> Gathered {
    POOL.call_once(|| gathered(Some(handover))).1
}

/// Fills `out` with bytes that nobody can guess, as far as the machine has such (see [`gather`]).
pub fn fill(out: &mut [u8]) {
    // SAFETY: this CPU's own, and interrupts are off in the kernel, so nothing comes in between; neither
    // the pool nor the generator leads here again.
    let own = unsafe { &mut *cpu::this().random.0.get() };
    own.get_or_insert_with(|| POOL.call_once(|| gathered(None)).0.lock().fork()).fill(out);
}

/// What was gathered; `None` before that.
pub fn gathered_bits() -> Option<Gathered> {
    POOL.get().map(|(_, gathered)| *gathered)
}

/// Words that nobody can guess.
pub fn words<const N: usize>() -> [u64; N] {
    let mut words = [0; N];
    for word in &mut words {
        let mut bytes = [0; 8];
        fill(&mut bytes);
        *word = u64::from_le_bytes(bytes);
    }
    words
}

fn gathered(handover: Option<&Handover>) -> (TicketLock<Pool>, Gathered) {
    let mut pool = Pool::new();
    facts(&mut pool, handover);
    let features = cpu::this().features();
    let gathered = Gathered {
        seed: if features.rdseed { ask(&mut pool, Source::Seed, read_seed) } else { 0 },
        generator: if features.rdrand { ask(&mut pool, Source::Generator, read_random) } else { 0 },
        jitter: durations(&mut pool),
    };
    (TicketLock::with_class(LockClass::Entropy, pool), gathered)
}

fn facts(pool: &mut Pool, handover: Option<&Handover>) {
    let mut mix = |number: u64| pool.mix(Source::Facts, &number.to_le_bytes(), 0);
    mix(time::ticks());
    mix(u64::from(cpu::this().apic_id()));
    if let Some(handover) = handover {
        for region in handover.memory() {
            mix(region.base);
            mix(region.bytes);
        }
        let (init, exec) = handover.microseconds_before().unwrap_or((0, 0));
        mix(init);
        mix(exec);
        mix(handover.kernel_address().0);
        pool.mix(Source::Facts, handover.command_line().as_bytes(), 0);
    }
}

/// Mixes what a source of the CPU gives; how many bits that is.
fn ask(pool: &mut Pool, source: Source, read: fn() -> Option<u64>) -> u64 {
    let mut words = [0; WORDS];
    let mut count = 0;
    for word in &mut words {
        let Some(value) = (0..RETRIES).find_map(|_| read().or_else(pause)) else { break };
        *word = value;
        count += 1;
    }
    let given = words.get(..count).unwrap_or(&[]);
    let bits = if count < 2 || is_stuck(given) { 0 } else { 64 * count as u64 };
    for word in given {
        pool.mix(source, &word.to_le_bytes(), 64);
    }
    bits
}

fn pause() -> Option<u64> {
    cpu::relax();
    None
}

/// Measures how long a read over a slow bus takes, again and again; how many bits that is.
fn durations(pool: &mut Pool) -> u64 {
    let mut jitter = Jitter::default();
    for _ in 0..DURATIONS / BATCH {
        let mut batch = [0; BATCH * size_of::<u64>()];
        for place in batch.chunks_exact_mut(size_of::<u64>()) {
            let before = time::ticks();
            // SAFETY: reading the gate's port has no effect.
            let bits = unsafe { port::read_u8(SLOW_PORT) };
            let after = time::ticks();
            jitter.sample(after.wrapping_sub(before));
            place.copy_from_slice(&(after << 8 | u64::from(bits)).to_le_bytes());
        }
        pool.mix(Source::Jitter, &batch, 0);
    }
    jitter.bits()
}

fn read_seed() -> Option<u64> {
    let (word, given): (u64, u8);
    // SAFETY: the CPU has the instruction, by its features; it writes registers and flags.
    unsafe {
        asm!("rdseed {}", "setc {}", out(reg) word, out(reg_byte) given, options(nomem, nostack));
    }
    (given == 1).then_some(word)
}

fn read_random() -> Option<u64> {
    let (word, given): (u64, u8);
    // SAFETY: as for `read_seed`.
    unsafe {
        asm!("rdrand {}", "setc {}", out(reg) word, out(reg_byte) given, options(nomem, nostack));
    }
    (given == 1).then_some(word)
}
