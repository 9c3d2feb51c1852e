//! Deadlines: a wheel of wheels, whose entries live on the stacks of those who wait.
//!
//! Time is cut into ticks. A wheel has 64 slots; the wheel an entry is on is that of the highest six
//! bits in which its tick differs from now, so it is always ahead of the hand, and moves to a finer
//! wheel when the hand comes to its slot. Insertion and removal touch one slot.
//!
//! A timer is due when its tick has begun, never before its deadline. Who looks: a worker on every
//! 61st pick and whenever it has nothing to do; the one idle worker that is the keeper sleeps no
//! longer than to the next deadline; the monitor as a last resort.

use core::cell::Cell;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use fiber_core::Outcome;

use crate::list::{List, Node};
use crate::lock::SpinLock;
use crate::wait::{Wait, Waker};

/// A tick is 2¹⁵ ns, about 33 µs: a timer is late by that at most, before scheduling.
const TICK_SHIFT: u32 = 15;
/// Six bits a level: 54 bits of ticks, more than a 64-bit time in nanoseconds has.
const LEVELS: usize = 9;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;

/// Wakers collected under the lock before they are issued after it.
const BATCH: usize = 64;

/// No deadline.
pub(crate) const NEVER: u64 = u64::MAX;

#[derive(Clone, Copy)]
enum Action {
    /// Ends a wait with Timeout.
    Wake(*const Wait),
    /// Calls a function that takes no lock but its own, under the wheel's.
    Call(unsafe fn(*const ()), *const ()),
}

struct Entry {
    action: Action,
    due_tick: Cell<u64>,
    slot: Cell<(usize, usize)>,
}

// SAFETY: entries are only reached under the wheel's lock.
unsafe impl Send for Entry {}

/// A timer; it stays where it is while it is in the wheel.
pub(crate) struct Timer(Node<Entry>);

impl Timer {
    fn new(action: Action) -> Self {
        Self(Node::new(Entry { action, due_tick: Cell::new(0), slot: Cell::new((0, 0)) }))
    }

    /// Ends `wait` when due.
    pub fn wake(wait: &Wait) -> Self {
        Self::new(Action::Wake(wait))
    }

    /// Calls `f(data)` when due.
    pub fn call(f: unsafe fn(*const ()), data: *const ()) -> Self {
        Self::new(Action::Call(f, data))
    }
}

struct Wheel {
    /// Everything due before this tick has been fired.
    now_tick: u64,
    slots: [[List<Entry>; SLOTS]; LEVELS],
    /// Which slots hold something.
    occupied: [u64; LEVELS],
    len: usize,
}

/// The timers of a runtime.
pub(crate) struct Timers {
    wheel: SpinLock<Wheel>,
    /// When to look next, or NEVER.
    next_ns: AtomicU64,
    /// The sleeping worker that looks, plus one.
    keeper: AtomicUsize,
}

impl Timers {
    pub fn new(now_ns: u64) -> Self {
        Self {
            wheel: SpinLock::new(Wheel {
                now_tick: now_ns >> TICK_SHIFT,
                slots: core::array::from_fn(|_| core::array::from_fn(|_| List::new())),
                occupied: [0; LEVELS],
                len: 0,
            }),
            next_ns: AtomicU64::new(NEVER),
            keeper: AtomicUsize::new(0),
        }
    }

