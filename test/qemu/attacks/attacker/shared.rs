//! Attacks by memory objects: large ones, many, mapped over and over, released before they are unmapped.

use abi_types::{CapSlot, Opcode, Sqe, TransferMode};
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use schema::memory_capnp::MemoryAccess;
use schema::{frame_allocator, memory_object, virtual_memory};

use crate::Attacker;

const PAGE: u64 = 4096;
/// Far from everything else, each object in a table of its own.
const FAR: u64 = 0x5000_0000_0000;
const APART: u64 = 1 << 30;
/// More than the profile's slots are left for.
const MOST: usize = 40;

fn create(attacker: &Attacker, pages: u64) -> Option<CapSlot> {
    let mut frames = frame_allocator::Client::new(attacker.io().caller(), attacker.frames);
    let made = frames.create_object(pages * PAGE).ok()?;
    Some(CapSlot::new(made.object_index.into(), made.object_generation))
}

/// PARK and UNPARK at a word, whatever is there.
fn at_word(attacker: &Attacker, word: u64) {
    let cap = attacker.park.to_bits();
    let park = Sqe { opcode: Opcode::Park as u8, cap, arg: word, address: 1, ..Sqe::default() };
    let unpark = Sqe { opcode: Opcode::Unpark as u8, cap, arg: word, address: 9, ..Sqe::default() };
    let _ = attacker.io().run_plain(park);
    let _ = attacker.io().run_plain(unpark);
}

/// Sends an object to a server that takes none.
fn send(attacker: &Attacker, object: CapSlot) {
    let call = Sqe {
        opcode: Opcode::Call as u8,
        cap: attacker.echo.to_bits(),
        interface: PLAIN.to_bits(),
        length: 8,
        transfers: 1,
        ..Sqe::default()
    };
    let payload = [7, object.to_bits(), u64::from(TransferMode::Copy as u32)];
    let _ = attacker.io().run(call, &payload, &mut [0; 16]);
}

/// Objects until slots or frames are used up, the first as large as the profile allows for it. Each is mapped twice,
/// parked at, restricted, sent where it is refused, and released before it is unmapped.
pub fn objects(attacker: &Attacker) -> u64 {
    let mut made = 0;
    let mut slots = [CapSlot::NONE; MOST];
    for (number, place) in (0_u64..).zip(&mut slots) {
        let pages = if number == 0 { 2000 } else { 1 + number % 3 };
        let Some(object) = create(attacker, pages) else { break };
        *place = object;
        made += 1;
        let at = FAR + number * APART;
        let mut client = memory_object::Client::new(attacker.io().caller(), object);
        let _ = client.map(at, true, 0, pages * PAGE, MemoryAccess::Write);
        let mut client = memory_object::Client::new(attacker.io().caller(), object);
        let _ = client.map(at + APART / 2, true, 0, PAGE, MemoryAccess::Read);
        for word in [at, at + 2, at + pages * PAGE - 4, at + pages * PAGE] {
            at_word(attacker, word);
        }
        send(attacker, object);
        let mut client = memory_object::Client::new(attacker.io().caller(), object);
        if let Ok(facet) = client.restrict(false, false) {
            let facet = CapSlot::new(facet.facet_index.into(), facet.facet_generation);
            let _ = attacker.io().release(facet);
        }
    }
    for (number, object) in (0_u64..).zip(&slots).take(made) {
        let _ = attacker.io().release(*object);
        let pages = if number == 0 { 2000 } else { 1 + number % 3 };
        let at = FAR + number * APART;
        for (address, bytes) in [(at, pages * PAGE), (at + APART / 2, PAGE)] {
            let mut own = virtual_memory::Client::new(attacker.io().caller(), attacker.memory);
            let _ = own.unmap(address, bytes);
        }
    }
    made as u64
}
