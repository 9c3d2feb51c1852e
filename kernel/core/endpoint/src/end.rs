//! The end of an endpoint, of a receiving thread, of the whole service: operations with real
//! fan-out, which show each ended operation to a visitor, once.

use abi_types::Status;

use crate::endpoint::{Endpoint, EndpointKey};
use crate::record::{Life, Record};
use crate::service::Service;
use crate::store::Store;
use crate::verdict::{CallEnd, ClosedEndpoint, DrainVerdict, Ended, NotFound};

impl<C: Copy, R: Copy, S: Store<Record<C, R>>, E: Store<Endpoint>> Service<C, R, S, E> {
    /// Closes an endpoint and disconnects all callers and receivers that wait there, at most as many as its
    /// limits allow. Calls that are being served can still be answered.
    pub fn close(
        &mut self,
        key: EndpointKey,
        visit: impl FnMut(Ended<C, R>),
    ) -> Result<(), NotFound> {
        let closed = self.begin_close(key)?;
        match self.end_waiting(&closed, u32::MAX, visit) {
            DrainVerdict::Done | DrainVerdict::More => Ok(()),
        }
    }

    /// Closes an endpoint: from here on its key is stale. Callers and receivers that wait there are
    /// disconnected by [`end_waiting`](Self::end_waiting).
    pub fn begin_close(&mut self, key: EndpointKey) -> Result<ClosedEndpoint, NotFound> {
        let endpoint = self.endpoint_mut(key).ok_or(NotFound)?;
        endpoint.close();
        endpoint.is_ending = true;
        Ok(ClosedEndpoint { index: key.index, generation: endpoint.generation })
    }

    /// Disconnects at most `limit` of those that wait at a closed endpoint. Until none is left its place is
    /// not opened again.
    pub fn end_waiting(
        &mut self,
        closed: &ClosedEndpoint,
        limit: u32,
        mut visit: impl FnMut(Ended<C, R>),
    ) -> DrainVerdict {
        for _ in 0..limit {
            let Some(endpoint) = self.endpoints.at_mut(closed.index) else { break };
            if endpoint.generation != closed.generation {
                return DrainVerdict::Done;
            }
            let waiting = endpoint
                .callers
                .pop_front(&mut self.records)
                .or_else(|| endpoint.receivers.pop_front(&mut self.records));
            let Some(index) = waiting else {
                endpoint.is_ending = false;
                return DrainVerdict::Done;
            };
            self.end_record(index, &mut visit);
        }
        DrainVerdict::More
    }

    /// Frees a record that is in no queue and shows what it was as disconnected.
    fn end_record(&mut self, index: u32, visit: &mut impl FnMut(Ended<C, R>)) {
        let Some(Record { life, holder, .. }) = self.records.at(index).copied() else { return };
        self.free(index);
        let status = Status::Disconnected;
        match life {
            Life::Receiving => {
                if let Some(receiver) = holder {
                    visit(Ended::Recv { receiver, status });
                }
            }
            Life::Queued(call) => {
                let end = CallEnd { caller: call.caller, donation: None, was_delivered: false };
                visit(Ended::Call { end, status });
            }
            Life::Delivered { caller, donation } => {
                let end = CallEnd { caller, donation, was_delivered: true };
                visit(Ended::Call { end, status });
            }
            Life::Abandoned | Life::Free => {}
        }
    }

    /// Takes a record out of whatever it is in and ends it.
    fn evict(&mut self, index: u32, visit: &mut impl FnMut(Ended<C, R>)) {
        let Some(record) = self.records.at(index) else { return };
        let on = record.endpoint;
        match record.life {
            Life::Free => return,
            Life::Receiving => {
                if let Some(endpoint) = self.endpoints.at_mut(on.index) {
                    endpoint.receivers.unlink(&mut self.records, index);
                }
            }
            Life::Queued(_) => {
                if let Some(endpoint) = self.endpoints.at_mut(on.index) {
                    endpoint.callers.unlink(&mut self.records, index);
                }
            }
            Life::Delivered { .. } | Life::Abandoned => self.leave_flight(index),
        }
        self.end_record(index, visit);
    }

    /// A thread of the owning process is gone: all its receives end, and the calls it was serving. As
    /// [`end_some_of`](Self::end_some_of), in one go.
    pub fn receiver_exit(&mut self, is_gone: impl Fn(&R) -> bool, visit: impl FnMut(Ended<C, R>)) {
        match self.end_some_of(u32::MAX, is_gone, visit) {
            DrainVerdict::Done | DrainVerdict::More => {}
        }
    }

    /// A thread of the owning process is gone: at most `limit` of its receives end, and of the calls it was
    /// serving, which are disconnected, since nobody else can be known to answer them.
    pub fn end_some_of(
        &mut self,
        limit: u32,
        is_gone: impl Fn(&R) -> bool,
        mut visit: impl FnMut(Ended<C, R>),
    ) -> DrainVerdict {
        let mut ended = 0;
        for index in 0..self.records.count() {
            let is_its = match self.records.at(index) {
                Some(Record { life: Life::Free | Life::Queued(_), .. }) | None => false,
                Some(record) => record.holder.as_ref().is_some_and(&is_gone),
            };
            if is_its {
                if ended == limit {
                    return DrainVerdict::More;
                }
                self.evict(index, &mut visit);
                ended += 1;
            }
        }
        DrainVerdict::Done
    }

    /// The owning process is ending: from here on every call and receive is refused as
    /// disconnected; what is pending ends in [`drain`](Self::drain).
    pub fn shut(&mut self) {
        self.is_closed = true;
        for index in 0..self.endpoints.count() {
            if let Some(endpoint) = self.endpoints.at_mut(index) {
                endpoint.close();
            }
        }
    }

    /// Ends what is pending in a shut service; looks at no more than `limit` records.
    pub fn drain(&mut self, limit: u32, mut visit: impl FnMut(Ended<C, R>)) -> DrainVerdict {
        let count = self.records.count();
        let end = self.drained.saturating_add(limit).min(count);
        for index in self.drained..end {
            self.evict(index, &mut visit);
        }
        self.drained = end;
        if end < count { DrainVerdict::More } else { DrainVerdict::Done }
    }
}
