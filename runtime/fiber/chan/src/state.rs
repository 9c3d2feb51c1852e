//! A channel's state and every step it takes, under its lock.
//!
//! A step returns whom to wake; the caller wakes after the lock.
//!
//! The steps of a select are in `commit.rs`.

use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr;

use alloc::vec::Vec;

use fiber_core::Outcome;
use fiber_rt::{Defect, List, Node, Wait, Waker, is_planted};

use crate::buffer::Buffer;
use crate::waiter::{Step, Waiter, Wakers, complete_first, tell_first};

/// What is kept has odd numbers, beginning after this one.
const FIRST_ID: usize = 1;

/// What became of a send.
pub(crate) enum Sent<T> {
    Done(Option<Waker>),
    Full(T),
    Closed(T),
}

/// What became of a receive.
pub(crate) enum Got<T> {
    Value(T, Option<Waker>),
    /// Nothing now.
    Empty,
    Closed,
    /// Matched with a sender that selects: the value comes later, by this receiver's id.
    Promised(Waker),
}

/// The state of a channel.
pub(crate) struct State<T> {
    buffer: Buffer<T>,
    capacity: Option<usize>,
    pub senders: List<Waiter>,
    pub receivers: List<Waiter>,
    pub takers: List<Waiter>,
    pub taken: Vec<(usize, Option<T>)>,
    pub pairs: Vec<(usize, usize)>,
    pub last_id: usize,
    pub reserved: usize,
    /// What futures have been handed or promised, and have not taken.
    pub in_hand: usize,
    /// Somebody has waited here to be told, and may again.
    is_watched: bool,
    is_closed: bool,
    is_abandoned: bool,
}

impl<T> State<T> {
    pub fn new(capacity: Option<usize>) -> Self {
        Self {
            buffer: Buffer::new(capacity),
            capacity,
            senders: List::new(),
            receivers: List::new(),
            takers: List::new(),
            taken: Vec::new(),
            pairs: Vec::new(),
            last_id: FIRST_ID,
            reserved: 0,
            in_hand: 0,
            is_watched: false,
            is_closed: false,
            is_abandoned: false,
        }
    }

