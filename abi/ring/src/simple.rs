//! The SQEs that are looked for before all others: checked in a few instructions, from the same words.
//!
//! A simple CALL or RETURN has its message inline on both sides, and nothing else. What these
//! checks accept, [`decode`](crate::decode()) accepts as the same operation (a test holds them
//! against each other); what they refuse is for it to tell apart.

use abi_types::{CapSlot, INLINE_BYTES, InterfaceTag, Opcode, ReplyToken, SqeFlags};

use crate::memory::Memory;
use crate::pass::{Head, Sole};
use crate::request::{Park, Unpark};

/// A CALL with an inline message, without deadline or capabilities, whose results come inline, if it
/// [`means`](Self::means) the interface of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimpleCall {
    /// Goes into its completion.
    pub user_data: u64,
    /// The capability.
    pub target: CapSlot,
    /// The last word: above the tag of the interface that is meant, below zeros, which nobody has looked at
    /// yet ([`means`](Self::means)).
    last: u64,
    /// The method's ordinal.
    pub method: u16,
    /// The inline slot of the parameters.
    pub slot: u16,
    /// Their bytes.
    pub length: u32,
}

/// A RETURN of inline results, then a receive into the completion's inline slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimpleAnswer {
    /// Goes into its completion.
    pub user_data: u64,
    /// The call that is answered.
    pub token: ReplyToken,
    /// The endpoint to receive from.
    pub endpoint: CapSlot,
    /// The inline slot of the results.
    pub slot: u16,
    /// Their bytes.
    pub length: u32,
}

/// Opcode and flags of the first word.
const OPERATION: u64 = 0xffff;
const CALL: u64 = Opcode::Call as u64;
/// Opcode, flags and method of the first word.
const OPERATION_AND_METHOD: u64 = 0xffff_ffff;
const RETURN_THEN_RECV: u64 = Opcode::Return as u64 | (SqeFlags::THEN_RECV as u64) << 8;
/// Where the inline slot's number begins in the word of places; what is below must be zero.
const SLOT_SHIFT: u32 = 48;
/// Where the tag of a CALL begins in the last word; what is below must be zero.
const INTERFACE_SHIFT: u32 = 32;

/// Slot and length, if the rest of the word of places is zero and both are in bounds.
#[inline(always)]
fn payload(first: u64, places: u64, slots: u32) -> Option<(u16, u32)> {
    let length = (first >> 32) as u32;
    let slot = (places >> SLOT_SHIFT) as u32;
    let fits = length <= INLINE_BYTES as u32 && slot < slots && places << (64 - SLOT_SHIFT) == 0;
    fits.then_some((slot as u16, length))
}

impl Head {
    /// The SQE as an UNPARK.
    #[inline(always)]
    pub fn unpark(&self) -> Option<Unpark> {
        Unpark::of(&self.words)
    }

    /// The SQE as a PARK.
    #[inline(always)]
    pub fn park(&self) -> Option<Park> {
        Park::of(&self.words)
    }

    /// Whether it is a YIELD, well formed.
    #[inline(always)]
    pub fn is_yield(&self) -> bool {
        let [first, _, cap, arg, address, result_address, places, last] = self.words;
        first == Opcode::Yield as u64 && cap | arg | address | result_address | places | last == 0
    }

    /// The SQE as a simple CALL on a ring with that many inline slots.
    #[cfg(test)]
    fn simple_call(&self, slots: u32) -> Option<SimpleCall> {
        let [first, ..] = self.words;
        SimpleCall::of(first, |word| self.words[word], slots)
    }

    /// The SQE as a simple RETURN on a ring with that many inline slots.
    #[cfg(test)]
    fn simple_answer(&self, slots: u32) -> Option<SimpleAnswer> {
        let [first, ..] = self.words;
        SimpleAnswer::of(first, |word| self.words[word], slots)
    }
}

// Words of an SQE.
const FIRST: usize = 0;
const USER_DATA: usize = 1;
const CAP: usize = 2;
const ARG: usize = 3;
const ADDRESS: usize = 4;
const RESULT_ADDRESS: usize = 5;
const PLACES: usize = 6;
const LAST: usize = 7;

impl SimpleCall {
    /// Looks for one in an SQE whose first word is `first`; each other word is read at most once.
    #[inline(always)]
    fn of(first: u64, word: impl Fn(usize) -> u64, slots: u32) -> Option<Self> {
        if first & OPERATION != CALL || word(ARG) | word(ADDRESS) | word(RESULT_ADDRESS) != 0 {
            return None;
        }
        let (slot, length) = payload(first, word(PLACES), slots)?;
        let (user_data, target) = (word(USER_DATA), CapSlot::from_bits(word(CAP)));
        let (method, last) = ((first >> 16) as u16, word(LAST));
        Some(Self { user_data, target, last, method, slot, length })
    }

    /// Whether it is a simple call of this interface: one compare for the tag and for what must be zero.
    #[inline(always)]
    pub const fn means(&self, interface: InterfaceTag) -> bool {
        self.last == (interface.to_bits() as u64) << INTERFACE_SHIFT
    }
}

