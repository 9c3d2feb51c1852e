//! From the 64 bytes of an SQE to a [`Request`], or the status it completes with.
//!
//! Checks in this order: the opcode is one of this image (`UnsupportedOpcode`); the flags are
//! the operation's and every field it does not use is zero (`InvalidArgument`); the payload
//! fits its place and the ring's limit (`ParamsTooLarge`, `ResultTooLarge`). Works on a copy;
//! an SQE that user space rewrites meanwhile is never looked at again.

use abi_types::limits::MAX_TRANSFERS;
use abi_types::{
    CapSlot, ExceptionKind, INLINE_BYTES, Opcode, ReplyToken, Sqe, SqeFlags, Status, Transfer,
};

use crate::request::{Call, Park, Payload, Recv, Request, Return, Room, Unpark};

/// What a ring adds to the checks: its geometry and its process's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Inline slots of the submission side.
    pub slots: u32,
    /// Bytes of parameters of one call, at most.
    pub params_bytes: u32,
    /// Bytes of results of one call, at most.
    pub result_bytes: u32,
}

const OUTGOING: u8 = SqeFlags::BY_ADDRESS | SqeFlags::REGISTERED;
const INCOMING: u8 = SqeFlags::RESULT_BY_ADDRESS | SqeFlags::RESULT_REGISTERED;

/// Decodes one SQE, given as the words it was read in.
#[inline]
pub fn decode(words: [u64; 8], bounds: &Bounds) -> Result<Request, Status> {
    let sqe: Sqe = zerocopy::transmute!(words);
    let [head, _user_data, cap, arg, address, result_address, places, last] = words;
    // The first word but for the opcode: flags, method, length.
    let head = head >> 8;
    match Opcode::from_number(sqe.opcode) {
        Some(Opcode::Nop) => {
            zero(head | cap | arg | address | result_address | places | last)?;
            Ok(Request::Nop)
        }
        Some(Opcode::Call) => call(&sqe, bounds),
        Some(Opcode::Recv) => {
            zero(u64::from(sqe.flags & !INCOMING | nonzero(sqe.length)) | arg | address)?;
            zero(u64::from(sqe.method | sqe.transfers | sqe.buffer) | reserved(last))?;
            Ok(Request::Recv(Recv { endpoint: sqe.cap_slot(), room: room(&sqe)? }))
        }
        Some(Opcode::Return) => answer(&sqe, bounds),
        Some(Opcode::Release) => {
            zero(head | arg | address | result_address | places | last)?;
            Ok(Request::Release(CapSlot::from_bits(cap)))
        }
        Some(Opcode::Cancel) => {
            zero(head | cap | address | result_address | places | last)?;
            Ok(Request::Cancel { target: arg })
        }
        Some(Opcode::Park) => {
            zero(head | places | last | address >> 32)?;
            Ok(Request::Park(Park {
                space: CapSlot::from_bits(cap),
                address: arg,
                expected: address as u32,
                timeout_ns: result_address,
            }))
        }
        Some(Opcode::Unpark) => {
            zero(head | places | last | result_address | address >> 32)?;
            Ok(Request::Unpark(Unpark {
                space: CapSlot::from_bits(cap),
                address: arg,
                count: address as u32,
            }))
        }
        Some(Opcode::Yield) => {
            zero(head | cap | arg | address | result_address | places | last)?;
            Ok(Request::Yield)
        }
        #[cfg(measure)]
        Some(Opcode::ParkBench) => {
            zero(head | cap | arg | address | result_address | places | last)?;
            Ok(Request::ParkBench)
        }
        #[cfg(not(measure))]
        Some(Opcode::ParkBench) => Err(Status::UnsupportedOpcode),
        Some(Opcode::Finish) | None => Err(Status::UnsupportedOpcode),
    }
}

#[inline]
fn call(sqe: &Sqe, bounds: &Bounds) -> Result<Request, Status> {
    zero(u64::from(sqe.flags & !(OUTGOING | INCOMING)) | reserved_of(sqe))?;
    let results = room(sqe)?;
    let deadline_bytes = if sqe.arg == 0 { 0 } else { 8 };
    let limits = Limits {
        payload: bounds.params_bytes,
        inline_taken: deadline_bytes,
        too_large: Status::ParamsTooLarge,
    };
    Ok(Request::Call(Call {
        target: sqe.cap_slot(),
        method: sqe.method,
        transfers: transfers(sqe)?,
        deadline_ns: sqe.arg,
        params: payload(sqe, bounds.slots, &limits)?,
        results,
    }))
}

