//! SQEs that are almost right, or none at all.

use super::is_reckless;
use abi_types::place::{RING_ROOM, RING_VADDR, STACK_TOP};
use abi_types::{CapSlot, InterfaceTag, Opcode, Sqe};
use capos_rt::Env;
use core::sync::atomic::AtomicU64;
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use test_ring::Random;

/// What SQEs with a good address point to. Whatever the kernel writes at one of them, up to the limit of
/// a call, stays in here.
static BUFFER: Aligned = Aligned([const { AtomicU64::new(0) }; 20 * 1024]);

/// From the beginning of a page on: some of it is registered.
#[repr(align(4096))]
struct Aligned([AtomicU64; 20 * 1024]);

/// Registers parts of the memory that SQEs point to, the second for reading alone.
pub fn register(env: &Env) {
    let Ok(memory) = env.cap("memory", schema::virtual_memory::INTERFACE_ID) else { return };
    let at = BUFFER.0.as_ptr().expose_provenance() as u64;
    let mut client = schema::virtual_memory::Client::new(env.io.caller(), memory);
    for (page, write) in [(0, true), (4, false), (8, true)] {
        // A vandal without a buffer names buffers all the same.
        let _made = client.register(at + page * 4096, 4 * 4096, write);
    }
}
/// Where in it PARKs wait for one another.
const PARKED_AT: u64 = 96 * 1024;
/// Where in it other addresses begin, at most.
const FIRST_BYTES: u64 = 8192;

/// The words of an SQE that decide what is done to what: operation, target, payload, results.
pub const OPERATION: usize = 0;
pub const CAP: usize = 2;
pub const ADDRESS: usize = 4;
pub const RESULT_ADDRESS: usize = 5;

/// What it was granted, and what that is called as.
const NAMES: [(&str, InterfaceTag); 8] = [
    ("echo", PLAIN),
    ("own", schema::endpoint::INTERFACE_TAG),
    ("self", PLAIN),
    ("timer", schema::timer::INTERFACE_TAG),
    ("info", schema::system_info::INTERFACE_TAG),
    ("park", schema::park_space::INTERFACE_TAG),
    ("memory", schema::virtual_memory::INTERFACE_TAG),
    ("control", schema::thread_control::INTERFACE_TAG),
];

/// Capabilities that SQEs name.
pub struct Caps {
    slots: [CapSlot; NAMES.len()],
    park: CapSlot,
    count: usize,
}

impl Caps {
    pub fn of(env: &Env) -> Self {
        let named = |name| env.caps.named(name).unwrap_or(CapSlot::NONE);
        // The thread's own end, and that of its memory, are for who has nothing to lose.
        let count = if is_reckless() { NAMES.len() } else { NAMES.len() - 2 };
        Self { slots: NAMES.map(|(name, _)| named(name)), park: named("park"), count }
    }

    /// A capability that is there, mostly.
    pub fn any(&self, random: &mut Random) -> u64 {
        if random.one_in(12) {
            random.bits()
        } else {
            random.of(&self.slots[..self.count]).to_bits()
        }
    }

    /// The tag of the capability in a slot, mostly; else another's, none or any.
    fn interface(&self, cap: u64, random: &mut Random) -> u32 {
        let is_it = |slot: &CapSlot| slot.to_bits() == cap;
        match self.slots.iter().position(is_it).and_then(|at| NAMES.get(at)) {
            Some((_, tag)) if !random.one_in(5) => tag.to_bits(),
            _ => {
                let (_, other) = random.of(&NAMES);
                let any = random.bits() as u32;
                random.of(&[0, other.to_bits(), any])
            }
        }
    }
}

/// The first word of an SQE: any operation but, from a careful vandal, a RELEASE.
pub fn operation(random: &mut Random) -> u64 {
    let bits = random.bits();
    // Half of them without flags and all that, so that they are operations.
    let bits = if random.one_in(2) { bits } else { bits & 0xf };
    let is_release = bits as u8 == Opcode::Release as u8;
    if is_release && !is_reckless() { bits ^ 1 } else { bits }
}

/// Where a message comes from: the buffer, the ring, nothing, the kernel.
pub fn source(random: &mut Random) -> u64 {
    let buffer = BUFFER.0.as_ptr().expose_provenance() as u64;
    match random.below(8) {
        0..4 => buffer + random.below(FIRST_BYTES),
        4 => RING_VADDR + random.below(1 << 16),
        5 => random.bits(),
        6 => 0xffff_8000_0000_0000 | random.bits() >> 20,
        _ => buffer + PARKED_AT,
    }
}

