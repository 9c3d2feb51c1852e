//! The service: CALL, RECV, RETURN and their cancellation.

use core::marker::PhantomData;

use abi_types::{ReplyToken, Status};

use crate::endpoint::{Endpoint, EndpointKey, Limits};
use crate::record::{Call, CallKey, Donation, Life, NO_RECORD, Record, RecvKey, next_generation};
use crate::store::Store;
use crate::verdict::{
    CallEnd, CallError, CallVerdict, CreateError, Ended, ExpireError, LendError, NotFound,
    RecvError, RecvVerdict, ReplyThenRecvError, ReplyVerdict, StaleToken,
};

/// All endpoints and pending calls of one process, over storage from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service<C, R, S, E> {
    pub(crate) records: S,
    pub(crate) endpoints: E,
    pub(crate) first_free: u32,
    pub(crate) is_closed: bool,
    /// Teardown has passed every position below this one.
    pub(crate) drained: u32,
    pub(crate) parties: PhantomData<(C, R)>,
}

impl<C: Copy, R: Copy, S: Store<Record<C, R>>, E: Store<Endpoint>> Service<C, R, S, E> {
    /// A service without endpoints. The records' generations are kept, so that storage can be
    /// used by one service after another without a token coming back to life.
    pub fn new(mut records: S, mut endpoints: E) -> Self {
        let mut first_free = NO_RECORD;
        for index in (0..records.count()).rev() {
            if let Some(record) = records.at_mut(index) {
                let generation = record.generation;
                *record = Record { next: first_free, ..Record::used_before(generation) };
                first_free = index;
            }
        }
        for index in 0..endpoints.count() {
            if let Some(endpoint) = endpoints.at_mut(index) {
                *endpoint = Endpoint { generation: endpoint.generation, ..Endpoint::UNUSED };
            }
        }
        let parties = PhantomData;
        Self { records, endpoints, first_free, is_closed: false, drained: 0, parties }
    }

    /// Opens an endpoint.
    pub fn open(&mut self, limits: Limits) -> Result<EndpointKey, CreateError> {
        if self.is_closed {
            return Err(CreateError::Closed);
        }
        for index in 0..self.endpoints.count() {
            let Some(endpoint) = self.endpoints.at_mut(index) else { break };
            if !endpoint.is_open && endpoint.generation != u32::MAX {
                let generation = endpoint.generation.wrapping_add(1);
                *endpoint = Endpoint { generation, is_open: true, limits, ..Endpoint::UNUSED };
                return Ok(EndpointKey { index, generation });
            }
        }
        Err(CreateError::Full)
    }

    /// The open endpoint with this name.
    #[inline]
    pub(crate) fn endpoint_mut(&mut self, key: EndpointKey) -> Option<&mut Endpoint> {
        let endpoint = self.endpoints.at_mut(key.index)?;
        (endpoint.is_open && endpoint.generation == key.generation).then_some(endpoint)
    }

    /// The record with this position in this generation.
    #[inline]
    pub(crate) fn record(&self, index: u32, generation: u32) -> Option<&Record<C, R>> {
        self.records.at(index).filter(|record| record.generation == generation)
    }

    /// Takes a record off the free list and begins its next generation.
    #[inline]
    pub(crate) fn allocate(&mut self, endpoint: EndpointKey, life: Life<C, R>) -> Option<CallKey> {
        let index = self.first_free;
        let record = self.records.at_mut(index)?;
        self.first_free = record.next;
        record.generation = next_generation(record.generation);
        record.endpoint = endpoint;
        record.life = life;
        Some(CallKey { index, generation: record.generation })
    }

    /// Puts a record that is in no queue back onto the free list.
    #[inline]
    pub(crate) fn free(&mut self, index: u32) {
        let Some(record) = self.records.at_mut(index) else { return };
        record.endpoint = EndpointKey::NONE;
        (record.previous, record.next) = (NO_RECORD, self.first_free);
        record.life = Life::Free;
        self.first_free = index;
    }

    /// A call was made.
    #[inline]
    pub fn call(
        &mut self,
        to: EndpointKey,
        call: Call<C>,
        now_ns: u64,
    ) -> Result<CallVerdict<R>, CallError> {
        let first_free = self.first_free;
        let Some(endpoint) = self.endpoints.at_mut(to.index) else {
            return Err(CallError::Disconnected);
        };
        if !endpoint.is_open || endpoint.generation != to.generation {
            return Err(CallError::Disconnected);
        }
        if call.is_expired(now_ns) {
            return Err(CallError::DeadlineExpired);
        }
        if let Some(index) = endpoint.receivers.pop_front(&mut self.records)
            && let Some(record) = self.records.at_mut(index)
            && let Life::Receiving(holder) = record.life
        {
            endpoint.in_flight = endpoint.in_flight.wrapping_add(1);
            record.life = Life::Delivered { caller: call.caller, holder, donation: None };
            let token = ReplyToken::new(index, record.generation);
            return Ok(CallVerdict::Deliver { to: holder, token });
        }
        if endpoint.callers.length >= endpoint.limits.queued || first_free == NO_RECORD {
            return Err(CallError::Overloaded);
        }
        let key = self.allocate(to, Life::Queued(call)).ok_or(CallError::Overloaded)?;
        if let Some(endpoint) = self.endpoints.at_mut(to.index) {
            endpoint.callers.push_back(&mut self.records, key.index);
        }
        Ok(CallVerdict::Queued(key))
    }

