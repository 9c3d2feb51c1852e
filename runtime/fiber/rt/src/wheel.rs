//! A wheel of wheels: timers by when they are due.
//!
//! Time is cut into ticks. A wheel has 64 slots; the wheel an entry is on is that of the highest six
//! bits in which its tick differs from now, so it is always ahead of the hand, and moves to a finer
//! wheel when the hand comes to its slot. Insertion and removal touch one slot.

use core::cell::Cell;

use abi_sync::atomic::{AtomicBool, Ordering};

use crate::list::{List, Node};
use crate::prefetch::prefetch;
use crate::wait::Wait;

/// Six bits a level: 54 bits of ticks, more than a 64-bit time in nanoseconds has.
const LEVELS: usize = 9;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;

/// Timers taken out at once.
pub(crate) const BATCH: usize = 64;

/// Lines before and after a wait that its fiber goes on with.
const LINES_ABOUT: isize = 4;

#[derive(Clone, Copy)]
enum Action {
    /// Ends a wait with Timeout.
    Wake(*const Wait),
    /// Calls a function.
    Call(unsafe fn(*const ()), *const ()),
}

/// What a timer that is due asks for.
#[derive(Clone, Copy)]
pub(crate) enum Due {
    Nothing,
    /// The end of a wait, to be decided before the wheel's lock is free.
    Wait(*const Wait),
    /// A call, with the lock free.
    Call(*const Entry),
}

pub(crate) struct Entry {
    action: Cell<Action>,
    due_tick: Cell<u64>,
    /// Level and slot it is in.
    slot: Cell<(u8, u8)>,
    /// The worker whose wheel it is in. By whoever puts it in and takes it out.
    pub(crate) of: Cell<u8>,
    /// Whether it is out because it is due, and its function has not returned.
    is_firing: AtomicBool,
}

// SAFETY: entries are only reached under their wheel's lock, or while they fire.
unsafe impl Send for Entry {}

impl Entry {
    /// Does what a timer that is due calls for. With the wheel's lock free, once for each `Due::Call`.
    pub fn fire(&self) {
        if let Action::Call(f, data) = self.action.get() {
            // SAFETY: whoever made the timer waits for this before the data goes.
            unsafe { f(data) };
        }
        // Release: pairs with the acquire in `is_firing`; what the function did is done.
        self.is_firing.store(false, Ordering::Release);
    }

    /// Whether its function may still run. For whoever has taken the timer out.
    pub fn is_firing(&self) -> bool {
        // Acquire: pairs with the release in `fire`.
        self.is_firing.load(Ordering::Acquire)
    }
}

/// A timer; it stays where it is while it is in the wheel.
pub struct Timer(pub(crate) Node<Entry>);

impl Timer {
    fn new(action: Action) -> Self {
        let action = Cell::new(action);
        Self(Node::new(Entry {
            action,
            due_tick: Cell::new(0),
            slot: Cell::new((0, 0)),
            of: Cell::new(0),
            is_firing: AtomicBool::new(false),
        }))
    }

    /// A fiber's timer, for its waits one after the other.
    pub fn idle() -> Self {
        Self::new(Action::Wake(core::ptr::null()))
    }

    /// Ends `wait` when due. By the fiber the timer belongs to, while it is in no wheel.
    pub fn set_wake(&self, wait: &Wait) {
        self.0.value.action.set(Action::Wake(wait));
    }

    /// Calls `f(data)` when due.
    pub fn call(f: unsafe fn(*const ()), data: *const ()) -> Self {
        Self::new(Action::Call(f, data))
    }
}

impl core::fmt::Debug for Timer {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str("Timer")
    }
}

/// Timers, none of them due before its tick has begun.
pub(crate) struct Wheel {
    /// Everything due before this tick has been fired.
    now_tick: u64,
    slots: [[List<Entry>; SLOTS]; LEVELS],
    /// Which slots hold something.
    occupied: [u64; LEVELS],
    pub len: usize,
}

impl Wheel {
    pub fn new(now_tick: u64) -> Self {
        Self {
            now_tick,
            slots: core::array::from_fn(|_| core::array::from_fn(|_| List::new())),
            occupied: [0; LEVELS],
            len: 0,
        }
    }

    /// Where an entry due at `tick` belongs.
    fn place(&self, tick: u64) -> (usize, usize) {
        // The lowest wheel for what differs in the lowest six bits, or not at all.
        let differs = (tick ^ self.now_tick) | (SLOTS as u64 - 1);
        let level = (differs.ilog2() / SLOT_BITS) as usize;
        (level, ((tick >> (SLOT_BITS * level as u32)) as usize) % SLOTS)
    }

    /// Puts `timer` in, and says at which tick it is due.
    ///
    /// # Safety
    /// The timer stays where it is until it is out again.
    pub unsafe fn link(&mut self, timer: &Timer, tick: u64) -> u64 {
        let tick = tick.max(self.now_tick);
        timer.0.value.due_tick.set(tick);
        self.len += 1;
        // SAFETY: by the caller.
        unsafe { self.link_node(&timer.0, tick) };
        tick
    }

    /// Takes `timer` out, if it is in.
    pub fn remove(&mut self, timer: &Timer) {
        if timer.0.is_linked() {
            self.unlink(&timer.0);
            self.len -= 1;
        }
    }