    /// When the next one is due, about: never later.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.next_ns.load(Ordering::Relaxed)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.wheel.with(|wheel| wheel.len)
    }

    /// Makes `worker`, which goes to sleep, the keeper if there is none, and says until when it may
    /// sleep.
    pub fn keep(&self, worker: usize) -> Option<u64> {
        let is_keeper =
            self.keeper.compare_exchange(0, worker + 1, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if !is_keeper {
            return None;
        }
        // Pairs with the fence in `insert`: either it sees the keeper or this sees its deadline.
        fence(Ordering::SeqCst);
        match self.next_ns() {
            NEVER => None,
            next => Some(next),
        }
    }

    /// Ends the keeping of `worker`, which is awake.
    pub fn unkeep(&self, worker: usize) {
        if self.keeper.load(Ordering::Relaxed) == worker + 1 {
            self.keeper.store(0, Ordering::SeqCst);
        }
    }

    /// Puts `timer` in, and returns the worker to wake because it sleeps past the deadline.
    ///
    /// # Safety
    /// The timer stays where it is until it is removed.
    #[must_use]
    pub unsafe fn insert_quietly(&self, timer: &Timer, deadline_ns: u64) -> Option<usize> {
        // Rounded up: never early.
        let tick = (deadline_ns >> TICK_SHIFT).saturating_add(1);
        let is_first = self.wheel.with(|wheel| {
            // SAFETY: by the caller.
            unsafe { wheel.link(timer, tick) };
            wheel.len += 1;
            let due_ns = tick.max(wheel.now_tick).saturating_mul(1 << TICK_SHIFT);
            let is_first = due_ns < self.next_ns.load(Ordering::Relaxed);
            if is_first {
                self.next_ns.store(due_ns, Ordering::Relaxed);
            }
            is_first
        });
        if !is_first {
            return None;
        }
        // Pairs with the fence in `keep`.
        fence(Ordering::SeqCst);
        self.keeper.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Takes `timer` out, if it is in. After that nobody touches it.
    pub fn remove(&self, timer: &Timer) {
        self.wheel.with(|wheel| {
            if timer.0.is_linked() {
                wheel.unlink(&timer.0);
                wheel.len -= 1;
            }
        });
    }

    /// Fires what is due; returns how many.
    pub fn fire(&self, now_ns: u64) -> usize {
        let mut fired = 0;
        loop {
            let mut batch: [Option<Waker>; BATCH] = [None; BATCH];
            let count = self.wheel.with(|wheel| {
                let count = wheel.advance(now_ns >> TICK_SHIFT, &mut batch);
                let next = wheel.next_tick().map_or(NEVER, |tick| tick << TICK_SHIFT);
                self.next_ns.store(next, Ordering::Relaxed);
                count
            });
            batch.into_iter().flatten().for_each(Waker::wake);
            fired += count;
            if count < BATCH {
                return fired;
            }
        }
    }
}

impl Wheel {
    /// Where an entry due at `tick` belongs.
    fn place(&self, tick: u64) -> (usize, usize) {
        // The lowest wheel for what differs in the lowest six bits, or not at all.
        let differs = (tick ^ self.now_tick) | (SLOTS as u64 - 1);
        let level = (differs.ilog2() / SLOT_BITS) as usize;
        (level, ((tick >> (SLOT_BITS * level as u32)) as usize) % SLOTS)
    }

    /// # Safety
    /// The timer stays where it is until it is unlinked.
    unsafe fn link(&mut self, timer: &Timer, tick: u64) {
        let tick = tick.max(self.now_tick);
        timer.0.value.due_tick.set(tick);
        // SAFETY: by the caller.
        unsafe { self.link_node(&timer.0, tick) };
    }

    /// # Safety
    /// As for `link`.
    unsafe fn link_node(&mut self, node: &Node<Entry>, tick: u64) {
        let (level, index) = self.place(tick);
        node.value.slot.set((level, index));
        if let Some(slot) = self.slots.get_mut(level).and_then(|level| level.get_mut(index)) {
            // SAFETY: by the caller; the node is in no list.
            unsafe { slot.push(node) };
        }
        if let Some(bits) = self.occupied.get_mut(level) {
            *bits |= 1 << index;
        }
    }

    fn unlink(&mut self, node: &Node<Entry>) {
        let (level, index) = node.value.slot.get();
        let Some(slot) = self.slots.get_mut(level).and_then(|level| level.get_mut(index)) else {
            return;
        };
        // SAFETY: the slot it was put into.
        unsafe { slot.remove(node) };
        if slot.is_empty()
            && let Some(bits) = self.occupied.get_mut(level)
        {
            *bits &= !(1 << index);
        }
    }

    /// The next tick at which something is due or moves to a finer wheel.
    fn next_tick(&self) -> Option<u64> {
        let next_of = |(level, bits): (usize, &u64)| {
            if *bits == 0 {
                return None;
            }
            let shift = SLOT_BITS * level as u32;
            let round = (self.now_tick >> shift) & !(SLOTS as u64 - 1);
            let slot = u64::from(bits.trailing_zeros());
            Some(((round | slot) << shift).max(self.now_tick))
        };
        self.occupied.iter().enumerate().filter_map(next_of).min()
    }

    /// Fires up to a batch of what is due by `tick`; wakes go to `batch`.
    fn advance(&mut self, tick: u64, batch: &mut [Option<Waker>; BATCH]) -> usize {
        let mut count = 0;
        while let Some(next) = self.next_tick() {
            if next > tick {
                break;
            }
            self.now_tick = next;
            // Coarse wheels first: what they hold for this tick moves down.
            for level in (0..LEVELS).rev() {
                let shift = SLOT_BITS * level as u32;
                if next & ((1 << shift) - 1) != 0 {
                    continue;
                }
                let index = ((next >> shift) as usize) % SLOTS;
                while let Some(node) = self.first(level, index) {
                    // SAFETY: linked nodes are alive, and this one stays so: it is unlinked and
                    // linked again, or decided, under the lock.
                    let node = unsafe { &*node };
                    let due = node.value.due_tick.get();
                    if due > next {
                        self.unlink(node);
                        // SAFETY: as when it was inserted.
                        unsafe { self.link_node(node, due) };
                        continue;
                    }
                    let Some(place) = batch.get_mut(count) else { return count };
                    self.unlink(node);
                    self.len -= 1;
                    count += 1;
                    match node.value.action {
                        Action::Wake(wait) => {
                            // SAFETY: the waiter removes its timer before the wait ends, and
                            // that needs the lock.
                            let wait = unsafe { &*wait };
                            let waker = wait.waker();
                            if wait.decide(Outcome::Timeout) {
                                *place = Some(waker);
                            }
                        }
                        // SAFETY: whoever made the timer removes it before the data goes.
                        Action::Call(f, data) => unsafe { f(data) },
                    }
                }
            }
        }
        self.now_tick = self.now_tick.max(tick);
        count
    }

    fn first(&self, level: usize, index: usize) -> Option<*const Node<Entry>> {
        let slot = self.slots.get(level)?.get(index)?;
        slot.first().map(core::ptr::from_ref)
    }
}
