//! What the other process of the tests of memory objects is asked for, and a game that both play.
#![no_std]

use abi_types::{CapSlot, NEVER, Opcode, Sqe, Status};
use capos_rt::io::Io;
use schema::memory_capnp::MemoryAccess;
use test_wild::at;

/// Where it maps what it has made.
pub const MADE_AT: u64 = 0x3000_0000_0000;
/// What it writes there.
pub const MAGIC: u64 = 0x6d61_6b65_7220_6120;

/// What it is asked for, by the number of the method. Words of the message in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Keep the object that came along.
    Keep,
    /// Map the object (address, offset, bytes, access).
    Map,
    /// Unmap it (address, bytes).
    Unmap,
    /// Read a word (address); the answer is the word.
    Read,
    /// Write a word (address, value).
    Write,
    /// Release the object.
    Drop,
    /// Make an object (bytes), map it, write into it; it comes with the answer.
    Make,
    /// Unmap whatever is there (address, bytes).
    UnmapOwn,
    /// After the answer: play (address, rounds).
    Play,
    /// End without an answer.
    Exit,
}

impl Ask {
    const ALL: [Self; 10] = [
        Self::Keep,
        Self::Map,
        Self::Unmap,
        Self::Read,
        Self::Write,
        Self::Drop,
        Self::Make,
        Self::UnmapOwn,
        Self::Play,
        Self::Exit,
    ];

    /// What a method asks for.
    pub fn of(method: u16) -> Option<Self> {
        Self::ALL.get(usize::from(method)).copied()
    }
}

/// An access by number.
pub fn access_of(number: u64) -> MemoryAccess {
    match number {
        0 => MemoryAccess::Read,
        1 => MemoryAccess::Write,
        _ => MemoryAccess::Execute,
    }
}

/// UNPARK and PARK by address.
fn run(io: &Io, opcode: Opcode, park: CapSlot, word: u64, value: u64, limit: u64) -> Status {
    let sqe = Sqe {
        opcode: opcode as u8,
        cap: park.to_bits(),
        arg: word,
        address: value,
        result_address: limit,
        ..Sqe::default()
    };
    io.run_plain(sqe).map_or_else(|status| status, |(status, _)| status)
}

/// Counts a word up in turns with another: who plays odd numbers (`parity` 1) waits for an odd one. Each waits parked, and
/// wakes the other. `false` if a PARK or UNPARK is refused.
pub fn play(io: &Io, park: CapSlot, word: u64, rounds: u64, parity: u64) -> bool {
    for round in 0..rounds {
        let mine = (2 * round + parity) as u32;
        loop {
            let now = at::read32(word);
            if now == mine {
                break;
            }
            let parked = run(io, Opcode::Park, park, word, now.into(), NEVER);
            if !matches!(parked, Status::Woken | Status::Mismatch) {
                return false;
            }
        }
        at::write32(word, mine + 1);
        if run(io, Opcode::Unpark, park, word, 1, 0) != Status::Ok {
            return false;
        }
    }
    true
}