    /// # Safety
    /// As for `link`.
    unsafe fn link_node(&mut self, node: &Node<Entry>, tick: u64) {
        let (level, index) = self.place(tick);
        node.value.slot.set((level as u8, index as u8));
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
        let (level, index) = (usize::from(level), usize::from(index));
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
    pub fn next_tick(&self) -> Option<u64> {
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

    /// Takes out up to a batch of what is due by `tick`.
    pub fn advance(&mut self, tick: u64, due: &mut [Due; BATCH]) {
        let mut places = due.iter_mut();
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
                    let due_tick = node.value.due_tick.get();
                    if due_tick > next {
                        self.unlink(node);
                        // SAFETY: as when it was inserted.
                        unsafe { self.link_node(node, due_tick) };
                        continue;
                    }
                    let Some(place) = places.next() else { return };
                    self.unlink(node);
                    self.len -= 1;
                    *place = match node.value.action.get() {
                        Action::Wake(wait) => {
                            // The lines about it are those the fiber goes on with.
                            for line in -LINES_ABOUT..=LINES_ABOUT {
                                prefetch(wait.wrapping_byte_offset(line * 64));
                            }
                            Due::Wait(wait)
                        }
                        Action::Call(..) => {
                            // Relaxed: whoever takes the timer out has the lock first.
                            node.value.is_firing.store(true, Ordering::Relaxed);
                            Due::Call(&raw const node.value)
                        }
                    };
                }
            }
        }
        self.now_tick = self.now_tick.max(tick);
    }

    fn first(&self, level: usize, index: usize) -> Option<*const Node<Entry>> {
        let slot = self.slots.get(level)?.get(index)?;
        slot.first().map(core::ptr::from_ref)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    extern crate std;

    use core::cell::RefCell;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    use super::*;

    std::thread_local! {
        static FIRED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    }

    unsafe fn note(number: *const ()) {
        FIRED.with_borrow_mut(|fired| fired.push(number.addr()));
    }

    fn fire(wheel: &mut Wheel, tick: u64) -> Vec<usize> {
        let mut due = [Due::Nothing; BATCH];
        wheel.advance(tick, &mut due);
        for due in due {
            if let Due::Call(entry) = due {
                // SAFETY: the timers outlive the wheel.
                unsafe { &*entry }.fire();
            }
        }
        FIRED.take()
    }

    /// Random timers, near and very far, put in, taken out and fired, beside a sorted set.
    #[test]
    fn fires_what_a_sorted_set_would() {
        const TIMERS: usize = 200;
        let timers: Vec<Timer> =
            (0..TIMERS).map(|n| Timer::call(note, core::ptr::without_provenance(n))).collect();
        let mut wheel = Wheel::new(1_000_000);
        let mut model: BTreeSet<(u64, usize)> = BTreeSet::new();
        let (mut now, mut seed) = (1_000_000_u64, 0x9e37_79b9_u64);
        for _ in 0..200_000 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let random = seed >> 20;
            let n = random as usize % TIMERS;
            let linked = model.iter().find(|(_, other)| *other == n).copied();
            match linked {
                Some(place) if random & (1 << 40) == 0 => {
                    wheel.remove(&timers[n]);
                    model.remove(&place);
                }
                None => {
                    // From the past to 2³⁵ ticks ahead.
                    let ahead = (random >> 8) & ((1 << (random % 36)) - 1);
                    let tick = if random % 50 == 0 { now - 5 } else { now + ahead };
                    // SAFETY: the timers outlive the wheel.
                    let due = unsafe { wheel.link(&timers[n], tick) };
                    assert!(due >= tick);
                    model.insert((due, n));
                }
                Some(_) => {
                    // To the next of them, or a little further.
                    let next = model.first().map_or(now, |first| first.0);
                    now = now.max(next + random % 3);
                    let mut fired = fire(&mut wheel, now);
                    loop {
                        let more = fire(&mut wheel, now);
                        if more.is_empty() {
                            break;
                        }
                        fired.extend(more);
                    }
                    let due: Vec<_> = model.iter().copied().take_while(|t| t.0 <= now).collect();
                    due.iter().for_each(|t| assert!(model.remove(t)));
                    let mut due: Vec<_> = due.into_iter().map(|t| t.1).collect();
                    (fired.sort_unstable(), due.sort_unstable());
                    assert_eq!(fired, due, "at {now}");
                }
            }
            assert_eq!(wheel.len, model.len());
            // Never later than the first; earlier only to move something to a finer wheel.
            let next = wheel.next_tick();
            assert_eq!(next.is_some(), !model.is_empty());
            assert!(next.is_none_or(|next| model.first().is_some_and(|first| next <= first.0)));
        }
        timers.iter().for_each(|timer| wheel.remove(timer));
    }

    #[test]
    fn a_batch_at_a_time_and_in_order() {
        let timers: Vec<Timer> = (0..BATCH * 2 + 1)
            .map(|n| Timer::call(note, core::ptr::without_provenance(n)))
            .collect();
        let mut wheel = Wheel::new(0);
        for timer in &timers {
            // SAFETY: the timers outlive the wheel.
            assert_eq!(unsafe { wheel.link(timer, 10) }, 10);
        }
        assert!(fire(&mut wheel, 9).is_empty());
        assert_eq!(fire(&mut wheel, 50), (0..BATCH).collect::<Vec<_>>());
        assert_eq!(wheel.next_tick(), Some(10), "the rest stays due");
        assert_eq!(fire(&mut wheel, 50), (BATCH..2 * BATCH).collect::<Vec<_>>());
        assert_eq!(fire(&mut wheel, 50), [2 * BATCH]);
        assert_eq!((wheel.len, wheel.next_tick()), (0, None));
    }
}
