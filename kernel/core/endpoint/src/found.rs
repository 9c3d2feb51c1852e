//! Parties that were found waiting, before anything changes: what is decided about them comes after.

use crate::endpoint::Endpoint;
use crate::record::{Life, NO_RECORD, Record, RecvKey};
use crate::store::Store;

/// Where a waiting receiver was found.
#[derive(Debug)]
pub struct FoundReceiver<'s, S> {
    pub(crate) endpoint: &'s mut Endpoint,
    pub(crate) records: &'s mut S,
    pub(crate) index: u32,
}

impl<S> FoundReceiver<'_, S> {
    /// The call of `caller`, without a deadline, goes to the receiver.
    #[inline(always)]
    pub fn deliver<C: Copy, R: Copy>(self, caller: C)
    where
        S: Store<Record<C, R>>,
    {
        let Self { endpoint, records, index } = self;
        let Some(record) = records.at_mut(index) else { return };
        record.life = Life::Delivered { caller, donation: None };
        let next = core::mem::replace(&mut record.next, NO_RECORD);
        endpoint.in_flight = endpoint.in_flight.wrapping_add(1);
        endpoint.receivers.front_is(records, next);
    }
}

/// Where a waiting caller was found.
#[derive(Debug)]
pub struct FoundCaller<'s, S> {
    pub(crate) endpoint: &'s mut Endpoint,
    pub(crate) records: &'s mut S,
    pub(crate) key: RecvKey,
}

impl<S> FoundCaller<'_, S> {
    /// The caller is answered, and `receiver` waits for the next call.
    #[inline(always)]
    pub fn answer_then_wait<C: Copy, R: Copy>(self, receiver: R)
    where
        S: Store<Record<C, R>>,
    {
        let Self { endpoint, records, key: RecvKey { index, generation } } = self;
        let Some(record) = records.at_mut(index) else { return };
        record.generation = generation;
        record.life = Life::Receiving;
        record.holder = Some(receiver);
        (record.previous, record.next) = (endpoint.receivers.tail, NO_RECORD);
        endpoint.in_flight = endpoint.in_flight.wrapping_sub(1);
        endpoint.receivers.back_is(records, index);
    }
}