    #[inline]
    pub fn has_place(&self) -> bool {
        self.capacity.is_none_or(|capacity| self.buffer.len() + self.reserved < capacity)
    }

    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    pub fn is_full(&self) -> bool {
        self.capacity.is_some_and(|capacity| self.buffer.len() + self.reserved >= capacity)
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether nobody receives any more.
    pub fn is_abandoned(&self) -> bool {
        self.is_abandoned
    }

    pub fn has_buffer(&self) -> bool {
        self.capacity != Some(0)
    }

    /// Whether nothing will ever come out any more.
    #[inline]
    pub fn is_drained(&self) -> bool {
        self.is_closed
            && self.buffer.len() == 0
            && self.senders.is_empty()
            && self.reserved == 0
            && !self.is_in_hand()
    }

    /// Gives `value` to the first receiver that waits.
    #[inline]
    pub fn deliver(&mut self, value: T) -> Result<Waker, T> {
        if self.receivers.is_empty() {
            return Err(value);
        }
        let value = ManuallyDrop::new(value);
        let (taken, in_hand) = (&mut self.taken, &mut self.in_hand);
        let waker = complete_first(&mut self.receivers, |waiter, wait| {
            let outcome = Outcome::Data(waiter.arm);
            if waiter.is_watch {
                return Step::Skip;
            }
            if waiter.select == 0 {
                // Moved before the decision; if that is lost, the copy does not count.
                // SAFETY: the slot of a plain receiver is room for a value, alive as its node is.
                unsafe { ptr::copy_nonoverlapping(&*value, waiter.slot.cast::<T>(), 1) };
                waiter.is_filled.set(true);
                let is_decided = wait.decide(outcome);
                Step::of(is_decided || is_planted(Defect::DeliversWithoutDeciding))
            } else if waiter.is_future() {
                // As for a plain receiver, but it may be given back.
                // SAFETY: the slot of a future is room for a value, alive as its node is.
                unsafe { ptr::copy_nonoverlapping(&*value, waiter.slot.cast::<T>(), 1) };
                waiter.is_filled.set(true);
                let is_decided = wait.decide(outcome);
                *in_hand += usize::from(is_decided);
                Step::of(is_decided)
            } else {
                let is_decided = wait.decide(outcome);
                if is_decided {
                    // SAFETY: the value moves here, and nowhere else.
                    taken.push((waiter.select, Some(unsafe { ptr::read(&*value) })));
                }
                Step::of(is_decided)
            }
        });
        waker.ok_or_else(|| ManuallyDrop::into_inner(value))
    }

    /// Sends without waiting.
    #[inline]
    pub fn send(&mut self, value: T) -> Sent<T> {
        if self.is_closed {
            return Sent::Closed(value);
        }
        if self.receivers.is_empty() {
            return if self.has_place() {
                self.buffer.push(value);
                Sent::Done(None)
            } else {
                Sent::Full(value)
            };
        }
        match self.deliver(value) {
            Ok(waker) => Sent::Done(Some(waker)),
            Err(value) if self.has_place() => Sent::Done(self.store(value)),
            Err(value) => Sent::Full(value),
        }
    }

    /// Puts a value nobody waits for into the buffer.
    pub fn store(&mut self, value: T) -> Option<Waker> {
        self.buffer.push(value);
        self.tell_receiver()
    }

    /// As `store`, to be received next.
    pub fn store_first(&mut self, value: T) -> Option<Waker> {
        self.buffer.push_front(value);
        self.tell_receiver()
    }

    /// Tells the first one that waits to be told of something to receive.
    pub fn tell_receiver(&mut self) -> Option<Waker> {
        let is_needed = !self.receivers.is_empty() && self.is_watched;
        if is_needed { tell_first(&mut self.receivers) } else { None }
    }

    /// Tells the first one that waits to be told of a place or a receiver.
    pub fn tell_sender(&mut self) -> Option<Waker> {
        let is_needed = !self.senders.is_empty() && self.is_watched;
        if is_needed { tell_first(&mut self.senders) } else { None }
    }

    /// The value of the first plain sender that waits, or a place for the first that selects.
    #[inline]
    pub fn admit(&mut self) -> Option<Waker> {
        if self.senders.is_empty() || !self.has_place() {
            return None;
        }
        let (buffer, reserved) = (&mut self.buffer, &mut self.reserved);
        let waker = complete_first(&mut self.senders, |waiter, wait| {
            if waiter.is_watch {
                return Step::Skip;
            }
            if waiter.select != 0 {
                let is_decided = wait.decide(Outcome::Data(waiter.arm));
                *reserved += usize::from(is_decided);
                return Step::of(is_decided);
            }
            // Copied before the decision, because after it the sender may go on; if the decision is
            // lost the copy does not count.
            // SAFETY: the slot of a plain sender holds its value, alive as its node is.
            let copy = unsafe { waiter.slot.cast::<MaybeUninit<T>>().read() };
            let is_decided = wait.decide(Outcome::Data(waiter.arm));
            if is_decided {
                // SAFETY: the value is the channel's now.
                buffer.push(unsafe { copy.assume_init() });
            }
            Step::of(is_decided)
        });
        if waker.is_none() && self.is_watched { self.tell_sender() } else { waker }
    }

    /// Receives without waiting; `me` is the caller's id, for a match with a sender that selects.
    #[inline]
    pub fn recv(&mut self, me: usize) -> Got<T> {
        if let Some(value) = self.buffer.pop() {
            return Got::Value(value, self.admit());
        }
        if self.senders.is_empty() {
            return if self.is_drained() { Got::Closed } else { Got::Empty };
        }
        // Nothing is buffered and a sender waits: there is no buffer, or every place in it is kept
        // for a select.
        let mut value = None;
        let (pairs, last_id) = (&mut self.pairs, &mut self.last_id);
        let has_buffer = self.capacity != Some(0);
        let waker = complete_first(&mut self.senders, |waiter, wait| {
            if waiter.is_watch {
                return Step::Skip;
            }
            if waiter.select == 0 {
                // SAFETY: as in `admit`.
                let copy = unsafe { waiter.slot.cast::<MaybeUninit<T>>().read() };
                let is_decided = wait.decide(Outcome::Data(waiter.arm));
                if is_decided {
                    // SAFETY: the value is the receiver's now.
                    value = Some(unsafe { copy.assume_init() });
                }
                return Step::of(is_decided);
            }
            if waiter.select == me || has_buffer {
                // A select does not send to itself, and one at a buffer waits for its place.
                return Step::Skip;
            }
            // Before the decision, because after it the sender may go on.
            let pair = *last_id + 2;
            waiter.pair.set(pair);
            let is_decided = wait.decide(Outcome::Data(waiter.arm));
            if is_decided {
                *last_id = pair;
                pairs.push((pair, me));
            }
            Step::of(is_decided)
        });
        match (waker, value) {
            (waker, Some(value)) => Got::Value(value, waker),
            (Some(waker), None) => Got::Promised(waker),
            (None, None) if self.is_drained() => Got::Closed,
            (None, None) => Got::Empty,
        }
    }

    // ---- links ------------------------------------------------------------------------------

    /// Links one that sends, and tells who has waited for one.
    ///
    /// # Safety
    /// The node stays where it is until it is out of the list.
    #[must_use]
    pub unsafe fn link_sender(&mut self, node: &Node<Waiter>, wait: &Wait) -> Option<Waker> {
        node.value.wait.set(wait);
        // SAFETY: by the caller.
        unsafe { self.senders.push(node) };
        if self.is_watched { self.tell_receiver() } else { None }
    }

    /// Links one that receives, and tells who has waited for one.
    ///
    /// # Safety
    /// The node stays where it is until it is out of the list.
    #[must_use]
    pub unsafe fn link_receiver(&mut self, node: &Node<Waiter>, wait: &Wait) -> Option<Waker> {
        node.value.wait.set(wait);
        // SAFETY: by the caller.
        unsafe { self.receivers.push(node) };
        if self.is_watched && !self.has_buffer() { self.tell_sender() } else { None }
    }

    /// Links one that waits to be told of a place or a receiver.
    ///
    /// # Safety
    /// The node stays where it is until it is out of the list.
    pub unsafe fn watch_send(&mut self, node: &Node<Waiter>, wait: &Wait) {
        self.is_watched = true;
        node.value.wait.set(wait);
        // SAFETY: by the caller.
        unsafe { self.senders.push(node) };
    }

    /// Links one that waits to be told of something to receive.
    ///
    /// # Safety
    /// The node stays where it is until it is out of the list.
    pub unsafe fn watch_recv(&mut self, node: &Node<Waiter>, wait: &Wait) {
        self.is_watched = true;
        node.value.wait.set(wait);
        // SAFETY: by the caller.
        unsafe { self.receivers.push(node) };
    }

    /// # Safety
    /// If the node is linked, it is as a sender here.
    pub unsafe fn unlink_sender(&mut self, node: &Node<Waiter>) -> Wakers {
        // SAFETY: by the caller.
        unsafe { self.senders.remove(node) };
        // The last sender that waited at a closed channel may have been what receivers waited for.
        let mut wakers = Wakers::default();
        self.end_if_drained(&mut wakers);
        wakers
    }

    /// # Safety
    /// If the node is linked, it is as a receiver here.
    pub unsafe fn unlink_receiver(&mut self, node: &Node<Waiter>) {
        // SAFETY: by the caller.
        unsafe { self.receivers.remove(node) };
    }

    // ---- close ------------------------------------------------------------------------------

    /// Ends the receivers that wait if nothing will ever come.
    #[inline]
    pub fn end_if_drained(&mut self, wakers: &mut Wakers) {
        if !self.is_drained() {
            return;
        }
        while let Some(waker) = complete_first(&mut self.receivers, |waiter, wait| {
            Step::of(wait.decide(Outcome::Closed(waiter.arm)))
        }) {
            wakers.push(waker);
        }
    }

    /// Closes: no new sends, receivers that wait end. False if it was closed before.
    pub fn close(&mut self) -> (bool, Wakers) {
        let mut wakers = Wakers::default();
        if self.is_closed {
            return (false, wakers);
        }
        self.is_closed = true;
        if is_planted(Defect::CloseEndsSenders) {
            self.end_senders(&mut wakers);
        }
        while let Some(waker) = self.tell_sender() {
            wakers.push(waker);
        }
        self.end_if_drained(&mut wakers);
        (true, wakers)
    }

    /// Ends the senders that wait; their values stay theirs.
    fn end_senders(&mut self, wakers: &mut Wakers) {
        while let Some(waker) = complete_first(&mut self.senders, |waiter, wait| {
            Step::of(wait.decide(Outcome::Closed(waiter.arm)))
        }) {
            wakers.push(waker);
        }
    }

    /// Nobody receives any more: closes, ends the senders, gives up what is buffered.
    pub fn abandon(&mut self) -> (Buffer<T>, Wakers) {
        self.is_closed = true;
        self.is_abandoned = true;
        let mut wakers = Wakers::default();
        if !is_planted(Defect::AbandonsSenders) {
            self.end_senders(&mut wakers);
        }
        let buffer = core::mem::replace(&mut self.buffer, Buffer::new(Some(0)));
        (buffer, wakers)
    }
}
