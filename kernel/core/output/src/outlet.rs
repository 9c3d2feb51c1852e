//! The ring of one process, and the writes that wait for room in it.

use crate::{Admitted, MAX_WAITING, WRITE_BYTES};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core_fallible::{OutOfMemory, try_box, try_push, try_reserve_exact};

/// A write that waits.
#[derive(Debug)]
struct Waiting<P> {
    party: P,
    length: usize,
    bytes: [u8; WRITE_BYTES],
}

/// The ring.
#[derive(Debug)]
pub struct Outlet<P, S> {
    /// In the order they came. Before the bytes, which may hold what pays for both: memory goes back first.
    waiting: Vec<Waiting<P>>,
    bytes: S,
    first: usize,
    length: usize,
    /// Its process is ending: nothing is taken any more.
    pub(crate) is_stopped: bool,
    /// Its process has ended.
    pub(crate) is_leaving: bool,
}

impl<P, S: AsRef<[u8]> + AsMut<[u8]>> Outlet<P, S> {
    /// The memory that [`new`](Self::new) takes, beside `bytes`.
    pub const OWN_BYTES: usize = size_of::<Self>() + MAX_WAITING * size_of::<Waiting<P>>();

    /// A ring over `bytes`, with memory for the writes that may wait.
    pub fn new(bytes: S) -> Result<Box<Self>, OutOfMemory> {
        let mut waiting = Vec::new();
        try_reserve_exact(&mut waiting, MAX_WAITING)?;
        try_box(Self { waiting, bytes, first: 0, length: 0, is_stopped: false, is_leaving: false })
    }

    fn capacity(&self) -> usize {
        self.bytes.as_ref().len()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(crate) const fn is_waited_for(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Adds bytes, all or none; whether they fit.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> bool {
        let capacity = self.capacity();
        if bytes.len() > capacity - self.length {
            return false;
        }
        // A ring of no bytes takes no bytes.
        let Some(end) = (self.first + self.length).checked_rem(capacity) else { return true };
        let until_wrap = bytes.len().min(capacity - end);
        let (now, later) = bytes.split_at_checked(until_wrap).unwrap_or((bytes, &[]));
        let ring = self.bytes.as_mut();
        for (at, part) in [(end, now), (0, later)] {
            if let Some(to) = ring.get_mut(at..at + part.len()) {
                to.copy_from_slice(part);
            }
        }
        self.length += bytes.len();
        true
    }

    /// The bytes, in two pieces because the ring wraps.
    fn pieces(&self) -> [&[u8]; 2] {
        let ring = self.bytes.as_ref();
        let until_wrap = self.length.min(ring.len() - self.first);
        [
            ring.get(self.first..self.first + until_wrap).unwrap_or_default(),
            ring.get(..self.length - until_wrap).unwrap_or_default(),
        ]
    }

    /// Copies the first bytes; how many there were and had room.
    pub(crate) fn copy_to(&self, into: &mut [u8]) -> usize {
        let mut left = into;
        let mut copied = 0;
        for piece in self.pieces() {
            let count = piece.len().min(left.len());
            let (to, rest) = left.split_at_mut_checked(count).unwrap_or_default();
            to.copy_from_slice(piece.get(..count).unwrap_or_default());
            left = rest;
            copied += count;
        }
        copied
    }

    /// Takes the first bytes out; the last of them.
    pub(crate) fn drop_first(&mut self, count: usize) -> Option<u8> {
        let count = count.min(self.length);
        let [first, second] = self.pieces();
        let last = count.checked_sub(1).and_then(|at| {
            first.get(at).or_else(|| second.get(at.checked_sub(first.len())?)).copied()
        });
        self.first = (self.first + count).checked_rem(self.capacity()).unwrap_or(0);
        self.length -= count;
        last
    }

    /// Keeps a write until there is room; `false` if as many wait as may, or it is longer than a write may be.
    pub(crate) fn wait(&mut self, party: P, from: &[u8]) -> bool {
        let mut bytes = [0; WRITE_BYTES];
        let Some(to) = bytes.get_mut(..from.len()) else { return false };
        to.copy_from_slice(from);
        let write = Waiting { party, length: from.len(), bytes };
        self.waiting.len() < MAX_WAITING && try_push(&mut self.waiting, write).is_ok()
    }

    pub(crate) fn give_up(&mut self, is_it: impl Fn(&P) -> bool) -> bool {
        let found = self.waiting.iter().position(|write| is_it(&write.party));
        found.map(|at| self.waiting.remove(at)).is_some()
    }

    pub(crate) fn admit(&mut self) -> Option<Admitted<P>> {
        let write = self.waiting.first()?;
        let (bytes, length) = (write.bytes, write.length);
        if !self.push(bytes.get(..length).unwrap_or_default()) {
            return None;
        }
        let Waiting { party, length, .. } = self.waiting.remove(0);
        Some(Admitted { party, length })
    }
}