    /// The first caller of the endpoint whose deadline has not passed; the others are ended on
    /// the way.
    #[inline]
    pub(crate) fn next_caller(
        &mut self,
        on: EndpointKey,
        now_ns: u64,
        mut expired: impl FnMut(Ended<C, R>),
    ) -> Option<(CallKey, Call<C>)> {
        loop {
            let endpoint = self.endpoints.at_mut(on.index)?;
            let index = endpoint.callers.pop_front(&mut self.records)?;
            let record = self.records.at(index)?;
            let Life::Queued(call) = record.life else { return None };
            if !call.is_expired(now_ns) {
                return Some((CallKey { index, generation: record.generation }, call));
            }
            self.free(index);
            let end = CallEnd { caller: call.caller, donation: None, was_delivered: false };
            expired(Ended::Call { end, status: Status::DeadlineExpired });
        }
    }

    /// A queued call that was taken out of its queue goes to `holder`.
    #[inline]
    pub(crate) fn deliver(&mut self, key: CallKey, call: Call<C>, holder: R) -> RecvVerdict<C> {
        if let Some(record) = self.records.at_mut(key.index) {
            record.life = Life::Delivered { caller: call.caller, holder, donation: None };
            if let Some(endpoint) = self.endpoints.at_mut(record.endpoint.index) {
                endpoint.in_flight = endpoint.in_flight.wrapping_add(1);
            }
        }
        RecvVerdict::Deliver {
            caller: call.caller,
            badge: call.badge,
            deadline_ns: call.deadline_ns,
            token: key.token(),
        }
    }

    /// A receive was asked for. Expired calls that stand in front are shown to `expired`.
    #[inline]
    pub fn recv(
        &mut self,
        on: EndpointKey,
        receiver: R,
        now_ns: u64,
        expired: impl FnMut(Ended<C, R>),
    ) -> Result<RecvVerdict<C>, RecvError> {
        let first_free = self.first_free;
        let endpoint = self.endpoint_mut(on).ok_or(RecvError::Disconnected)?;
        let is_possible = endpoint.callers.length != 0 || first_free != NO_RECORD;
        if !endpoint.may_receive() || !is_possible {
            return Err(RecvError::Overloaded);
        }
        if let Some((key, call)) = self.next_caller(on, now_ns, expired) {
            return Ok(self.deliver(key, call, receiver));
        }
        let key = self.allocate(on, Life::Receiving(receiver)).ok_or(RecvError::Overloaded)?;
        if let Some(endpoint) = self.endpoints.at_mut(on.index) {
            endpoint.receivers.push_back(&mut self.records, key.index);
        }
        Ok(RecvVerdict::Waiting(RecvKey { index: key.index, generation: key.generation }))
    }

    /// Who waits for the answer to this call: `None` if nobody does any more. For checks and
    /// copies before [`reply`](Self::reply), which alone decides.
    #[inline]
    pub fn caller_of(&self, token: ReplyToken) -> Result<Option<&C>, StaleToken> {
        match self.record(token.index(), token.generation()).map(|record| &record.life) {
            Some(Life::Delivered { caller, .. }) => Ok(Some(caller)),
            Some(Life::Abandoned { .. }) => Ok(None),
            _ => Err(StaleToken),
        }
    }

    /// What a token's record holds, if it is being served.
    #[inline]
    fn answer_of(&self, token: ReplyToken) -> Result<ReplyVerdict<C>, StaleToken> {
        match self.record(token.index(), token.generation()).map(|record| record.life) {
            Some(Life::Delivered { caller, donation, .. }) => {
                Ok(ReplyVerdict::Complete { caller, donation })
            }
            Some(Life::Abandoned { .. }) => Ok(ReplyVerdict::Dropped),
            _ => Err(StaleToken),
        }
    }

    /// The record of a served call leaves its endpoint's count, if that is still open.
    #[inline]
    pub(crate) fn leave_flight(&mut self, index: u32) {
        let Some(key) = self.records.at(index).map(|record| record.endpoint) else { return };
        if let Some(endpoint) = self.endpoint_mut(key) {
            endpoint.in_flight = endpoint.in_flight.wrapping_sub(1);
        }
    }

