//! Programs that start programs: what a process asks its spawner, its handles and its account.

use crate::objects::HostObject;
use crate::user::{Done, User};
use crate::world::{Body, Grant, Process};
use abi_types::{CapSlot, Opcode, Sqe, Status, TransferMode};
use core_ledger::Line;
use schema::manifest::ResourceProfile;
use schema::process_handle::{self, KillParams, WaitResults};
use schema::process_handle_capnp::ExitReason;
use schema::process_spawner::{
    self, SpawnGrant, SpawnImageParams, SpawnParams, SpawnResults, methods,
};
use schema::process_spawner_capnp::GrantSource;
use schema_wire::{Encode, List, Message, Method, TransferIndex};
use std::sync::Arc;
use zerocopy::IntoBytes;

/// Where a message to the spawner is in a test's memory.
pub const MESSAGE: u64 = 0x100_0000;

/// What a child may use.
pub const PROFILE: ResourceProfile = ResourceProfile {
    cap_slots: 8,
    threads: 2,
    kernel_stack_pages: 2,
    frames: 100,
    sleep_waiters: 2,
    ring_entries: 8,
    ring_scratch_limit_bytes: 1 << 16,
    in_flight_call_limit: 4,
    endpoint_queue_limit: 4,
    kernel_bytes: 1 << 16,
    registered_buffers: 2,
};

/// A body of a program or thread.
pub fn body(body: impl Fn(User) + Send + Sync + 'static) -> Body {
    Arc::new(body)
}

/// A process that may start others.
pub fn spawner(main: impl Fn(User) + Send + Sync + 'static) -> Process {
    let main = move |user: User| {
        user.space().map(MESSAGE, 1, true);
        main(user);
    };
    let mut process = Process::new("main", main);
    process.profile.cap_slots = 64;
    process.profile.threads = 40;
    process.profile.kernel_stack_pages = 40;
    process.profile.frames = 2_000;
    process.profile.sleep_waiters = 40;
    process.profile.kernel_bytes = 1 << 22;
    process.profile.registered_buffers = 32;
    process.with("processes", Grant::Object(HostObject::ProcessSpawner))
}

/// Starts program `number`, with what `grants` says.
pub fn spawn(
    user: &mut User,
    number: u32,
    grants: &[SpawnGrant<'_>],
) -> Result<CapSlot, Box<Done>> {
    spawn_as(user, number, grants, PROFILE)
}

/// The same with another profile.
pub fn spawn_as(
    user: &mut User,
    number: u32,
    grants: &[SpawnGrant<'_>],
    profile: ResourceProfile,
) -> Result<CapSlot, Box<Done>> {
    let binary = format!("{number}.elf");
    let params = SpawnParams {
        name: "child",
        binary: &binary,
        weight: 64,
        profile,
        grants: List::of(grants),
        arguments: List::EMPTY,
        environment: List::EMPTY,
    };
    ask(user, methods::Spawn::ORDINAL, &params, &[])
}

/// Starts the program in the first `bytes` of a memory object, which is the first of the capabilities that are sent along.
pub fn spawn_image(
    user: &mut User,
    along: &[(CapSlot, TransferMode)],
    bytes: u64,
    profile: ResourceProfile,
) -> Result<CapSlot, Box<Done>> {
    let params = SpawnImageParams {
        name: "image",
        image: (!along.is_empty()).then_some(TransferIndex(0)),
        image_bytes: bytes,
        weight: 64,
        profile,
        grants: List::EMPTY,
        arguments: List::EMPTY,
        environment: List::EMPTY,
    };
    ask(user, methods::SpawnImage::ORDINAL, &params, along)
}

/// Asks the spawner of the process for a child; its handle.
fn ask(
    user: &mut User,
    method: u16,
    params: &impl Encode,
    along: &[(CapSlot, TransferMode)],
) -> Result<CapSlot, Box<Done>> {
    let mut words = vec![0_u64; 256];
    let length = params.encode(words.as_mut_bytes()).unwrap();
    for (place, (slot, mode)) in words[length.div_ceil(8)..].chunks_exact_mut(2).zip(along) {
        place.copy_from_slice(&[slot.to_bits(), u64::from(*mode as u32)]);
    }
    user.space().fill(MESSAGE, words.as_bytes()).unwrap();
    let processes = user.cap("processes");
    let tag = process_spawner::INTERFACE_TAG;
    let call = User::calling_a(tag, processes, method, length as u32);
    let flags = abi_types::SqeFlags::BY_ADDRESS;
    let transfers = along.len() as u16;
    let done = user.call(Sqe { flags, address: MESSAGE, transfers, ..call });
    if done.status() != Status::Ok {
        return Err(Box::new(done));
    }
    // Both methods answer alike.
    let message = Message::new(bytes_of(&done)).unwrap();
    let handle: SpawnResults = message.get().unwrap();
    Ok(CapSlot::new(u32::from(handle.handle_index), handle.handle_generation))
}

/// The bytes that a completion brought.
pub fn bytes_of(done: &Done) -> &[u8] {
    &done.words.as_bytes()[..done.cqe.length as usize]
}

/// Waits for a process; how it ended.
pub fn wait(user: &mut User, handle: CapSlot) -> (i64, ExitReason) {
    let done = user.call(User::calling_of::<process_handle::methods::Wait>(handle));
    assert_eq!(done.status(), Status::Ok);
    let message = Message::new(bytes_of(&done)).unwrap();
    let ended: WaitResults = message.get().unwrap();
    (ended.exit_code, ended.reason)
}

/// Ends a process.
pub fn kill(user: &mut User, handle: CapSlot, code: i64) -> Status {
    let params = KillParams { exit_code: code };
    let sqe = user.typed::<process_handle::methods::Kill>(handle, 0, &params);
    user.call(sqe).status()
}

/// Lets go of a capability.
pub fn release(user: &mut User, slot: CapSlot) -> Status {
    let release = Opcode::Release as u8;
    user.call(Sqe { opcode: release, cap: slot.to_bits(), ..Sqe::default() }).status()
}

/// A capability that a child gets and its spawner keeps.
pub fn copied(name: &str, slot: CapSlot) -> SpawnGrant<'_> {
    SpawnGrant {
        name,
        source: GrantSource::Slot,
        slot_index: slot.index() as u16,
        slot_generation: slot.generation(),
        moved: false,
        interface_id: 0,
    }
}

/// What the caller's process has lent and used, line by line.
pub fn account(user: &User) -> Vec<(u32, u32)> {
    let reading = |line| user.process().ops.ledger.reading(line);
    Line::ALL.map(|line| (reading(line).used, reading(line).lent)).to_vec()
}