#[inline]
fn answer(sqe: &Sqe, bounds: &Bounds) -> Result<Request, Status> {
    let then_recv = sqe.flags & SqeFlags::THEN_RECV != 0;
    let incoming = if then_recv { INCOMING } else { 0 };
    let known = SqeFlags::THEN_RECV | SqeFlags::EXCEPTION | OUTGOING | incoming;
    zero(u64::from(sqe.flags & !known) | reserved_of(sqe))?;
    let transfers = transfers(sqe)?;
    let exception = if sqe.flags & SqeFlags::EXCEPTION != 0 {
        zero(u64::from(transfers))?;
        Some(ExceptionKind::from_number(sqe.method).ok_or(Status::InvalidArgument)?)
    } else {
        zero(u64::from(sqe.method))?;
        None
    };
    let then = if then_recv {
        Some(Recv { endpoint: sqe.cap_slot(), room: room(sqe)? })
    } else {
        zero(sqe.cap | sqe.result_address)?;
        zero(u64::from(sqe.result_capacity) | u64::from(sqe.result_buffer))?;
        None
    };
    let limits =
        Limits { payload: bounds.result_bytes, inline_taken: 0, too_large: Status::ResultTooLarge };
    Ok(Request::Return(Return {
        token: ReplyToken::from_bits(sqe.arg),
        exception,
        transfers,
        results: payload(sqe, bounds.slots, &limits)?,
        then,
    }))
}

/// How much may go out.
struct Limits {
    /// Bytes by address or in a registered buffer.
    payload: u32,
    /// Bytes of the receiver's inline slot that are spoken for.
    inline_taken: u64,
    /// What is said about more.
    too_large: Status,
}

#[inline]
fn payload(sqe: &Sqe, slots: u32, limits: &Limits) -> Result<Payload, Status> {
    let Sqe { address, length, buffer, .. } = *sqe;
    match sqe.flags & OUTGOING {
        0 => {
            zero(address)?;
            if u32::from(buffer) >= slots {
                return Err(Status::InvalidArgument);
            }
            let descriptors = u64::from(sqe.transfers) * size_of::<Transfer>() as u64;
            let taken = u64::from(length).next_multiple_of(8) + descriptors + limits.inline_taken;
            fits(taken <= INLINE_BYTES as u64, limits)?;
            Ok(Payload::Inline { slot: buffer, length })
        }
        SqeFlags::BY_ADDRESS => {
            zero(u64::from(buffer))?;
            fits(length <= limits.payload, limits)?;
            Ok(Payload::Address { address, length })
        }
        SqeFlags::REGISTERED => {
            fits(length <= limits.payload, limits)?;
            Ok(Payload::Registered { buffer, offset: address, length })
        }
        _ => Err(Status::InvalidArgument),
    }
}

#[inline]
fn room(sqe: &Sqe) -> Result<Room, Status> {
    let Sqe { result_address, result_capacity: capacity, result_buffer: buffer, .. } = *sqe;
    match sqe.flags & INCOMING {
        0 => {
            zero(result_address | u64::from(capacity) | u64::from(buffer))?;
            Ok(Room::Inline)
        }
        SqeFlags::RESULT_BY_ADDRESS => {
            zero(u64::from(buffer))?;
            Ok(Room::Address { address: result_address, capacity })
        }
        SqeFlags::RESULT_REGISTERED => {
            Ok(Room::Registered { buffer, offset: result_address, capacity })
        }
        _ => Err(Status::InvalidArgument),
    }
}

#[inline]
fn transfers(sqe: &Sqe) -> Result<u8, Status> {
    if sqe.transfers > MAX_TRANSFERS {
        return Err(Status::InvalidArgument);
    }
    Ok(sqe.transfers as u8)
}

#[inline]
fn fits(it_does: bool, limits: &Limits) -> Result<(), Status> {
    if it_does { Ok(()) } else { Err(limits.too_large) }
}

/// The bits that must be zero, or-ed together.
#[inline]
fn zero(bits: u64) -> Result<(), Status> {
    if bits == 0 { Ok(()) } else { Err(Status::InvalidArgument) }
}

#[inline]
fn nonzero(value: u32) -> u8 {
    u8::from(value != 0)
}

/// The reserved part of an SQE's last word, past `result_buffer`.
#[inline]
fn reserved(last: u64) -> u64 {
    last >> 16
}

#[inline]
fn reserved_of(sqe: &Sqe) -> u64 {
    let [a, b, c] = sqe.reserved;
    u64::from(a | b | c)
}
