//! A channel's state and every step it takes, under its lock.
//!
//! A step returns whom to wake; the caller wakes after the lock.
//!
//! # Select
//!
//! A select has two steps: it commits to an arm, and then the value moves. In between the channel
//! keeps the commitment, by the id of whoever selects: a value taken for a receiver is in `taken`; a
//! place kept for a sender is counted in `reserved`; without a buffer, a sender that selects and a
//! receiver are a pair, and the receiver waits in `takers` until the sender's value is in `taken`.

use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr;

use alloc::vec::Vec;

use fiber_core::Outcome;
use fiber_rt::{Defect, List, Node, Wait, Waker, is_planted};

use crate::buffer::Buffer;
use crate::in_hand::NOBODY;
use crate::waiter::{Step, Waiter, Wakers, complete_first};

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

/// Whether an arm of a select could be committed.
pub(crate) enum Commit {
    No,
    Yes(Option<Waker>),
    Closed,
}

/// The state of a channel.
pub(crate) struct State<T> {
    buffer: Buffer<T>,
    capacity: Option<usize>,
    pub senders: List<Waiter>,
    pub receivers: List<Waiter>,
    pub takers: List<Waiter>,
    taken: Vec<(usize, Option<T>)>,
    pub pairs: Vec<(usize, usize)>,
    reserved: usize,
    /// What futures have been handed or promised, and have not taken.
    pub in_hand: usize,
    is_closed: bool,
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
            reserved: 0,
            in_hand: 0,
            is_closed: false,
        }
    }

    #[inline]
    fn has_place(&self) -> bool {
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

    /// Whether nothing will ever come out any more.
    #[inline]
    fn is_drained(&self) -> bool {
        self.is_closed
            && self.buffer.len() == 0
            && self.senders.is_empty()
            && self.reserved == 0
            && !self.is_in_hand()
    }

    /// Gives `value` to the first receiver that waits.
    #[inline]
    fn deliver(&mut self, value: T) -> Result<Waker, T> {
        if self.receivers.is_empty() {
            return Err(value);
        }
        let value = ManuallyDrop::new(value);
        let (taken, in_hand) = (&mut self.taken, &mut self.in_hand);
        let waker = complete_first(&mut self.receivers, |waiter, wait| {
            let outcome = Outcome::Data(waiter.arm);
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
        match self.deliver(value) {
            Ok(waker) => Sent::Done(Some(waker)),
            Err(value) if self.has_place() => {
                self.buffer.push(value);
                Sent::Done(None)
            }
            Err(value) => Sent::Full(value),
        }
    }

    /// The value of the first plain sender that waits, or a place for the first that selects.
    #[inline]
    fn admit(&mut self) -> Option<Waker> {
        if self.senders.is_empty() || !self.has_place() {
            return None;
        }
        let (buffer, reserved) = (&mut self.buffer, &mut self.reserved);
        complete_first(&mut self.senders, |waiter, wait| {
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
        })
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
        let pairs = &mut self.pairs;
        let has_buffer = self.capacity != Some(0);
        let waker = complete_first(&mut self.senders, |waiter, wait| {
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
            let is_decided = wait.decide(Outcome::Data(waiter.arm));
            if is_decided {
                pairs.push((waiter.select, me));
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

    // ---- the two steps of a select ---------------------------------------------------------

    /// Commits a receiving arm of `me`: the value is kept in `taken`.
    pub fn commit_recv(&mut self, me: usize) -> Commit {
        match self.recv(me) {
            Got::Value(value, waker) => {
                self.taken.push((me, Some(value)));
                Commit::Yes(waker)
            }
            Got::Promised(waker) => Commit::Yes(Some(waker)),
            Got::Empty => Commit::No,
            Got::Closed => Commit::Closed,
        }
    }

    /// Commits a sending arm of `me`: a place is kept, or a receiver.
    pub fn commit_send(&mut self, me: usize) -> Commit {
        if self.is_closed {
            return Commit::Closed;
        }
        if self.capacity != Some(0) {
            if self.has_place() {
                self.reserved += 1;
                return Commit::Yes(None);
            }
            return Commit::No;
        }
        let (pairs, in_hand) = (&mut self.pairs, &mut self.in_hand);
        let waker = complete_first(&mut self.receivers, |waiter, wait| {
            if waiter.select == me {
                return Step::Skip;
            }
            let (receiver, is_future) = (waiter.id(), waiter.is_future());
            waiter.is_filled.set(false);
            let is_decided = wait.decide(Outcome::Data(waiter.arm));
            if is_decided {
                pairs.push((me, receiver));
                *in_hand += usize::from(is_future);
            }
            Step::of(is_decided)
        });
        waker.map_or(Commit::No, |waker| Commit::Yes(Some(waker)))
    }

    /// Sends what was committed to: to the receiver `me` is paired with, or into the place kept.
    pub fn fulfil(&mut self, me: usize, value: T) -> Wakers {
        let mut wakers = Wakers::default();
        if let Some(at) = self.pairs.iter().position(|(sender, _)| *sender == me) {
            let (_, receiver) = self.pairs.swap_remove(at);
            if receiver == NOBODY {
                return self.give_back(value);
            }
            self.taken.push((receiver, Some(value)));
            wakers.extend(self.wake_taker(receiver));
            return wakers;
        }
        self.reserved = self.reserved.saturating_sub(1);
        match self.deliver(value) {
            Ok(waker) => wakers.push(waker),
            Err(value) => self.buffer.push(value),
        }
        wakers.extend(self.admit());
        self.end_if_drained(&mut wakers);
        wakers
    }

    /// Takes a commitment to send back.
    pub fn revoke(&mut self, me: usize) -> Wakers {
        let mut wakers = Wakers::default();
        if let Some(at) = self.pairs.iter().position(|(sender, _)| *sender == me) {
            let (_, receiver) = self.pairs.swap_remove(at);
            if receiver == NOBODY {
                return self.take_from_hand();
            }
            self.taken.push((receiver, None));
            wakers.extend(self.wake_taker(receiver));
            return wakers;
        }
        self.reserved = self.reserved.saturating_sub(1);
        wakers.extend(self.admit());
        self.end_if_drained(&mut wakers);
        wakers
    }

    /// Wakes the receiver `id` if it waits for its value.
    fn wake_taker(&mut self, id: usize) -> Option<Waker> {
        let mut found = None;
        self.takers.any(|node| {
            let is_it = node.value.select == id;
            if is_it {
                found = Some(ptr::from_ref(node));
            }
            is_it
        });
        let node = found?;
        // SAFETY: a linked node is alive; it is out of the list before its wait is decided.
        unsafe {
            self.takers.remove(&*node);
            let wait = &*(*node).value.wait.get();
            let waker = wait.waker();
            wait.decide(Outcome::Data(0)).then_some(waker)
        }
    }

    /// What was committed to the receiver `me`: `None` if it is not there yet, `Some(None)` if the
    /// sender took it back.
    pub fn take(&mut self, me: usize) -> Option<Option<T>> {
        let at = self.taken.iter().position(|(receiver, _)| *receiver == me)?;
        Some(self.taken.remove(at).1)
    }

    /// Puts a value back that a select committed to and did not take.
    pub fn put_back(&mut self, value: T) -> Option<Waker> {
        match self.deliver(value) {
            Ok(waker) => Some(waker),
            Err(value) => {
                self.buffer.push_front(value);
                None
            }
        }
    }

    // ---- links ------------------------------------------------------------------------------

    /// # Safety
    /// The node stays where it is until it is out of the list.
    pub unsafe fn link_sender(&mut self, node: &Node<Waiter>, wait: &Wait) {
        node.value.wait.set(wait);
        // SAFETY: by the caller.
        unsafe { self.senders.push(node) };
    }

    /// # Safety
    /// The node stays where it is until it is out of the list.
    pub unsafe fn link_receiver(&mut self, node: &Node<Waiter>, wait: &Wait) {
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
        let mut wakers = Wakers::default();
        if !is_planted(Defect::AbandonsSenders) {
            self.end_senders(&mut wakers);
        }
        let buffer = core::mem::replace(&mut self.buffer, Buffer::new(Some(0)));
        (buffer, wakers)
    }
}
