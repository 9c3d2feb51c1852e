//! The service: CALL, RECV, RETURN and their cancellation.

use core::marker::PhantomData;

use abi_types::{ReplyToken, Status};

use crate::endpoint::{Endpoint, EndpointKey, Limits, Load};
use crate::found::{FoundCaller, FoundReceiver};
use crate::record::{
    Call, CallKey, Donation, Life, NO_RECORD, Record, RecvKey, is_past, next_generation,
};
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
    /// Endpoints there can be.
    pub fn endpoint_count(&self) -> usize {
        self.endpoints.count() as usize
    }

    /// A service without endpoints. The records' generations are kept, so that storage can be
    /// used by one service after another without a token coming back to life.
    pub fn new(records: S, endpoints: E) -> Self {
        Self::new_with(records, endpoints, || {})
    }

    /// The same; `before` is called before each record is made free, and may have a preemption point.
    pub fn new_with(mut records: S, mut endpoints: E, before: impl Fn()) -> Self {
        let mut first_free = NO_RECORD;
        for index in (0..records.count()).rev() {
            before();
            if let Some(record) = records.at_mut(index) {
                let generation = record.generation;
                *record = Record { next: first_free, ..Record::used_before(generation) };
                first_free = index;
            }
        }
        for index in 0..endpoints.count() {
            if let Some(endpoint) = endpoints.at_mut(index) {
                endpoint.close();
                *endpoint = Endpoint { generation: endpoint.generation, ..Endpoint::UNUSED };
            }
        }
        let parties = PhantomData;
        Self { records, endpoints, first_free, is_closed: false, drained: 0, parties }
    }

    /// Opens an endpoint in the first free place; its key is stale once it is closed.
    pub fn open(&mut self, limits: Limits) -> Result<EndpointKey, CreateError> {
        if self.is_closed {
            return Err(CreateError::Closed);
        }
        for index in 0..self.endpoints.count() {
            let Some(endpoint) = self.endpoints.at_mut(index) else { break };
            if let Some(generation) = endpoint.open(limits) {
                return Ok(EndpointKey { index, generation });
            }
        }
        Err(CreateError::Full)
    }

    /// What waits and is served at an endpoint, with its limits.
    pub fn load(&self, of: EndpointKey) -> Option<Load> {
        let endpoint = self.endpoints.at(of.index)?;
        (endpoint.generation == of.generation).then_some(Load {
            queued: endpoint.callers.length,
            in_flight: endpoint.in_flight,
            limits: endpoint.limits,
        })
    }

    /// The open endpoint with this name.
    #[inline]
    pub(crate) fn endpoint_mut(&mut self, key: EndpointKey) -> Option<&mut Endpoint> {
        let endpoint = self.endpoints.at_mut(key.index)?;
        (endpoint.generation == key.generation).then_some(endpoint)
    }

    /// The record with this position in this generation.
    #[inline]
    pub(crate) fn record(&self, index: u32, generation: u32) -> Option<&Record<C, R>> {
        self.records.at(index).filter(|record| record.generation == generation)
    }

    /// The token, or that of no record if its position is none: it comes from a program, and must not lead
    /// outside the records even while the CPU guesses that it does not.
    #[inline(always)]
    fn confined(&self, token: ReplyToken) -> ReplyToken {
        // Generation 0 is never given out.
        ReplyToken::from_bits(token.to_bits() & self.records.mask(token.index()))
    }

    /// Takes a record off the free list and begins its next generation.
    #[inline]
    pub(crate) fn allocate(
        &mut self,
        endpoint: EndpointKey,
        life: Life<C>,
        holder: Option<R>,
    ) -> Option<CallKey> {
        let index = self.first_free;
        let record = self.records.at_mut(index)?;
        self.first_free = record.next;
        record.generation = next_generation(record.generation);
        record.endpoint = endpoint;
        record.life = life;
        record.holder = holder;
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

    /// The receiver that waits for a call, and the token the call would have. Nothing changes until
    /// it is [delivered](FoundReceiver::deliver); that is then what
    /// [`try_deliver`](Self::try_deliver) does.
    #[inline(always)]
    pub fn find_receiver(
        &mut self,
        to: EndpointKey,
    ) -> Option<(R, ReplyToken, FoundReceiver<'_, S>)> {
        let endpoint = self.endpoints.at_mut(to.index)?;
        if endpoint.generation != to.generation {
            return None;
        }
        let index = endpoint.receivers.head;
        let record = self.records.at(index)?;
        let (receiver, token) = (record.holder?, ReplyToken::new(index, record.generation));
        Some((receiver, token, FoundReceiver { endpoint, records: &mut self.records, index }))
    }

    /// The caller that waits for the answer to `token`, and the key of the receive that would follow
    /// the answer. Nothing changes until it is [answered](FoundCaller::answer_then_wait); that is then
    /// what [`try_reply_then_wait`](Self::try_reply_then_wait) does. Not a caller that lent something:
    /// that is given back first.
    #[inline(always)]
    pub fn find_caller(
        &mut self,
        token: ReplyToken,
        on: EndpointKey,
    ) -> Option<(C, RecvKey, FoundCaller<'_, S>)> {
        let token = self.confined(token);
        let index = token.index();
        let record = self.records.at(index)?;
        let endpoint = self.endpoints.at_mut(on.index)?;
        if record.generation != token.generation()
            || record.endpoint != on
            || endpoint.generation != on.generation
            || endpoint.callers.length != 0
        {
            return None;
        }
        let Life::Delivered { caller, donation: None } = record.life else { return None };
        let key = RecvKey { index, generation: next_generation(token.generation()) };
        Some((caller, key, FoundCaller { endpoint, records: &mut self.records, key }))
    }

    /// A call was made and a receiver waits for it: the whole of what the fast path of CALL
    /// does here. `None` changes nothing and means [`call`](Self::call), which tells the cases
    /// apart.
    #[inline]
    pub fn try_deliver(
        &mut self,
        to: EndpointKey,
        caller: C,
        deadline_ns: u64,
        now_ns: u64,
    ) -> Option<(R, ReplyToken)> {
        let endpoint = self.endpoints.at_mut(to.index)?;
        if endpoint.generation != to.generation || is_past(deadline_ns, now_ns) {
            return None;
        }
        let index = endpoint.receivers.head;
        let record = self.records.at(index)?;
        let (receiver, token) = (record.holder?, ReplyToken::new(index, record.generation));
        FoundReceiver { endpoint, records: &mut self.records, index }.deliver(caller);
        Some((receiver, token))
    }

    /// Gives a call to the longest waiting receiver, or queues it.
    #[inline]
    pub fn call(
        &mut self,
        to: EndpointKey,
        call: Call<C>,
        now_ns: u64,
    ) -> Result<CallVerdict<R>, CallError> {
        match self.try_deliver(to, call.caller, call.deadline_ns, now_ns) {
            Some((to, token)) => Ok(CallVerdict::Deliver { to, token }),
            None => self.queue_call(to, call, now_ns),
        }
    }

    /// Nobody receives: the call waits, or is refused.
    fn queue_call(
        &mut self,
        to: EndpointKey,
        call: Call<C>,
        now_ns: u64,
    ) -> Result<CallVerdict<R>, CallError> {
        let has_free = self.first_free != NO_RECORD;
        let endpoint = self.endpoint_mut(to).ok_or(CallError::Disconnected)?;
        if is_past(call.deadline_ns, now_ns) {
            return Err(CallError::DeadlineExpired);
        }
        if endpoint.callers.length >= endpoint.limits.queued || !has_free {
            return Err(CallError::Overloaded);
        }
        let share = if endpoint.is_shared { (endpoint.limits.queued / 2).max(1) } else { u32::MAX };
        if endpoint.callers.length >= share && self.queued_with(to, call.badge) >= share {
            return Err(CallError::Overloaded);
        }
        let key = self.allocate(to, Life::Queued(call), None).ok_or(CallError::Overloaded)?;
        if let Some(endpoint) = self.endpoints.at_mut(to.index) {
            endpoint.callers.push_back(&mut self.records, key.index);
        }
        Ok(CallVerdict::Queued(key))
    }

    /// How many calls with this badge wait at an endpoint.
    fn queued_with(&self, on: EndpointKey, badge: u64) -> u32 {
        let mut at =
            self.endpoints.at(on.index).map_or(NO_RECORD, |endpoint| endpoint.callers.head);
        let mut count = 0;
        while let Some(record) = self.records.at(at) {
            count += u32::from(matches!(record.life, Life::Queued(call) if call.badge == badge));
            at = record.next;
        }
        count
    }

    /// Says whether callers of an endpoint have more than one badge: then calls of one badge take half of its
    /// queue at most.
    pub fn set_shared(&mut self, on: EndpointKey, is_shared: bool) {
        if let Some(endpoint) = self.endpoint_mut(on) {
            endpoint.is_shared = is_shared;
        }
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
            if !is_past(call.deadline_ns, now_ns) {
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
            record.life = Life::Delivered { caller: call.caller, donation: None };
            record.holder = Some(holder);
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
        let key =
            self.allocate(on, Life::Receiving, Some(receiver)).ok_or(RecvError::Overloaded)?;
        if let Some(endpoint) = self.endpoints.at_mut(on.index) {
            endpoint.receivers.push_back(&mut self.records, key.index);
        }
        Ok(RecvVerdict::Waiting(RecvKey { index: key.index, generation: key.generation }))
    }

    /// The caller that waits for the answer: `None` if it has gone. For checks and
    /// copies before [`reply`](Self::reply), which alone decides.
    #[inline]
    pub fn caller_of(&self, token: ReplyToken) -> Result<Option<&C>, StaleToken> {
        let token = self.confined(token);
        match self.record(token.index(), token.generation()).map(|record| &record.life) {
            Some(Life::Delivered { caller, .. }) => Ok(Some(caller)),
            Some(Life::Abandoned) => Ok(None),
            _ => Err(StaleToken),
        }
    }

    /// What a token's record holds, if it is being served.
    #[inline]
    fn answer_of(&self, token: ReplyToken) -> Result<ReplyVerdict<C>, StaleToken> {
        match self.record(token.index(), token.generation()).map(|record| record.life) {
            Some(Life::Delivered { caller, donation }) => {
                Ok(ReplyVerdict::Complete { caller, donation })
            }
            Some(Life::Abandoned) => Ok(ReplyVerdict::Dropped),
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
        let token = self.confined(token);
        let verdict = self.answer_of(token)?;
        self.leave_flight(token.index());
        self.free(token.index());
        Ok(verdict)
    }

    /// A call is answered and the next one asked for, at an endpoint where nobody waits: the
    /// whole of what the fast path of RETURN with THEN_RECV does here. The record that carried
    /// the call waits for the next one. `None` changes nothing and means
    /// [`reply_then_recv`](Self::reply_then_recv).
    #[inline]
    pub fn try_reply_then_wait(
        &mut self,
        token: ReplyToken,
        on: EndpointKey,
        receiver: R,
    ) -> Option<(C, Option<Donation>, RecvKey)> {
        let token = self.confined(token);
        let index = token.index();
        let record = self.records.at_mut(index)?;
        let endpoint = self.endpoints.at_mut(on.index)?;
        if record.generation != token.generation()
            || record.endpoint != on
            || endpoint.generation != on.generation
            || endpoint.callers.length != 0
        {
            return None;
        }
        let Life::Delivered { caller, donation } = record.life else { return None };
        let generation = next_generation(token.generation());
        record.generation = generation;
        record.life = Life::Receiving;
        record.holder = Some(receiver);
        endpoint.in_flight = endpoint.in_flight.wrapping_sub(1);
        endpoint.receivers.push_back(&mut self.records, index);
        Some((caller, donation, RecvKey { index, generation }))
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
        if let Some((caller, donation, key)) = self.try_reply_then_wait(token, on, receiver) {
            let reply = ReplyVerdict::Complete { caller, donation };
            return Ok((reply, RecvVerdict::Waiting(key)));
        }
        let token = self.confined(token);
        let verdict = self.answer_of(token).map_err(|_| ReplyThenRecvError::StaleToken)?;
        let index = token.index();
        let is_same = self.records.at(index).is_some_and(|record| record.endpoint == on);
        let disconnected = ReplyThenRecvError::Recv(RecvError::Disconnected);
        let endpoint = self.endpoint_mut(on).ok_or(disconnected)?;
        // The answered call makes room for the receive at its own endpoint, and its record is
        // free for it at any other: past this check the receive cannot fail.
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
            Life::Delivered { caller, donation } => {
                if let Some(record) = self.records.at_mut(key.index) {
                    record.life = Life::Abandoned;
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
        if !is_past(call.deadline_ns, now_ns) {
            return Err(ExpireError::NotDue);
        }
        self.unlink_caller(on, key.index);
        Ok(CallEnd { caller: call.caller, donation: None, was_delivered: false })
    }

    /// A receive is given up, or its thread is gone.
    pub fn cancel_recv(&mut self, key: RecvKey) -> Result<R, NotFound> {
        let record = self.record(key.index, key.generation).ok_or(NotFound)?;
        let on = record.endpoint;
        let (Life::Receiving, Some(receiver)) = (record.life, record.holder) else {
            return Err(NotFound);
        };
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
