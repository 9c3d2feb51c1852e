//! The end of an endpoint, of a receiving thread, of the whole service: operations with real
//! fan-out, which show each ended operation to a visitor, once.

use abi_types::Status;

use crate::endpoint::{Endpoint, EndpointKey};
use crate::record::{Life, Record};
use crate::service::Service;
use crate::store::Store;
use crate::verdict::{CallEnd, DrainVerdict, Ended, NotFound};

impl<C: Copy, R: Copy, S: Store<Record<C, R>>, E: Store<Endpoint>> Service<C, R, S, E> {
    /// Closes an endpoint: callers and receivers that wait there are disconnected. Calls that are
    /// being served can still be answered. At most as many visits as its limits allow to wait.
    pub fn close(
        &mut self,
        key: EndpointKey,
        mut visit: impl FnMut(Ended<C, R>),
    ) -> Result<(), NotFound> {
        let endpoint = self.endpoint_mut(key).ok_or(NotFound)?;
        endpoint.close();
        while let Some(endpoint) = self.endpoints.at_mut(key.index)
            && let Some(index) = endpoint
                .callers
                .pop_front(&mut self.records)
                .or_else(|| endpoint.receivers.pop_front(&mut self.records))
        {
            self.end_record(index, &mut visit);
        }
        Ok(())
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

    /// A thread of the owning process is gone: its receives end, and the calls it was serving
    /// are disconnected, since nobody else can be known to answer them. Looks at every record.
    pub fn receiver_exit(
        &mut self,
        is_gone: impl Fn(&R) -> bool,
        mut visit: impl FnMut(Ended<C, R>),
    ) {
        for index in 0..self.records.count() {
            let is_its = match self.records.at(index) {
                Some(Record { life: Life::Free | Life::Queued(_), .. }) | None => false,
                Some(record) => record.holder.as_ref().is_some_and(&is_gone),
            };
            if is_its {
                self.evict(index, &mut visit);
            }
        }
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
