//! What a process does with registered buffers: register, name, give up.

use abi_types::{ExceptionKind, Sqe, SqeFlags, Status};
use core_ledger::Line;
use kernel_ops::machine::Space;
use schema::memory_capnp::MemoryAccess;
use schema::virtual_memory::methods::{Protect, Register, Unmap, Unregister};
use schema::virtual_memory::{
    ProtectParams, RegisterParams, RegisterResults, UnmapParams, UnregisterParams,
};
use schema_wire::{Exception, Message};
use test_machine::{Config, Done, Grant, HostObject, Process, User};
use zerocopy::IntoBytes;

/// A page.
pub const PAGE: u64 = 4096;
/// Where the pages of a buffer are, and others.
pub const AT: u64 = 0x40_0000;
/// A page.
/// How many.
pub const PAGES: u64 = 6;
/// Elsewhere.
pub const OTHER: u64 = 0x80_0000;

/// A process that may register buffers.
pub fn process(name: &'static str, main: impl Fn(User) + Send + Sync + 'static) -> Process {
    let mut process =
        Process::new(name, main).with("memory", Grant::Object(HostObject::VirtualMemory));
    process.profile.frames = 200;
    process
}

/// A machine of so many CPUs.
pub fn on(cpus: usize) -> Config {
    Config { cpus, ..Config::default() }
}

/// What a call was refused with.
pub fn refusal(done: &Done) -> Result<(), ExceptionKind> {
    let bytes = &done.words.as_bytes()[..done.cqe.length as usize];
    match done.status() {
        Status::Ok => Ok(()),
        Status::Exception => Err(Exception::decode(bytes).unwrap().kind()),
        other => panic!("{other:?}"),
    }
}

/// Maps pages of the process's own, as the kernel does.
pub fn map(user: &mut User, address: u64, pages: u64) {
    let memory = user.cap("memory");
    let params = schema::virtual_memory::MapParams {
        address,
        bytes: pages * PAGE,
        access: MemoryAccess::Write,
        fixed: true,
    };
    let sqe = user.typed::<schema::virtual_memory::methods::Map>(memory, 0, &params);
    assert_eq!(user.call(sqe).status(), Status::Ok);
}

/// Registers pages.
pub fn register(
    user: &mut User,
    address: u64,
    pages: u64,
    write: bool,
) -> Result<u16, ExceptionKind> {
    let memory = user.cap("memory");
    let params = RegisterParams { address, bytes: pages * PAGE, write };
    let sqe = user.typed::<Register>(memory, 0, &params);
    let done = user.call(sqe);
    refusal(&done)?;
    let message = Message::new(&done.words.as_bytes()[..done.cqe.length as usize]).unwrap();
    let made: RegisterResults = message.get().unwrap();
    Ok(made.buffer)
}

/// The SQE that gives a buffer up.
pub fn unregistering(user: &mut User, slot: u16, buffer: u16) -> Sqe {
    let memory = user.cap("memory");
    user.typed::<Unregister>(memory, slot, &UnregisterParams { buffer })
}

/// Gives a buffer up.
pub fn unregister(user: &mut User, buffer: u16) -> Result<(), ExceptionKind> {
    let sqe = unregistering(user, 0, buffer);
    refusal(&user.call(sqe))
}

/// Unmaps pages.
pub fn unmap(user: &mut User, address: u64, pages: u64) -> Result<(), ExceptionKind> {
    let memory = user.cap("memory");
    let sqe = user.typed::<Unmap>(memory, 0, &UnmapParams { address, bytes: pages * PAGE });
    refusal(&user.call(sqe))
}

/// Changes the access of a page.
pub fn protect(user: &mut User, address: u64, access: MemoryAccess) -> Result<(), ExceptionKind> {
    let memory = user.cap("memory");
    let params = ProtectParams { address, bytes: PAGE, access };
    let sqe = user.typed::<Protect>(memory, 0, &params);
    refusal(&user.call(sqe))
}

/// The account of the process.
pub fn used(user: &User) -> Vec<u32> {
    Line::ALL.iter().map(|line| user.process().ops.ledger.reading(*line).used).collect()
}

/// How a message is named.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    Inline,
    Address,
    Registered,
}

/// All of them.
pub const FORMS: [Form; 3] = [Form::Inline, Form::Address, Form::Registered];
/// Bytes that every form of a message is moved by, so that it crosses pages.
pub const SKEW: u64 = 1001;

/// An SQE whose payload of so many bytes is named so; in the buffer of that number, which begins at [`AT`].
pub fn sending(sqe: Sqe, form: Form, length: u32, buffer: u16) -> Sqe {
    let sqe = Sqe { length, ..sqe };
    match form {
        Form::Inline => sqe,
        Form::Address => {
            Sqe { flags: sqe.flags | SqeFlags::BY_ADDRESS, address: AT + SKEW, buffer: 0, ..sqe }
        }
        Form::Registered => {
            Sqe { flags: sqe.flags | SqeFlags::REGISTERED, address: SKEW, buffer, ..sqe }
        }
    }
}

/// The same for its room.
pub fn receiving(sqe: Sqe, form: Form, capacity: u32, buffer: u16) -> Sqe {
    match form {
        Form::Inline => sqe,
        Form::Address => Sqe {
            flags: sqe.flags | SqeFlags::RESULT_BY_ADDRESS,
            result_address: AT + SKEW,
            result_capacity: capacity,
            ..sqe
        },
        Form::Registered => Sqe {
            flags: sqe.flags | SqeFlags::RESULT_REGISTERED,
            result_address: SKEW,
            result_capacity: capacity,
            result_buffer: buffer,
            ..sqe
        },
    }
}

/// The bytes of a message that came.
pub fn bytes_of(user: &User, done: &Done, form: Form) -> Vec<u8> {
    let length = done.cqe.length as usize;
    if form == Form::Inline {
        return done.words.as_bytes()[..length].to_vec();
    }
    let mut bytes = vec![0; length];
    for (number, part) in bytes.chunks_mut(PAGE as usize).enumerate() {
        user.space().copy_in(part, AT + SKEW + number as u64 * PAGE).unwrap();
    }
    bytes
}

/// Puts the bytes of a message where its form takes them from.
pub fn put(user: &mut User, form: Form, bytes: &[u8]) {
    if form == Form::Inline {
        let mut words = [0_u64; 16];
        words.as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
        return user.write(0, &words);
    }
    for (number, part) in bytes.chunks(PAGE as usize).enumerate() {
        user.space().copy_out(AT + SKEW + number as u64 * PAGE, part).unwrap();
    }
}

/// The bytes of a message.
pub fn message(length: u32, seed: u64) -> Vec<u8> {
    (0..u64::from(length)).map(|n| (n.wrapping_mul(31).wrapping_add(seed)) as u8).collect()
}
