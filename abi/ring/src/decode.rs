//! From the 64 bytes of an SQE to a [`Request`], or the status it completes with.
//!
//! Checks in this order: the opcode is one of this image (`UnsupportedOpcode`); the flags are
//! the operation's and every field it does not use is zero (`InvalidArgument`); the payload
//! fits its place and the ring's limit (`ParamsTooLarge`, `ResultTooLarge`). Works on a copy;
//! an SQE that user space rewrites meanwhile is never looked at again.

use abi_sync::mask_below;
use abi_types::limits::MAX_TRANSFERS;
use abi_types::{CapSlot, ExceptionKind, INLINE_BYTES, Opcode, Sqe, SqeFlags, Status, Transfer};

use crate::request::{Call, Park, Recv, Request, Return, Unpark};

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
#[inline(always)]
pub fn decode(words: [u64; 8], bounds: &Bounds) -> Result<Request, Status> {
    let sqe: Sqe = zerocopy::transmute!(words);
    let [first, _user_data, cap, arg, address, result_address, places, last] = words;
    // First and apart from the others: what is measured against it is the ring itself.
    if first == Opcode::Nop as u64 {
        zero(cap | arg | address | result_address | places | last)?;
        return Ok(Request::Nop);
    }
    // The first word but for the opcode: flags, method, length.
    let head = first >> 8;
    match Opcode::from_number(confined(sqe.opcode)?) {
        Some(Opcode::Nop) => Err(Status::InvalidArgument),
        Some(Opcode::Call) => {
            check_call(&sqe, bounds)?;
            Ok(Request::Call(Call(sqe)))
        }
        Some(Opcode::Recv) => {
            zero(u64::from(sqe.flags & !INCOMING) | head >> 8 | arg | address)?;
            zero(u64::from(sqe.transfers | sqe.buffer) | reserved(last))?;
            check_room(&sqe)?;
            Ok(Request::Recv(Recv(sqe)))
        }
        Some(Opcode::Return) => {
            check_return(&sqe, bounds)?;
            Ok(Request::Return(Return(sqe)))
        }
        Some(Opcode::Release) => {
            zero(head | arg | address | result_address | places | last)?;
            Ok(Request::Release(CapSlot::from_bits(cap)))
        }
        Some(Opcode::Cancel) => {
            zero(head | cap | address | result_address | places | last)?;
            Ok(Request::Cancel { target: arg })
        }
        Some(Opcode::Park) => Park::of(&words).map(Request::Park).ok_or(Status::InvalidArgument),
        Some(Opcode::Unpark) => {
            Unpark::of(&words).map(Request::Unpark).ok_or(Status::InvalidArgument)
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

/// Beyond every number that is an operation in one row.
const OPCODES: u8 = Opcode::Finish as u8 + 1;

/// The opcode, which may choose an entry of a table of branches: it does not leave the table even where the
/// check of its bound is only guessed.
#[inline(always)]
fn confined(opcode: u8) -> Result<u8, Status> {
    #[cfg(measure)]
    if opcode == Opcode::ParkBench as u8 {
        return Ok(opcode);
    }
    if opcode >= OPCODES {
        return Err(Status::UnsupportedOpcode);
    }
    Ok(opcode & mask_below(usize::from(opcode), usize::from(OPCODES)) as u8)
}

#[inline(always)]
fn check_call(sqe: &Sqe, bounds: &Bounds) -> Result<(), Status> {
    zero(u64::from(sqe.flags & !(OUTGOING | INCOMING)) | reserved_of(sqe))?;
    check_room(sqe)?;
    let limits = Limits {
        payload: bounds.params_bytes,
        // A deadline goes to the receiver in the last word of its slot.
        inline_taken: if sqe.arg == 0 { 0 } else { 8 },
        too_large: Status::ParamsTooLarge,
    };
    check_payload(sqe, bounds.slots, &limits)
}

#[inline(always)]
fn check_return(sqe: &Sqe, bounds: &Bounds) -> Result<(), Status> {
    if sqe.flags & SqeFlags::THEN_RECV != 0 {
        zero(u64::from(sqe.flags & !SqeFlags::KNOWN) | reserved_of(sqe))?;
        check_room(sqe)?;
    } else {
        let known = SqeFlags::EXCEPTION | OUTGOING;
        zero(u64::from(sqe.flags & !known) | reserved_of(sqe) | sqe.cap | sqe.result_address)?;
        zero(u64::from(sqe.result_capacity) | u64::from(sqe.result_buffer))?;
    }
    if sqe.flags & SqeFlags::EXCEPTION != 0 {
        zero(u64::from(sqe.transfers))?;
        ExceptionKind::from_number(sqe.method).ok_or(Status::InvalidArgument)?;
    } else {
        zero(u64::from(sqe.method))?;
    }
    let limits =
        Limits { payload: bounds.result_bytes, inline_taken: 0, too_large: Status::ResultTooLarge };
    check_payload(sqe, bounds.slots, &limits)
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

#[inline(always)]
fn check_payload(sqe: &Sqe, slots: u32, limits: &Limits) -> Result<(), Status> {
    if sqe.transfers > MAX_TRANSFERS {
        return Err(Status::InvalidArgument);
    }
    match sqe.flags & OUTGOING {
        0 => {
            zero(sqe.address)?;
            if u32::from(sqe.buffer) >= slots {
                return Err(Status::InvalidArgument);
            }
            let descriptors = u64::from(sqe.transfers) * size_of::<Transfer>() as u64;
            let payload = u64::from(sqe.length).next_multiple_of(8);
            fits(payload + descriptors + limits.inline_taken <= INLINE_BYTES as u64, limits)
        }
        SqeFlags::BY_ADDRESS => {
            zero(u64::from(sqe.buffer))?;
            fits(sqe.length <= limits.payload, limits)
        }
        SqeFlags::REGISTERED => fits(sqe.length <= limits.payload, limits),
        _ => Err(Status::InvalidArgument),
    }
}

#[inline(always)]
fn check_room(sqe: &Sqe) -> Result<(), Status> {
    let buffer = u64::from(sqe.result_buffer);
    match sqe.flags & INCOMING {
        0 => zero(sqe.result_address | u64::from(sqe.result_capacity) | buffer),
        SqeFlags::RESULT_BY_ADDRESS => zero(buffer),
        SqeFlags::RESULT_REGISTERED => Ok(()),
        _ => Err(Status::InvalidArgument),
    }
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
