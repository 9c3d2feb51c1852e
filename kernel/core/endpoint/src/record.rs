//! The record of one receive or call, from its acceptance to its end.
//!
//! ```text
//!            RECV, nobody calls                CALL
//!   Free ─────────────────────▶ Receiving ───────────────▶ Delivered ──RETURN──▶ Free
//!    │                              │ cancel, exit, close      ▲   │ cancel, caller gone
//!    │ CALL, nobody receives        ▼                     RECV │   ▼
//!    └────────────────────────▶ Free ◀──────────────────── Queued  Abandoned ──RETURN──▶ Free
//!                                     cancel, expiry, close
//! ```
//!
//! One record carries a call all the way: the receiver's record becomes the call's when a call
//! comes, and a queued call's record stays its own when it is received. Its position and
//! generation are the reply token, and the caller's name for the pending call.
//!
//! Generations come round after 2³² uses of a record, which a busy server reaches within
//! hours, so a record cannot be retired then. The kernel drops its own keys when their
//! operation ends; only a server that kept a token for so long can hit a later call with it,
//! and that is a call it was given to answer.

use abi_types::ReplyToken;

use crate::endpoint::EndpointKey;

/// The end of a list of records.
pub(crate) const NO_RECORD: u32 = u32::MAX;

/// What a caller asks of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<C> {
    /// The caller, as the kernel knows it.
    pub caller: C,
    /// The badge of the facet it came through.
    pub badge: u64,
    /// Past this time the call is not delivered any more; 0 for never. It grants no CPU.
    pub deadline_ns: u64,
}

/// Whether a call's deadline has passed; 0 is none.
#[inline]
pub(crate) const fn is_past(deadline_ns: u64, now_ns: u64) -> bool {
    deadline_ns != 0 && deadline_ns <= now_ns
}

/// CPU time that was lent with a call: the key of the lending's own record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Donation(pub u64);

/// The caller's name of a pending call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallKey {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl CallKey {
    /// The call a reply token names.
    #[inline]
    pub const fn of(token: ReplyToken) -> Self {
        Self { index: token.index(), generation: token.generation() }
    }

    /// The key as one number, for the record of the pending operation.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        self.index as u64 | (self.generation as u64) << 32
    }

    /// The key that [`to_bits`](Self::to_bits) gave.
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        Self { index: bits as u32, generation: (bits >> 32) as u32 }
    }

    #[inline]
    pub(crate) const fn token(self) -> ReplyToken {
        ReplyToken::new(self.index, self.generation)
    }
}

/// The receiver's name of a pending receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvKey {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl RecvKey {
    /// The receive that a call was delivered to, while the call's message is on its way.
    #[inline]
    pub const fn of(token: ReplyToken) -> Self {
        Self { index: token.index(), generation: token.generation() }
    }

    /// The key as one number, for the record of the pending operation.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        self.index as u64 | (self.generation as u64) << 32
    }

    /// The key that [`to_bits`](Self::to_bits) gave.
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        Self { index: bits as u32, generation: (bits >> 32) as u32 }
    }
}

/// The generation after this one; 0 is never given out.
#[inline]
pub(crate) const fn next_generation(generation: u32) -> u32 {
    let next = generation.wrapping_add(1);
    if next == 0 { 1 } else { next }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life<C> {
    /// On the free list.
    Free,
    /// The holder waits, in its endpoint's queue of receivers.
    Receiving,
    /// A caller waits, in its endpoint's queue of callers.
    Queued(Call<C>),
    /// The holder serves the call.
    Delivered { caller: C, donation: Option<Donation> },
    /// The holder serves a call nobody waits for any more.
    Abandoned,
}

/// One record of a service's fixed table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<C, R> {
    pub(crate) generation: u32,
    /// The neighbours in the queue or free list it is in.
    pub(crate) previous: u32,
    pub(crate) next: u32,
    /// The endpoint it belongs to, unless free.
    pub(crate) endpoint: EndpointKey,
    pub(crate) life: Life<C>,
    /// Who receives or serves. Apart from the state, so that a call moves in without moving
    /// the receiver; without a meaning in Free and Queued.
    pub(crate) holder: Option<R>,
    /// The generation whose holder gave its receive up while a message was on its way to it; 0 is none's.
    pub(crate) given_up: u32,
}

impl<C, R> Record<C, R> {
    /// A record that has never been used.
    pub const UNUSED: Self = Self::used_before(0);

    /// A record whose latest use had this generation.
    pub const fn used_before(generation: u32) -> Self {
        Self {
            generation,
            previous: NO_RECORD,
            next: NO_RECORD,
            endpoint: EndpointKey::NONE,
            life: Life::Free,
            holder: None,
            given_up: 0,
        }
    }
}