impl SimpleAnswer {
    /// Looks for one in an SQE whose first word is `first`; each other word is read at most once.
    #[inline(always)]
    fn of(first: u64, word: impl Fn(usize) -> u64, slots: u32) -> Option<Self> {
        if first & OPERATION_AND_METHOD != RETURN_THEN_RECV
            || word(ADDRESS) | word(RESULT_ADDRESS) | word(LAST) != 0
        {
            return None;
        }
        let (slot, length) = payload(first, word(PLACES), slots)?;
        let (user_data, token) = (word(USER_DATA), ReplyToken::from_bits(word(ARG)));
        Some(Self { user_data, token, endpoint: CapSlot::from_bits(word(CAP)), slot, length })
    }
}

impl<M: Memory> Sole<'_, M> {
    /// It as a simple CALL. Nothing is kept of one that is not: who looks again reads it again.
    #[inline(always)]
    pub fn simple_call(&self) -> Option<SimpleCall> {
        let word = self.ring.memory.sqe_words(self.head);
        SimpleCall::of(word(FIRST), &word, self.ring.bounds.slots)
    }

    /// It as a simple RETURN, as [`simple_call`](Self::simple_call).
    #[inline(always)]
    pub fn simple_answer(&self) -> Option<SimpleAnswer> {
        let word = self.ring.memory.sqe_words(self.head);
        SimpleAnswer::of(word(FIRST), &word, self.ring.bounds.slots)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Bounds, Payload, Request, Room, decode};

    const SLOTS: u32 = 8;
    const BOUNDS: Bounds = Bounds { slots: SLOTS, params_bytes: 4096, result_bytes: 4096 };

    /// Every way one word can differ from a simple SQE, and every pair of such ways.
    fn variants(base: [u64; 8]) -> impl Iterator<Item = [u64; 8]> {
        let flips = (0..512_usize).chain([512]);
        flips.clone().flat_map(move |a| {
            let flips = flips.clone();
            flips.map(move |b| {
                let mut words = base;
                for bit in [a, b] {
                    if let Some(word) = words.get_mut(bit / 64) {
                        *word ^= 1 << (bit % 64);
                    }
                }
                words
            })
        })
    }

    #[test]
    fn what_is_found_early_is_decoded_the_same() {
        let park = [Opcode::Park as u64, 5, 0x1_0000_0003, 64, 7, 9, 0, 0];
        let unpark = [Opcode::Unpark as u64, 5, 0x1_0000_0003, 64, 7, 0, 0, 0];
        let nothing = [Opcode::Yield as u64, 5, 0, 0, 0, 0, 0, 0];
        let mut found = 0;
        for words in [park, unpark, nothing].into_iter().flat_map(variants) {
            let head = Head::of(words);
            let early = head.park().map(Request::Park);
            let early = early.or(head.unpark().map(Request::Unpark));
            let early = early.or(head.is_yield().then_some(Request::Yield));
            let early = early.or(head.is_nop().then_some(Request::Nop));
            found += u32::from(early.is_some());
            let decoded = decode(words, &BOUNDS);
            let is_one = |request: &Request| {
                use Request::{Nop, Park, Unpark, Yield};
                matches!(request, Nop | Park(_) | Unpark(_) | Yield)
            };
            assert_eq!(early, decoded.ok().filter(is_one), "{words:x?}");
        }
        assert!(found > 10_000, "{found}");
    }

    #[test]
    fn what_is_simple_is_decoded_the_same() {
        let call = [CALL | 7 << 16 | 64 << 32, 5, 0x1_0000_0003, 0, 0, 0, 3 << SLOT_SHIFT, 6 << 32];
        let answer = [RETURN_THEN_RECV | 128 << 32, 5, 0x1_0000_0003, 9, 0, 0, 0, 0];
        let mut simple = 0;
        for words in variants(call).chain(variants(answer)) {
            let head = Head::of(words);
            let decoded = decode(words, &BOUNDS);
            // The slot's interface: whatever tag the words have, unless they have none.
            let tag = InterfaceTag::of(words[7] >> INTERFACE_SHIFT);
            let call = head.simple_call(SLOTS);
            if let Some((found, tag)) = call.zip(tag).filter(|(found, tag)| found.means(*tag)) {
                simple += 1;
                let Ok(Request::Call(call)) = decoded else { panic!("{words:x?} is no CALL") };
                let params = Payload::Inline { slot: found.slot, length: found.length };
                assert_eq!((call.target(), call.method()), (found.target, found.method));
                assert_eq!(call.interface(), tag.to_bits());
                assert_eq!((call.params(), call.results()), (params, Room::Inline));
                assert_eq!((call.deadline_ns(), call.transfers()), (0, 0));
            }
            if let Some(found) = head.simple_answer(SLOTS) {
                simple += 1;
                let Ok(Request::Return(answer)) = decoded else {
                    panic!("{words:x?} is no RETURN")
                };
                let results = Payload::Inline { slot: found.slot, length: found.length };
                let recv = answer.then().unwrap();
                assert_eq!((answer.token(), recv.endpoint()), (found.token, found.endpoint));
                assert_eq!((answer.results(), recv.room()), (results, Room::Inline));
                assert_eq!((answer.exception(), answer.transfers()), (None, 0));
            }
        }
        // User data, target, token, method, length and slot may be anything in bounds.
        assert!(simple > 10_000, "{simple}");
    }
}
