//! What vandals and the witness say to each other.
//!
//! A vandal's facet of `news` carries its number and its seed as badge, so that the witness knows who
//! calls whatever the vandal says, and a run's seed is in one place, the manifest.
#![no_std]

/// Asks for the seed; answered when the vandal is to begin, with [`Start`].
pub const HELLO: u16 = 1;
/// Tells how far it is, with [`News`].
pub const NEWS: u16 = 2;

/// Vandals that keep what they need to go on, numbered from 0.
pub const CAREFUL: usize = 2;
/// Vandals that do not, numbered after those.
pub const RECKLESS: usize = 8;
/// All of them.
pub const VANDALS: usize = CAREFUL + RECKLESS;

/// The number and the seed in a badge.
pub const fn of_badge(badge: u64) -> (usize, u64) {
    ((badge & 0xff) as usize, badge >> 8)
}

/// The badge of the facet by which the witness tells itself how many operations are enough: this much
/// more than their number.
pub const GOAL: u64 = 1 << 63;

/// How a vandal begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// What its numbers follow from.
    pub seed: u64,
    /// Whether it may spoil what it needs to go on.
    pub is_reckless: bool,
}

impl Start {
    /// Words of a message.
    pub const fn to_words(self) -> [u64; 2] {
        [self.seed, self.is_reckless as u64]
    }

    /// From the words of a message.
    pub const fn from_words([seed, is_reckless]: [u64; 2]) -> Self {
        Self { seed, is_reckless: is_reckless != 0 }
    }
}

/// How far a careful vandal is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// SQEs and syscalls of its first thread, and turns of those that spoil.
    pub operations: u64,
    /// `cap_enter`s among them, which the kernel counts too.
    pub entries: u64,
    /// What was wrong with the outcome of lies that have a known one.
    pub lies: u64,
    /// Unknown syscalls that were answered otherwise.
    pub syscalls: u64,
    /// What was wrong with kernel calls through a ring that nobody spoils.
    pub calls: u64,
}

impl News {
    /// Bytes of a message.
    pub const BYTES: u32 = 40;

    /// Words of a message.
    pub const fn to_words(self) -> [u64; 5] {
        [self.operations, self.entries, self.lies, self.syscalls, self.calls]
    }

    /// From the words of a message.
    pub const fn from_words([operations, entries, lies, syscalls, calls]: [u64; 5]) -> Self {
        Self { operations, entries, lies, syscalls, calls }
    }
}
