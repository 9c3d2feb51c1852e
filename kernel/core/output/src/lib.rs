//! Output of processes on its way to the console they share: a bounded ring of bytes for each process, the writes
//! that wait for room in it, and whose turn it is.
//!
//! A write goes into the ring of its process as a whole, or waits behind those that came before. A drain takes
//! bytes out again, turn by turn ([`Outlets::peek`], [`Outlets::sent`]), and lets in what fits then
//! ([`Outlets::admit`]). Nobody is waited for here, and no lock, thread or console is known.
//!
//! Rule of turns: a turn is as many whole lines as [`TURN_BYTES`] hold. A line that is longer, or has no end yet,
//! goes on in the same turn until its end, for at most [`LINE_BYTES`] and as long as there are bytes of it. Then the
//! next process with output has its turn. So a line that is in the ring when its turn comes is not mixed with
//! another process's, up to that length.
//! Decided in ADR 257.
#![no_std]

extern crate alloc;

mod outlet;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core_fallible::{OutOfMemory, try_collect};
pub use outlet::Outlet;

/// Bytes of a process that wait for the console at most: as many as the console takes in sixteen turns, and a page.
pub const RING_BYTES: usize = 4096;
/// Bytes of one write at most.
pub const WRITE_BYTES: usize = 64;
/// Writes of a process that wait for room at most: as many as a ring of the usual size submits at once.
pub const MAX_WAITING: usize = 32;
/// Bytes of whole lines in a turn: what the console takes at once.
pub const TURN_BYTES: usize = 256;
/// Bytes of a line that are not mixed with others': what a process may put before another's next line.
pub const LINE_BYTES: usize = 1024;

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a write that was not taken has to wait or to be refused"]
pub enum Written {
    /// It is in the ring.
    Taken,
    /// It waits for room, by the name it was given.
    Waits,
    /// There is no room, and it was given no name to wait by. Nothing has changed.
    Full,
    /// As many writes of the process wait as may. Nothing has changed.
    TooMany,
    /// The process has no ring. Nothing has changed.
    NotOpen,
}

/// A write that waited and is in the ring now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "whoever waits for it is to be told"]
pub struct Admitted<P> {
    /// By which name it waited.
    pub party: P,
    /// How many bytes it had.
    pub length: usize,
}

/// A process's end, as its output sees it.
#[derive(Debug)]
#[must_use = "a process whose output is on its way is not gone"]
pub enum Left<P, S> {
    /// Nothing of it is on its way any more; its ring, if it had one.
    Drained(Option<Box<Outlet<P, S>>>),
    /// There is. [`Outlets::sent`] says when it is gone.
    Later,
}

/// The rings of all processes, by position, and the turn.
#[derive(Debug)]
pub struct Outlets<P, S> {
    outlets: Vec<Option<Box<Outlet<P, S>>>>,
    /// Those that have bytes: how many, and a bit for each place.
    busy: usize,
    busy_bits: Vec<u64>,
    /// Whose turn it is or was, and how many bytes of it have gone out.
    turn: usize,
    used: usize,
    /// The next has its turn.
    is_over: bool,
    /// Nothing is taken any more.
    is_shut: bool,
}

impl<P, S: AsRef<[u8]> + AsMut<[u8]>> Outlets<P, S> {
    /// Empty places for so many processes.
    pub fn new(processes: usize) -> Result<Self, OutOfMemory> {
        let outlets = try_collect((0..processes).map(|_| None))?;
        let words = processes.div_ceil(u64::BITS as usize);
        let busy_bits = try_collect((0..words).map(|_| 0))?;
        Ok(Self { outlets, busy: 0, busy_bits, turn: 0, used: 0, is_over: true, is_shut: false })
    }

    fn at(&mut self, process: usize) -> Option<&mut Outlet<P, S>> {
        self.outlets.get_mut(process).and_then(Option::as_deref_mut)
    }

    /// A ring that had no bytes has some, or the reverse.
    fn set_busy(&mut self, process: usize, is_busy: bool) {
        let bits = u64::BITS as usize;
        let Some(word) = self.busy_bits.get_mut(process / bits) else { return };
        let bit = 1 << (process % bits);
        if is_busy {
            *word |= bit;
            self.busy += 1;
        } else {
            *word &= !bit;
            self.busy -= 1;
        }
    }

