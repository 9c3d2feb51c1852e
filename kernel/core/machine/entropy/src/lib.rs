//! Random bytes: a pool that conditions what the machine offers, and generators that expand it.
//!
//! * [`Pool`]: whatever is mixed in, the state is a hash over all of it, so that nothing that is known or
//!   chosen takes away what something else brought. It counts how much is believed to be in it.
//! * [`Generator`]: a stream of bytes from a key that is replaced after every use, so that a key that
//!   leaks does not tell what was handed out before. One for each user, which then needs no lock.
//! * [`Jitter`]: whether the durations of a piece of code are random enough to count.
//!
//! BLAKE2b does both, keyed by position: conditioner and expander are one hash of one kept crate.
//!
//! Decided in ADR 216.
#![no_std]

mod jitter;

pub use jitter::Jitter;

use blake2::{Blake2b512, Digest};

/// Bytes of a state or key, and of one block of output.
const BLOCK: usize = 64;

/// What a hash is for: two uses never hash the same text.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Use {
    Mix = 1,
    Fork = 2,
    Output = 3,
    Next = 4,
}

/// Where bytes come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Source {
    /// Facts of the machine and of this boot, which others may know.
    Facts = 1,
    /// The CPU's noise source (RDSEED).
    Seed = 2,
    /// The CPU's generator (RDRAND).
    Generator = 3,
    /// Durations.
    Jitter = 4,
}

fn hash(of: Use, state: &[u8; BLOCK], number: u64, parts: &[&[u8]]) -> [u8; BLOCK] {
    let mut hash = Blake2b512::new();
    hash.update(state);
    hash.update([of as u8]);
    hash.update(number.to_le_bytes());
    for part in parts {
        // With its length, so that two ways to cut one text are two texts.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// Everything that was mixed, as one hash.
#[derive(Clone)]
pub struct Pool {
    state: [u8; BLOCK],
    forks: u64,
    bits: u64,
}

impl Pool {
    /// Bits from which on nobody guesses the state.
    pub const ENOUGH_BITS: u64 = 256;

    /// Nothing mixed.
    pub const fn new() -> Pool {
        Pool { state: [0; BLOCK], forks: 0, bits: 0 }
    }

    /// Mixes bytes in, of which `bits` are believed to be known to nobody.
    pub fn mix(&mut self, source: Source, bytes: &[u8], bits: u64) {
        self.state = hash(Use::Mix, &self.state, source as u64, &[bytes]);
        // No bytes carry more than they have.
        self.bits = self.bits.saturating_add(bits.min(bytes.len() as u64 * 8));
    }

    /// How many bits are believed to be in it.
    pub const fn bits(&self) -> u64 {
        self.bits
    }

    /// A generator that no other shares a key with; the pool cannot make the same again.
    pub fn fork(&mut self) -> Generator {
        let key = hash(Use::Fork, &self.state, self.forks, &[]);
        self.forks = self.forks.wrapping_add(1);
        self.state = hash(Use::Next, &self.state, self.forks, &[]);
        Generator { key }
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self::new()
    }
}

/// A stream of bytes.
pub struct Generator {
    key: [u8; BLOCK],
}

impl Generator {
    /// Fills `out`; what is left of the key afterwards does not tell what it was.
    pub fn fill(&mut self, out: &mut [u8]) {
        for (number, block) in (0u64..).zip(out.chunks_mut(BLOCK)) {
            let bytes = hash(Use::Output, &self.key, number, &[]);
            for (to, from) in block.iter_mut().zip(bytes) {
                *to = from;
            }
        }
        self.key = hash(Use::Next, &self.key, 0, &[]);
    }
}

/// Whether words of a hardware source are all the same, as those of a source that is broken are.
pub fn is_stuck(words: &[u64]) -> bool {
    words.windows(2).all(|pair| pair.first() == pair.last())
}
