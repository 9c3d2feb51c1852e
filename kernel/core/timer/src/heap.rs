//! The heap: a complete binary tree, so that a timer's depth is never more than log₂ n.
//!
//! Timers keep their identity: it is links that are exchanged, never contents. The way to the
//! n-th place of a complete tree is spelled by the bits of n below its highest.

use crate::timer::Link;
use crate::{Owner, Table, Timer};
use core::ptr;

/// Deadlines of one CPU. `table` finds the timers that are linked.
#[derive(Debug)]
pub struct DeadlineQueue {
    pub(crate) name: u64,
    pub(crate) root: Link,
    pub(crate) len: u32,
    sequence: u64,
}

/// A timer is armed.
#[must_use = "the one-shot may have to be moved"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Armed {
    /// It is the nearest of its queue now.
    pub is_nearest: bool,
}

/// A timer whose deadline has come, out of the queue.
#[must_use = "it expires only once"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired {
    /// Whose it was.
    pub owner: Owner,
    /// The deadline it was armed with; not later than the time that was asked about.
    pub deadline_ns: u64,
}

/// A refusal; nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// It is armed already; cancel it first.
    Armed,
    /// It is not armed in this queue.
    NotHere,
}

/// Bits of a queue's name that are its number.
const NUMBER_BITS: u32 = u16::BITS;

impl DeadlineQueue {
    /// The empty queue of CPU `number`. No two queues that share timers have the same `identity`, below 2⁴⁷.
    pub fn new(identity: u64, number: u16) -> Self {
        let name = (identity + 1) << NUMBER_BITS | u64::from(number);
        Self { name, root: Link::none(), len: 0, sequence: 0 }
    }

    /// Arms a timer that is armed nowhere.
    #[inline]
    pub fn arm(
        &mut self,
        table: &(impl Table + ?Sized),
        timer: &Timer,
        owner: Owner,
        deadline_ns: u64,
    ) -> Result<Armed, Error> {
        if timer.queue().is_some() {
            return Err(Error::Armed);
        }
        self.sequence += 1;
        timer.enter(self.name, owner, deadline_ns, self.sequence);
        timer.left.set(ptr::null());
        timer.right.set(ptr::null());
        let place = self.len + 1;
        let parent = self.place(table, place / 2);
        timer.parent.set(parent);
        match table.at(parent) {
            Some(above) if place & 1 == 0 => above.left.set(timer),
            Some(above) => above.right.set(timer),
            None => self.root.set(timer),
        }
        self.len += 1;
        self.rise(table, timer);
        Ok(Armed { is_nearest: ptr::eq(self.root.get(), timer) })
    }

    /// Takes a timer out before its time.
    #[inline]
    pub fn cancel(&mut self, table: &(impl Table + ?Sized), timer: &Timer) -> Result<(), Error> {
        if !timer.is_in(self.name) {
            return Err(Error::NotHere);
        }
        self.take_out(table, timer);
        Ok(())
    }

    /// Takes out the nearest timer if its deadline has come.
    #[inline]
    pub fn pop_expired(&mut self, table: &(impl Table + ?Sized), now_ns: u64) -> Option<Expired> {
        let timer = table.at(self.root.get())?;
        let deadline_ns = timer.deadline_ns();
        if deadline_ns > now_ns {
            return None;
        }
        let owner = timer.owner();
        self.take_out(table, timer);
        Some(Expired { owner, deadline_ns })
    }

    /// The nearest deadline.
    #[inline]
    pub fn next_deadline_ns(&self, table: &(impl Table + ?Sized)) -> Option<u64> {
        table.at(self.root.get()).map(Timer::deadline_ns)
    }

    /// How many timers are armed in this queue.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether no timer is armed in this queue.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The timer at a place of the tree, counted from 1 row by row; none for place 0.
    fn place(&self, table: &(impl Table + ?Sized), place: u32) -> *const Timer {
        if place == 0 {
            return ptr::null();
        }
        let mut at = self.root.get();
        for bit in (0..place.ilog2()).rev() {
            let Some(timer) = table.at(at) else { return ptr::null() };
            at = if place >> bit & 1 == 0 { timer.left.get() } else { timer.right.get() };
        }
        at
    }

    fn take_out(&mut self, table: &(impl Table + ?Sized), timer: &Timer) {
        let Some(last) = table.at(self.place(table, self.len)) else { return };
        match table.at(last.parent.get()) {
            Some(above) if ptr::eq(above.left.get(), last) => above.left.set(ptr::null()),
            Some(above) => above.right.set(ptr::null()),
            None => self.root.set(ptr::null()),
        }
        self.len -= 1;
        if !ptr::eq(last, timer) {
            // The last takes the place that became free, then finds its own.
            put(table, last, timer.parent.get(), timer.left.get(), timer.right.get());
            self.replace_child(table, timer.parent.get(), timer, last);
            self.sink(table, last);
            self.rise(table, last);
        }
        // After the last look at it: from here on it may be gone.
        timer.leave();
    }

    /// Makes the one above point to `new` where it pointed to `old`.
    fn replace_child(
        &self,
        table: &(impl Table + ?Sized),
        parent: *const Timer,
        old: *const Timer,
        new: *const Timer,
    ) {
        match table.at(parent) {
            Some(above) if ptr::eq(above.left.get(), old) => above.left.set(new),
            Some(above) => above.right.set(new),
            None => self.root.set(new),
        }
    }

    /// Moves a timer up while it is nearer than the one above it.
    fn rise(&self, table: &(impl Table + ?Sized), timer: &Timer) {
        while let Some(above) = table.at(timer.parent.get()) {
            if above.place() <= timer.place() {
                return;
            }
            self.exchange(table, above, timer);
        }
    }

    /// Moves a timer down while one below it is nearer.
    fn sink(&self, table: &(impl Table + ?Sized), timer: &Timer) {
        loop {
            let mut nearest: Option<&Timer> = None;
            for child in [timer.left.get(), timer.right.get()] {
                if let Some(below) = table.at(child)
                    && below.place() < nearest.map_or(timer.place(), Timer::place)
                {
                    nearest = Some(below);
                }
            }
            let Some(below) = nearest else { return };
            self.exchange(table, timer, below);
        }
    }

    /// A timer and the one directly above it change places.
    fn exchange(&self, table: &(impl Table + ?Sized), upper: &Timer, lower: &Timer) {
        let (parent, left, right) = (upper.parent.get(), upper.left.get(), upper.right.get());
        put(table, upper, lower, lower.left.get(), lower.right.get());
        if ptr::eq(left, lower) {
            put(table, lower, parent, upper, right);
        } else {
            put(table, lower, parent, left, upper);
        }
        self.replace_child(table, parent, upper, lower);
    }
}

/// Gives a timer its neighbours and tells those below.
fn put(
    table: &(impl Table + ?Sized),
    timer: &Timer,
    parent: *const Timer,
    left: *const Timer,
    right: *const Timer,
) {
    timer.parent.set(parent);
    timer.left.set(left);
    timer.right.set(right);
    for child in [left, right] {
        if let Some(child) = table.at(child) {
            child.parent.set(timer);
        }
    }
}
