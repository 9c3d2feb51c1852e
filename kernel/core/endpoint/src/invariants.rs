//! What holds of a service after every operation.

use crate::endpoint::Endpoint;
use crate::queue::Queue;
use crate::record::{Life, NO_RECORD, Record};
use crate::service::Service;
use crate::store::Store;

impl<C: Copy, R: Copy, S: Store<Record<C, R>>, E: Store<Endpoint>> Service<C, R, S, E> {
    /// Walks everything and names the first thing that is wrong.
    pub fn check_invariants(&self) -> Result<(), &'static str> {
        let mut linked = 0_u32;
        for index in 0..self.endpoints.count() {
            let Some(endpoint) = self.endpoints.at(index) else { break };
            if endpoint.receivers.length != 0 && endpoint.callers.length != 0 {
                return Err("receivers and callers wait at the same endpoint");
            }
            let is_closed = !endpoint.is_open() && !endpoint.is_ending && !self.is_closed;
            if is_closed && (endpoint.receivers.length | endpoint.callers.length) != 0 {
                return Err("someone waits at a closed endpoint");
            }
            if endpoint.callers.length > endpoint.limits.queued {
                return Err("more calls wait than may");
            }
            let served = endpoint.in_flight.saturating_add(endpoint.receivers.length);
            if served > endpoint.limits.in_flight {
                return Err("more calls are served or waited for than may be");
            }
            let is_receiver = |life: &Life<C>| matches!(life, Life::Receiving);
            let is_caller = |life: &Life<C>| matches!(life, Life::Queued(_));
            self.check_queue(index, endpoint, &endpoint.receivers, is_receiver)?;
            self.check_queue(index, endpoint, &endpoint.callers, is_caller)?;
            linked = linked
                .saturating_add(endpoint.receivers.length)
                .saturating_add(endpoint.callers.length);
            let in_flight = (0..self.records.count())
                .filter_map(|at| self.records.at(at))
                .filter(|record| {
                    matches!(record.life, Life::Delivered { .. } | Life::Abandoned)
                        && record.endpoint.index == index
                        && record.endpoint.generation == endpoint.generation
                })
                .count();
            if endpoint.is_open() && in_flight != endpoint.in_flight as usize {
                return Err("the count of calls being served is wrong");
            }
        }
        self.check_records(linked)
    }

    fn check_queue(
        &self,
        index: u32,
        endpoint: &Endpoint,
        queue: &Queue,
        belongs: impl Fn(&Life<C>) -> bool,
    ) -> Result<(), &'static str> {
        let (mut at, mut before, mut length) = (queue.head, NO_RECORD, 0_u32);
        while at != NO_RECORD {
            let record = self.records.at(at).ok_or("a queue leaves the records")?;
            if record.previous != before {
                return Err("a queue's links disagree");
            }
            if !belongs(&record.life) {
                return Err("a record is in a queue its state does not fit");
            }
            if record.endpoint.index != index || record.endpoint.generation != endpoint.opening() {
                return Err("a record is in the queue of another endpoint");
            }
            length = length.saturating_add(1);
            if length > queue.length {
                return Err("a queue is longer than it says");
            }
            (before, at) = (at, record.next);
        }
        if queue.tail != before || queue.length != length {
            return Err("a queue's end or length is wrong");
        }
        Ok(())
    }

    fn check_records(&self, linked: u32) -> Result<(), &'static str> {
        let (mut waiting, mut free) = (0_u32, 0_u32);
        for index in 0..self.records.count() {
            let Some(record) = self.records.at(index) else { break };
            match record.life {
                Life::Receiving | Life::Queued(_) => waiting = waiting.saturating_add(1),
                Life::Free => free = free.saturating_add(1),
                Life::Delivered { .. } | Life::Abandoned => {}
            }
            let has_holder = !matches!(record.life, Life::Free | Life::Queued(_));
            if has_holder && record.holder.is_none() {
                return Err("a record is served by nobody");
            }
            if !matches!(record.life, Life::Free) && record.generation == 0 {
                return Err("generation 0 is in use");
            }
        }
        if waiting != linked {
            return Err("a waiting record is in no queue");
        }
        let mut at = self.first_free;
        while at != NO_RECORD {
            match self.records.at(at) {
                Some(Record { life: Life::Free, next, .. }) if free > 0 => at = *next,
                _ => return Err("the free list does not consist of the free records"),
            }
            free = free.saturating_sub(1);
        }
        if free == 0 { Ok(()) } else { Err("a free record is not on the list") }
    }
}