    /// A call is answered. Never blocks, whatever became of the caller.
    #[inline]
    pub fn reply(&mut self, token: ReplyToken) -> Result<ReplyVerdict<C>, StaleToken> {
        let verdict = self.answer_of(token)?;
        self.leave_flight(token.index());
        self.free(token.index());
        Ok(verdict)
    }

    /// A call is answered and the next one asked for, both or neither.
    #[inline]
    pub fn reply_then_recv(
        &mut self,
        token: ReplyToken,
        on: EndpointKey,
        receiver: R,
        now_ns: u64,
        expired: impl FnMut(Ended<C, R>),
    ) -> Result<(ReplyVerdict<C>, RecvVerdict<C>), ReplyThenRecvError> {
        let verdict = self.answer_of(token).map_err(|_| ReplyThenRecvError::StaleToken)?;
        let index = token.index();
        let is_same = self.records.at(index).is_some_and(|record| record.endpoint == on);
        let disconnected = ReplyThenRecvError::Recv(RecvError::Disconnected);
        let endpoint = self.endpoint_mut(on).ok_or(disconnected)?;
        if is_same && endpoint.callers.length == 0 {
            // The usual case: the record that carried the call waits for the next one.
            let generation = next_generation(token.generation());
            endpoint.in_flight = endpoint.in_flight.wrapping_sub(1);
            if let Some(endpoint) = self.endpoints.at_mut(on.index) {
                endpoint.receivers.push_back(&mut self.records, index);
            }
            if let Some(record) = self.records.at_mut(index) {
                record.generation = generation;
                record.life = Life::Receiving(receiver);
            }
            return Ok((verdict, RecvVerdict::Waiting(RecvKey { index, generation })));
        }
        // The answered call makes room for the receive at its own endpoint, and its record is
        // free for it at any other: the receive below cannot fail.
        if !(is_same || endpoint.may_receive()) {
            return Err(ReplyThenRecvError::Recv(RecvError::Overloaded));
        }
        self.leave_flight(index);
        self.free(index);
        let next = self.recv(on, receiver, now_ns, expired).map_err(ReplyThenRecvError::Recv)?;
        Ok((verdict, next))
    }

    /// The caller gives its call up, or is gone. If a receiver has it, the record stays until
    /// the RETURN, which is dropped.
    pub fn cancel_call(&mut self, key: CallKey) -> Result<CallEnd<C>, NotFound> {
        let record = self.record(key.index, key.generation).ok_or(NotFound)?;
        let on = record.endpoint;
        match record.life {
            Life::Queued(call) => {
                self.unlink_caller(on, key.index);
                Ok(CallEnd { caller: call.caller, donation: None, was_delivered: false })
            }
            Life::Delivered { caller, holder, donation } => {
                if let Some(record) = self.records.at_mut(key.index) {
                    record.life = Life::Abandoned { holder };
                }
                Ok(CallEnd { caller, donation, was_delivered: true })
            }
            _ => Err(NotFound),
        }
    }

    fn unlink_caller(&mut self, on: EndpointKey, index: u32) {
        if let Some(endpoint) = self.endpoints.at_mut(on.index) {
            endpoint.callers.unlink(&mut self.records, index);
        }
        self.free(index);
    }

    /// The deadline of a call may have come: ends it if it still waits and is due.
    pub fn expire_call(&mut self, key: CallKey, now_ns: u64) -> Result<CallEnd<C>, ExpireError> {
        let record = self.record(key.index, key.generation).ok_or(ExpireError::NotFound)?;
        let on = record.endpoint;
        let Life::Queued(call) = record.life else { return Err(ExpireError::NotFound) };
        if !call.is_expired(now_ns) {
            return Err(ExpireError::NotDue);
        }
        self.unlink_caller(on, key.index);
        Ok(CallEnd { caller: call.caller, donation: None, was_delivered: false })
    }

    /// A receive is given up, or its thread is gone.
    pub fn cancel_recv(&mut self, key: RecvKey) -> Result<R, NotFound> {
        let record = self.record(key.index, key.generation).ok_or(NotFound)?;
        let on = record.endpoint;
        let Life::Receiving(receiver) = record.life else { return Err(NotFound) };
        if let Some(endpoint) = self.endpoints.at_mut(on.index) {
            endpoint.receivers.unlink(&mut self.records, key.index);
        }
        self.free(key.index);
        Ok(receiver)
    }

    /// CPU time is lent with a call that has just been delivered. However the call ends, its
    /// end carries the donation, so that it is given back once, before the caller wakes.
    pub fn lend(&mut self, key: CallKey, lent: Donation) -> Result<(), LendError> {
        match self.records.at_mut(key.index) {
            Some(Record { generation, life: Life::Delivered { donation, .. }, .. })
                if *generation == key.generation =>
            {
                if donation.is_some() {
                    return Err(LendError::AlreadyLent);
                }
                *donation = Some(lent);
                Ok(())
            }
            _ => Err(LendError::NotFound),
        }
    }
}