/// Where one goes to: a careful vandal's ring is none of these, for results that fall on an SQE would
/// make an address of what they say.
pub fn destination(random: &mut Random) -> u64 {
    if !is_reckless() {
        let to = source(random);
        let is_ring = (RING_VADDR..RING_VADDR + RING_ROOM).contains(&to);
        return if is_ring { to ^ 1 << 63 } else { to };
    }
    match random.below(16) {
        0 => anywhere(random),
        _ => source(random),
    }
}

/// Where in a buffer something is, mostly.
fn offset(random: &mut Random) -> u64 {
    match random.below(6) {
        0 => random.bits(),
        1 => 4 * 4096 - random.below(200),
        _ => random.below(2 * 4096),
    }
}

/// An address of this process's own memory: its statics, its first stack, its rings.
pub fn anywhere(random: &mut Random) -> u64 {
    let statics = BUFFER.0.as_ptr().expose_provenance() as u64;
    match random.below(4) {
        0 => statics.wrapping_add(random.below(1 << 19)).wrapping_sub(1 << 18),
        1 => STACK_TOP - 1 - random.below(4096),
        _ => RING_VADDR + random.below(5 << 15),
    }
}

/// An SQE that is almost right, or no SQE at all.
pub fn any_sqe(random: &mut Random, caps: &Caps) -> [u64; 8] {
    if random.one_in(6) {
        let mut words = core::array::from_fn(|_| random.bits());
        words[OPERATION] = operation(random);
        return words;
    }
    let opcode = random.of(&[
        Opcode::Nop,
        Opcode::Call,
        Opcode::Call,
        Opcode::Call,
        Opcode::Recv,
        Opcode::Return,
        Opcode::Release,
        Opcode::Cancel,
        Opcode::Park,
        Opcode::Unpark,
        Opcode::Yield,
        Opcode::Finish,
    ]);
    let mut made = Sqe {
        opcode: opcode as u8,
        flags: if random.one_in(2) { 0 } else { random.bits() as u8 & 0b11_1111 },
        method: random.below(7) as u16,
        length: random.of(&[0, 8, 16, 100, 128, 129, 4096, 70_000]),
        // Few names, so that CANCEL finds something.
        user_data: random.below(16),
        cap: caps.any(random),
        arg: random.below(16),
        ..Sqe::default()
    };
    match opcode {
        Opcode::Call | Opcode::Recv | Opcode::Return => {
            made.buffer = random.below(70) as u16;
            if opcode == Opcode::Call || random.one_in(8) {
                made.interface = caps.interface(made.cap, random);
            }
            let odd = random.bits();
            made.arg = random.of(&[0, 0, 0, 1 << 32, 2 << 32, odd]);
            // Lists that are mostly garbage, and room for whatever comes.
            if random.one_in(4) {
                made.transfers = random.below(10) as u16;
                made.result_transfers = random.below(10) as u16;
            }
            if made.flags & 1 << 2 != 0 {
                (made.address, made.buffer) = (source(random), 0);
            }
            if made.flags & 1 << 3 != 0 {
                (made.address, made.buffer) = (offset(random), random.below(5) as u16);
            }
            if made.flags & 1 << 5 != 0 {
                (made.result_address, made.result_buffer) =
                    (offset(random), random.below(5) as u16);
                made.result_capacity = random.of(&[0, 64, 4096, 1 << 20]);
            } else if made.flags & 1 << 4 != 0 {
                made.result_address = destination(random);
                made.result_capacity = random.of(&[0, 64, 4096, 1 << 20]);
            }
        }
        Opcode::Park | Opcode::Unpark => {
            (made.flags, made.method, made.length) = (0, 0, 0);
            made.cap = caps.park.to_bits();
            made.arg = source(random) & !3;
            made.address = random.below(2);
            made.result_address = if opcode == Opcode::Park { random.below(100_000) } else { 0 };
        }
        // A careful vandal keeps its capabilities, or there would soon be nothing left to call. What it
        // writes is never a RELEASE, whatever the rest of the SQE becomes.
        Opcode::Release if !is_reckless() => made.opcode = Opcode::Finish as u8,
        _ => {}
    }
    zerocopy::transmute!(made)
}