    /// The first place from `from` on that has bytes.
    fn busy_from(&self, from: usize) -> Option<usize> {
        let bits = u64::BITS as usize;
        let mut mask = u64::MAX << (from % bits);
        for (number, word) in self.busy_bits.iter().enumerate().skip(from / bits) {
            if word & mask != 0 {
                return Some(number * bits + (word & mask).trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }

    /// Gives a process its ring; it comes back if the process has one, or there is no such place.
    pub fn open(
        &mut self,
        process: usize,
        outlet: Box<Outlet<P, S>>,
    ) -> Result<(), Box<Outlet<P, S>>> {
        match self.outlets.get_mut(process) {
            Some(place) if place.is_none() && outlet.is_empty() => {
                *place = Some(outlet);
                Ok(())
            }
            _ => Err(outlet),
        }
    }

    /// Whether a process has a ring.
    pub fn is_open(&self, process: usize) -> bool {
        self.outlets.get(process).is_some_and(Option::is_some)
    }

    /// Takes a write of at most [`WRITE_BYTES`] as a whole; without room it waits as `party`, if that is given.
    pub fn write(&mut self, process: usize, party: Option<P>, bytes: &[u8]) -> Written {
        let is_shut = self.is_shut;
        let Some(outlet) = self.at(process) else { return Written::NotOpen };
        let was_empty = outlet.is_empty();
        // Behind those that came before, also if it would fit.
        if !is_shut && !outlet.is_waited_for() && outlet.push(bytes) {
            if was_empty && !outlet.is_empty() {
                self.set_busy(process, true);
            }
            return Written::Taken;
        }
        match party.map(|party| outlet.wait(party, bytes)) {
            None => Written::Full,
            Some(true) => Written::Waits,
            Some(false) => Written::TooMany,
        }
    }

    /// Takes a write out that waits; `false` if none of that name does.
    pub fn give_up(&mut self, process: usize, is_it: impl Fn(&P) -> bool) -> bool {
        self.at(process).is_some_and(|outlet| outlet.give_up(is_it))
    }

    /// Copies what goes out next to the start of `into`: whose it is, and how many bytes. Nothing has changed but
    /// the turn. `None` if there is no output.
    pub fn peek(&mut self, into: &mut [u8]) -> Option<(usize, usize)> {
        if self.busy == 0 {
            return None;
        }
        let goes_on = !self.is_over && self.at(self.turn).is_some_and(|outlet| !outlet.is_empty());
        if !goes_on {
            // After the one that had the last turn, and round.
            self.turn = self.busy_from(self.turn + 1).or_else(|| self.busy_from(0))?;
            self.used = 0;
            self.is_over = false;
        }
        let used = self.used;
        let outlet = self.outlets.get(self.turn)?.as_deref()?;
        let most = if used == 0 { TURN_BYTES } else { LINE_BYTES.saturating_sub(used) };
        let into_length = into.len().min(most);
        let count = outlet.copy_to(into.get_mut(..into_length).unwrap_or_default());
        let copied = into.get(..count).unwrap_or_default();
        let is_end = |byte: &u8| *byte == b'\n';
        let end = match used {
            0 => copied.iter().rposition(is_end),
            _ => copied.iter().position(is_end),
        };
        Some((self.turn, end.map_or(count, |at| at + 1)))
    }

    /// The first `count` bytes of a process that [`peek`](Self::peek) gave have gone out; whether they were the last of
    /// one that has left.
    #[must_use = "a process whose last byte has gone can be given up"]
    pub fn sent(&mut self, process: usize, count: usize) -> bool {
        let Some(outlet) = self.at(process) else { return false };
        let was_empty = outlet.is_empty();
        let ends_a_line = outlet.drop_first(count) == Some(b'\n');
        let is_empty = outlet.is_empty();
        let is_drained = outlet.is_leaving && is_empty && !was_empty;
        if is_empty && !was_empty {
            self.set_busy(process, false);
        }
        if process == self.turn {
            self.used += count;
            self.is_over |= ends_a_line || self.used >= LINE_BYTES;
        }
        is_drained
    }

    /// Lets in the write that has waited longest, if it fits.
    pub fn admit(&mut self, process: usize) -> Option<Admitted<P>> {
        if self.is_shut {
            return None;
        }
        let outlet = self.at(process)?;
        let was_empty = outlet.is_empty();
        let admitted = outlet.admit()?;
        if was_empty && !outlet.is_empty() {
            self.set_busy(process, true);
        }
        Some(admitted)
    }

    /// A process without threads has ended. If its output is still on its way, it stays.
    pub fn leave(&mut self, process: usize) -> Left<P, S> {
        let Some(place) = self.outlets.get_mut(process) else { return Left::Drained(None) };
        match place {
            Some(outlet) if !outlet.is_empty() => {
                outlet.is_leaving = true;
                Left::Later
            }
            _ => Left::Drained(place.take()),
        }
    }

    /// Takes nothing from now on: what has not been taken waits.
    pub fn shut(&mut self) {
        self.is_shut = true;
    }

    /// Whether there is output.
    pub fn has_output(&self) -> bool {
        self.busy > 0
    }

    /// Rings that there are.
    pub fn open_count(&self) -> usize {
        self.outlets.iter().flatten().count()
    }
}
