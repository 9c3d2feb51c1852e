//! A delivery that failed while its message was copied: the party at fault drops out, the other
//! one is put back where it was.
//!
//! Copying happens after the match and may meet a bad address on either side. The record is
//! Delivered by then; meanwhile others may have queued, ended or closed the endpoint, so the
//! innocent party is matched anew, in front of its queue.

use crate::endpoint::Endpoint;
use crate::record::{Call, CallKey, Donation, Life, Record, RecvKey};
use crate::service::Service;
use crate::store::Store;
use crate::verdict::{CallVerdict, Ended, NotFound, RecvVerdict};

/// The receive of a delivery that failed on the caller's side goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum RecvAgain<C, R> {
    /// As for any receive.
    Recv(RecvVerdict<C>),
    /// The endpoint was closed meanwhile: complete the receive as disconnected.
    Disconnected(R),
    /// The receiver gave it up meanwhile: complete the receive as cancelled.
    GivenUp(R),
}

/// A delivery failed on the caller's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct CallRejected<C, R> {
    /// The caller, to be completed with the error, and what it had lent; `None` if it gave up
    /// before.
    pub call: Option<(C, Option<Donation>)>,
    /// The receiver, for whom the receive goes on.
    pub receiver: R,
    /// How it goes on.
    pub again: RecvAgain<C, R>,
}

/// The call of a delivery that failed on the receiver's side goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum CallAgain<C, R> {
    /// As for any call; its key is the same as before.
    Call(CallVerdict<R>),
    /// The endpoint was closed meanwhile: complete the call as disconnected.
    Disconnected(C),
    /// Others filled the queue meanwhile: complete the call as overloaded.
    Overloaded(C),
    /// The caller gave up before: nothing to do.
    Abandoned,
}

/// A delivery failed on the receiver's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct RecvRejected<C, R> {
    /// The receiver, to be completed with the error.
    pub receiver: R,
    /// What had been lent to it.
    pub donation: Option<Donation>,
    /// How the call goes on.
    pub again: CallAgain<C, R>,
}

impl<C: Copy, R: Copy, S: Store<Record<C, R>>, E: Store<Endpoint>> Service<C, R, S, E> {
    /// A receive is given up while the message of its call is on its way: if that fails, the receive
    /// ends instead of going on. `false`, and nothing changed, if no message is on its way to it.
    pub fn give_up_delivery(&mut self, key: RecvKey) -> bool {
        let Some(record) = self.records.at_mut(key.index) else { return false };
        let is_it = record.generation == key.generation
            && matches!(record.life, Life::Delivered { .. } | Life::Abandoned);
        if is_it {
            record.given_up = key.generation;
        }
        is_it
    }

    /// The message of a delivered call cannot be read: the call drops out, the receive goes on.
    pub fn reject_call(
        &mut self,
        key: CallKey,
        now_ns: u64,
        expired: impl FnMut(Ended<C, R>),
    ) -> Result<CallRejected<C, R>, NotFound> {
        let record = self.record(key.index, key.generation).ok_or(NotFound)?;
        let on = record.endpoint;
        let (call, receiver) = match (record.life, record.holder) {
            (Life::Delivered { caller, donation }, Some(holder)) => {
                (Some((caller, donation)), holder)
            }
            (Life::Abandoned, Some(holder)) => (None, holder),
            _ => return Err(NotFound),
        };
        let is_given_up = record.given_up == record.generation;
        self.leave_flight(key.index);
        self.free(key.index);
        if is_given_up {
            return Ok(CallRejected { call, receiver, again: RecvAgain::GivenUp(receiver) });
        }
        if self.endpoint_mut(on).is_none() {
            return Ok(CallRejected { call, receiver, again: RecvAgain::Disconnected(receiver) });
        }
        if let Some((next, next_call)) = self.next_caller(on, now_ns, expired) {
            let again = RecvAgain::Recv(self.deliver(next, next_call, receiver));
            return Ok(CallRejected { call, receiver, again });
        }
        let Some(key) = self.allocate(on, Life::Receiving, Some(receiver)) else {
            // Not reached: the rejected call's record is free.
            return Ok(CallRejected { call, receiver, again: RecvAgain::Disconnected(receiver) });
        };
        if let Some(endpoint) = self.endpoints.at_mut(on.index) {
            endpoint.receivers.push_front(&mut self.records, key.index);
        }
        let waiting = RecvKey { index: key.index, generation: key.generation };
        let again = RecvAgain::Recv(RecvVerdict::Waiting(waiting));
        Ok(CallRejected { call, receiver, again })
    }

    /// The receiver's buffer cannot be written: the receive drops out, the call goes on, with
    /// the badge and deadline it had.
    pub fn reject_recv(
        &mut self,
        key: CallKey,
        badge: u64,
        deadline_ns: u64,
    ) -> Result<RecvRejected<C, R>, NotFound> {
        let record = self.record(key.index, key.generation).ok_or(NotFound)?;
        let on = record.endpoint;
        let (caller, receiver, donation) = match (record.life, record.holder) {
            (Life::Delivered { caller, donation }, Some(holder)) => {
                (Some(caller), holder, donation)
            }
            (Life::Abandoned, Some(holder)) => (None, holder, None),
            _ => return Err(NotFound),
        };
        let again = |again| Ok(RecvRejected { receiver, donation, again });
        if let Some(record) = self.records.at_mut(key.index) {
            // The call may have another receiver in the same generation.
            record.given_up = 0;
        }
        self.leave_flight(key.index);
        let Some(caller) = caller else {
            self.free(key.index);
            return again(CallAgain::Abandoned);
        };
        let Some(endpoint) = self.endpoint_mut(on) else {
            self.free(key.index);
            return again(CallAgain::Disconnected(caller));
        };
        if endpoint.receivers.length == 0 && endpoint.callers.length >= endpoint.limits.queued {
            self.free(key.index);
            return again(CallAgain::Overloaded(caller));
        }
        let Some(endpoint) = self.endpoints.at_mut(on.index) else { return Err(NotFound) };
        if let Some(index) = endpoint.receivers.pop_front(&mut self.records)
            && let Some(to) = self.records.at(index).and_then(|record| record.holder)
        {
            endpoint.in_flight = endpoint.in_flight.wrapping_add(1);
            self.free(index);
            if let Some(record) = self.records.at_mut(key.index) {
                record.life = Life::Delivered { caller, donation: None };
                record.holder = Some(to);
            }
            return again(CallAgain::Call(CallVerdict::Deliver { to, token: key.token() }));
        }
        endpoint.callers.push_front(&mut self.records, key.index);
        if let Some(record) = self.records.at_mut(key.index) {
            record.life = Life::Queued(Call { caller, badge, deadline_ns });
        }
        again(CallAgain::Call(CallVerdict::Queued(key)))
    }
}
