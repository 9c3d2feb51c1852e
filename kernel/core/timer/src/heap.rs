//! The heap: a complete binary tree, so that a timer's depth is never more than log₂ n.
//!
//! Timers keep their identity: it is links that are exchanged, never contents. The way to the
//! n-th place of a complete tree is spelled by the bits of n below its highest.

use crate::Timer;
use crate::timer::NONE;

/// Deadlines of one CPU. `timers` is the one table of cells all queues share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlineQueue {
    pub(crate) number: u32,
    pub(crate) root: u32,
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
    /// The timer's position in the table.
    pub index: u32,
    /// The deadline it was armed with; not later than the time that was asked about.
    pub deadline_ns: u64,
}

/// A refusal; nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// There is no timer of that index.
    NoSuchTimer,
    /// It is armed already; cancel it first.
    Armed,
    /// It is not armed in this queue.
    NotHere,
}

impl DeadlineQueue {
    /// The empty queue of CPU `number`.
    pub const fn new(number: u32) -> Self {
        Self { number, root: NONE, len: 0, sequence: 0 }
    }

    /// Arms a timer that is armed nowhere.
    #[inline]
    pub fn arm(&mut self, timers: &[Timer], index: u32, deadline_ns: u64) -> Result<Armed, Error> {
        let timer = timers.get(index as usize).ok_or(Error::NoSuchTimer)?;
        if timer.queue().is_some() {
            return Err(Error::Armed);
        }
        self.sequence += 1;
        timer.set(deadline_ns, self.sequence);
        timer.set_queue(Some(self.number));
        timer.left.set(NONE);
        timer.right.set(NONE);
        let place = self.len + 1;
        let parent = self.at(timers, place / 2);
        timer.parent.set(parent);
        match timers.get(parent as usize) {
            Some(above) if place & 1 == 0 => above.left.set(index),
            Some(above) => above.right.set(index),
            None => self.root = index,
        }
        self.len += 1;
        self.rise(timers, index);
        Ok(Armed { is_nearest: self.root == index })
    }

    /// Takes a timer out before its time.
    #[inline]
    pub fn cancel(&mut self, timers: &[Timer], index: u32) -> Result<(), Error> {
        let timer = timers.get(index as usize).ok_or(Error::NoSuchTimer)?;
        if timer.queue() != Some(self.number) {
            return Err(Error::NotHere);
        }
        self.take_out(timers, index, timer);
        Ok(())
    }

    /// Takes out the nearest timer if its deadline has come.
    #[inline]
    pub fn pop_expired(&mut self, timers: &[Timer], now_ns: u64) -> Option<Expired> {
        let index = self.root;
        let timer = timers.get(index as usize)?;
        let deadline_ns = timer.deadline_ns();
        if deadline_ns > now_ns {
            return None;
        }
        self.take_out(timers, index, timer);
        Some(Expired { index, deadline_ns })
    }

    /// The nearest deadline.
    #[inline]
    pub fn next_deadline_ns(&self, timers: &[Timer]) -> Option<u64> {
        timers.get(self.root as usize).map(Timer::deadline_ns)
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

    /// The timer at a place, counted from 1 row by row; none for place 0.
    fn at(&self, timers: &[Timer], place: u32) -> u32 {
        if place == 0 {
            return NONE;
        }
        let mut index = self.root;
        for bit in (0..place.ilog2()).rev() {
            let Some(timer) = timers.get(index as usize) else { return NONE };
            index = if place >> bit & 1 == 0 { timer.left.get() } else { timer.right.get() };
        }
        index
    }

    fn take_out(&mut self, timers: &[Timer], index: u32, timer: &Timer) {
        let last = self.at(timers, self.len);
        let Some(last_timer) = timers.get(last as usize) else { return };
        match timers.get(last_timer.parent.get() as usize) {
            Some(above) if above.left.get() == last => above.left.set(NONE),
            Some(above) => above.right.set(NONE),
            None => self.root = NONE,
        }
        self.len -= 1;
        timer.set_queue(None);
        if last != index {
            // The last takes the place that became free, then finds its own.
            self.put(timers, last, timer.parent.get(), timer.left.get(), timer.right.get());
            self.replace_child(timers, timer.parent.get(), index, last);
            self.sink(timers, last);
            self.rise(timers, last);
        }
    }

    /// Gives a timer its neighbours and tells those below.
    fn put(&self, timers: &[Timer], index: u32, parent: u32, left: u32, right: u32) {
        let Some(timer) = timers.get(index as usize) else { return };
        timer.parent.set(parent);
        timer.left.set(left);
        timer.right.set(right);
        for child in [left, right] {
            if let Some(child) = timers.get(child as usize) {
                child.parent.set(index);
            }
        }
    }

    /// Makes the one above point to `new` where it pointed to `old`.
    fn replace_child(&mut self, timers: &[Timer], parent: u32, old: u32, new: u32) {
        match timers.get(parent as usize) {
            Some(above) if above.left.get() == old => above.left.set(new),
            Some(above) => above.right.set(new),
            None => self.root = new,
        }
    }

    /// Moves a timer up while it is nearer than the one above it.
    fn rise(&mut self, timers: &[Timer], index: u32) {
        let Some(timer) = timers.get(index as usize) else { return };
        while let Some(above) = timers.get(timer.parent.get() as usize) {
            if above.place() <= timer.place() {
                return;
            }
            self.exchange(timers, timer.parent.get(), above, index, timer);
        }
    }

    /// Moves a timer down while one below it is nearer.
    fn sink(&mut self, timers: &[Timer], index: u32) {
        let Some(timer) = timers.get(index as usize) else { return };
        loop {
            let mut nearest: Option<(u32, &Timer)> = None;
            for child in [timer.left.get(), timer.right.get()] {
                if let Some(below) = timers.get(child as usize)
                    && below.place() < nearest.map_or(timer.place(), |(_, n)| n.place())
                {
                    nearest = Some((child, below));
                }
            }
            let Some((child, below)) = nearest else { return };
            self.exchange(timers, index, timer, child, below);
        }
    }

    /// A timer and the one directly above it change places.
    fn exchange(
        &mut self,
        timers: &[Timer],
        upper: u32,
        upper_timer: &Timer,
        lower: u32,
        lower_timer: &Timer,
    ) {
        let (parent, left, right) =
            (upper_timer.parent.get(), upper_timer.left.get(), upper_timer.right.get());
        self.put(timers, upper, lower, lower_timer.left.get(), lower_timer.right.get());
        if left == lower {
            self.put(timers, lower, parent, upper, right);
        } else {
            self.put(timers, lower, parent, left, upper);
        }
        self.replace_child(timers, parent, upper, lower);
    }
}
