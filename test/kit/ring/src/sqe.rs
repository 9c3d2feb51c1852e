//! SQEs by what they ask for.

use abi_types::{CapSlot, ExceptionKind, InterfaceTag, Opcode, Sqe, SqeFlags};
use capos_rt::ring::NOP;
use plain_schema::plain::INTERFACE_TAG as PLAIN;

/// An operation without arguments.
pub const fn plain(opcode: Opcode) -> Sqe {
    Sqe { opcode: opcode as u8, ..NOP }
}

/// CALL of an endpoint that serves plain words, with `length` bytes in inline slot `slot`.
pub const fn call(target: CapSlot, method: u16, slot: u16, length: u32) -> Sqe {
    call_a(PLAIN, target, method, slot, length)
}

/// CALL of a capability of another interface.
pub const fn call_a(
    interface: InterfaceTag,
    target: CapSlot,
    method: u16,
    slot: u16,
    length: u32,
) -> Sqe {
    let (cap, interface) = (target.to_bits(), interface.to_bits());
    Sqe { method, length, cap, interface, buffer: slot, ..plain(Opcode::Call) }
}

/// CALL of a `Timer`.
pub const fn call_timer(target: CapSlot, method: u16, slot: u16, length: u32) -> Sqe {
    call_a(schema::timer::INTERFACE_TAG, target, method, slot, length)
}

/// CALL of a `Console`.
pub const fn call_console(target: CapSlot, method: u16, slot: u16, length: u32) -> Sqe {
    call_a(schema::console::INTERFACE_TAG, target, method, slot, length)
}

/// CALL of a `SystemInfo`.
pub const fn call_info(target: CapSlot, method: u16, slot: u16, length: u32) -> Sqe {
    call_a(schema::system_info::INTERFACE_TAG, target, method, slot, length)
}

/// CALL of an `Endpoint`, which is the kernel's.
pub const fn call_endpoint(target: CapSlot, method: u16, slot: u16, length: u32) -> Sqe {
    call_a(schema::endpoint::INTERFACE_TAG, target, method, slot, length)
}

/// CALL of a `ThreadControl`.
pub const fn call_control(target: CapSlot, method: u16, slot: u16, length: u32) -> Sqe {
    call_a(schema::thread_control::INTERFACE_TAG, target, method, slot, length)
}

/// CALL of a `ThreadHandle`.
pub const fn call_handle(target: CapSlot, method: u16, slot: u16, length: u32) -> Sqe {
    call_a(schema::thread_handle::INTERFACE_TAG, target, method, slot, length)
}

/// RECV into the completion's inline slot.
pub const fn recv(endpoint: CapSlot) -> Sqe {
    Sqe { cap: endpoint.to_bits(), ..plain(Opcode::Recv) }
}

/// RETURN of `length` bytes in inline slot `slot`.
pub const fn answer(token: u64, slot: u16, length: u32) -> Sqe {
    Sqe { arg: token, length, buffer: slot, ..plain(Opcode::Return) }
}

/// RETURN of an exception whose message is in inline slot `slot`.
pub const fn refuse(token: u64, kind: ExceptionKind, slot: u16, length: u32) -> Sqe {
    let sqe = answer(token, slot, length);
    Sqe { flags: sqe.flags | SqeFlags::EXCEPTION, method: kind as u16, ..sqe }
}

/// A RETURN that receives the next call.
pub const fn then_recv(answer: Sqe, endpoint: CapSlot) -> Sqe {
    Sqe { flags: answer.flags | SqeFlags::THEN_RECV, cap: endpoint.to_bits(), ..answer }
}

/// RELEASE.
pub const fn release(slot: CapSlot) -> Sqe {
    Sqe { cap: slot.to_bits(), ..plain(Opcode::Release) }
}

/// CANCEL of the operation with that user data.
pub const fn cancel(user_data: u64) -> Sqe {
    Sqe { arg: user_data, ..plain(Opcode::Cancel) }
}

/// PARK at the word at `address`.
pub const fn park(space: CapSlot, address: u64, expected: u32, timeout_ns: u64) -> Sqe {
    Sqe {
        cap: space.to_bits(),
        arg: address,
        address: expected as u64,
        result_address: timeout_ns,
        ..plain(Opcode::Park)
    }
}

/// UNPARK of at most `count` threads at the word at `address`.
pub const fn unpark(space: CapSlot, address: u64, count: u32) -> Sqe {
    Sqe { cap: space.to_bits(), arg: address, address: count as u64, ..plain(Opcode::Unpark) }
}

/// The same with its payload in memory.
pub const fn from_memory(sqe: Sqe, address: u64, length: u32) -> Sqe {
    Sqe { flags: sqe.flags | SqeFlags::BY_ADDRESS, address, length, buffer: 0, ..sqe }
}

/// The same with what comes in going to memory.
pub const fn to_memory(sqe: Sqe, address: u64, capacity: u32) -> Sqe {
    let flags = sqe.flags | SqeFlags::RESULT_BY_ADDRESS;
    Sqe { flags, result_address: address, result_capacity: capacity, ..sqe }
}

/// The same with this user data.
pub const fn named(sqe: Sqe, user_data: u64) -> Sqe {
    Sqe { user_data, ..sqe }
}
