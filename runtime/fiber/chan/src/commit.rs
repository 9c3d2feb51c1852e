//! The steps of a select at a channel. Under the channel's lock.
//!
//! A select has two steps: it commits to an arm, and then the value moves. Who commits is linked
//! nowhere any more, or its own wait is decided: nobody can commit it to something else. Between the
//! two steps the channel keeps the commitment: a place kept for a sender is counted in `reserved`;
//! without a buffer, a sender that selects and a receiver are a pair, in `pairs` by the sender's number
//! and the receiver's id, and the receiver waits in `takers` until the value is in `taken`.
//!
//! A receiver's id is an address that stays its own while it waits, an even number; what is kept for
//! longer has a number of the channel's own, an odd one.
//!
//! Decided in ADR 104.

use core::ptr;

use fiber_core::Outcome;
use fiber_rt::Waker;

use crate::state::State;
use crate::waiter::{Step, Wakers, complete_first};

/// The id of nobody.
pub(crate) const NOBODY: usize = 1;

/// Whether a send could be committed.
pub(crate) enum Commit {
    No,
    Closed,
    /// A place is kept.
    Place,
    /// A receiver waits for the value of this pair.
    Pair(usize, Waker),
}

impl<T> State<T> {
    /// A number for what is kept.
    fn next_id(&mut self) -> usize {
        self.last_id += 2;
        self.last_id
    }

    /// Whether a receive of `me` would not wait.
    pub fn can_recv(&self, me: usize) -> bool {
        self.len() > 0
            || self.senders.any(|node| {
                let is_plain = node.value.select == 0;
                node.value.is_partner(me) && (is_plain || !self.has_buffer())
            })
            || self.is_drained()
    }

    /// Whether a send of `me` would not wait.
    pub fn can_send(&self, me: usize) -> bool {
        self.is_closed()
            || match self.has_buffer() {
                true => self.has_place(),
                false => self.receivers.any(|node| node.value.is_partner(me)),
            }
    }

    /// Commits a sending arm of `me`: a place is kept, or a receiver.
    pub fn commit_send(&mut self, me: usize) -> Commit {
        if self.is_closed() {
            return Commit::Closed;
        }
        if self.has_buffer() {
            if self.has_place() {
                self.reserved += 1;
                return Commit::Place;
            }
            return Commit::No;
        }
        let mut paired = None;
        let in_hand = &mut self.in_hand;
        let waker = complete_first(&mut self.receivers, |waiter, wait| {
            if waiter.select == me || waiter.is_watch {
                return Step::Skip;
            }
            let (receiver, is_future) = (waiter.id(), waiter.is_future());
            waiter.is_filled.set(false);
            let is_decided = wait.decide(Outcome::Data(waiter.arm));
            if is_decided {
                paired = Some(receiver);
                *in_hand += usize::from(is_future);
            }
            Step::of(is_decided)
        });
        let (Some(waker), Some(receiver)) = (waker, paired) else { return Commit::No };
        let pair = self.next_id();
        self.pairs.push((pair, receiver));
        Commit::Pair(pair, waker)
    }

    /// Whether a value for the pair `me`, or into the place kept, would find nobody: the last receiver
    /// is gone, and so is the one of the pair.
    pub fn is_void(&self, me: usize) -> bool {
        let is_awaited = |(pair, receiver): &(usize, usize)| *pair == me && *receiver != NOBODY;
        self.is_abandoned() && !self.pairs.iter().any(is_awaited)
    }

    /// Sends what was committed to: to the receiver of the pair `me`, or into the place kept.
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
            Err(value) => wakers.extend(self.store(value)),
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

    /// Keeps a value for a receiver that takes it later, by a number.
    pub fn keep(&mut self, value: T) -> usize {
        let id = self.next_id();
        self.taken.push((id, Some(value)));
        id
    }

    /// What was committed to the receiver `me`: `None` if it is not there yet, `Some(None)` if the
    /// sender took it back.
    pub fn take(&mut self, me: usize) -> Option<Option<T>> {
        let at = self.taken.iter().position(|(receiver, _)| *receiver == me)?;
        Some(self.taken.swap_remove(at).1)
    }

    /// Puts a value back that a select committed to and did not take.
    pub fn put_back(&mut self, value: T) -> Option<Waker> {
        self.deliver(value).map_or_else(|value| self.store_first(value), Some)
    }

    /// Tells another one that watches for something to receive, if there still is.
    pub fn pass_on_recv(&mut self) -> Option<Waker> {
        if self.can_recv(NOBODY) { self.tell_receiver() } else { None }
    }

    /// Tells another one that watches for a place or a receiver, if there still is.
    pub fn pass_on_send(&mut self) -> Option<Waker> {
        if self.can_send(NOBODY) { self.tell_sender() } else { None }
    }
}
