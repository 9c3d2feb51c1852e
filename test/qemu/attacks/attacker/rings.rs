//! Attacks on the ring: operations that fail, places that are all taken, completions nobody takes.

use abi_types::{CapSlot, NEVER, Opcode, Sqe};
use capos_rt::caller::call;
use capos_rt::ring::NOP;
use core::sync::atomic::AtomicU32;
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use schema::timer::SleepParams;
use schema_wire::Encode;
use zerocopy::IntoBytes;

use crate::{Attacker, HOUR_NS, drain, raw};

/// A full queue of operations, each refused for another reason or done for nobody.
pub fn failures(attacker: &Attacker) -> u64 {
    let word = AtomicU32::new(0);
    let nowhere = CapSlot::new(60, 9);
    let kinds = [
        NOP,
        Sqe { opcode: 0xee, ..NOP },
        call(nowhere, PLAIN, 3, 0),
        Sqe { length: u32::MAX, ..call(attacker.timer, schema::timer::INTERFACE_TAG, 1, 0) },
        Sqe { result_transfers: 3, interface: 7, ..NOP },
        Sqe { opcode: Opcode::Release as u8, cap: nowhere.to_bits(), ..NOP },
        Sqe { opcode: Opcode::Cancel as u8, arg: 77, ..NOP },
        Sqe { opcode: Opcode::Return as u8, arg: u64::MAX, ..NOP },
        Sqe { opcode: Opcode::Recv as u8, cap: attacker.timer.to_bits(), ..NOP },
        capos_rt::park::unpark_sqe(attacker.park, &word, u32::MAX),
        Sqe { opcode: Opcode::Park as u8, cap: attacker.park.to_bits(), arg: 3, ..NOP },
    ];
    attacker.io().with_ring(|ring| {
        for (number, kind) in (0..).zip(kinds.iter().cycle()) {
            if ring.push(Sqe { user_data: raw(number), ..*kind }).is_err() {
                break;
            }
        }
        let _ = ring.enter(0, 0);
        drain(ring)
    })
}

/// Sleeps, calls that nobody receives and a park, as many as there may be; then every one is cancelled,
/// the last first.
pub fn cells(attacker: &Attacker) -> u64 {
    const SLEEPS: u64 = 16;
    const CALLS: u64 = 32;
    let word = AtomicU32::new(0);
    attacker.io().with_ring(|ring| {
        let mut words = [0_u64; 16];
        let length = SleepParams { ns: HOUR_NS }.encode(words.as_mut_bytes()).unwrap_or(0);
        ring.write_inline(0, &words[..length.div_ceil(8)]);
        for number in 0..SLEEPS {
            let sleep = call(attacker.timer, schema::timer::INTERFACE_TAG, 1, length as u32);
            let _ = ring.push(Sqe { user_data: raw(number), buffer: 0, ..sleep });
        }
        for number in SLEEPS..SLEEPS + CALLS {
            let _ =
                ring.push(Sqe { user_data: raw(number), ..call(attacker.to_self, PLAIN, 0, 0) });
        }
        let park = capos_rt::park::park_sqe(attacker.park, &word, 0, NEVER);
        let _ = ring.push(Sqe { user_data: raw(SLEEPS + CALLS), ..park });
        let _ = ring.enter(0, 0);
        for number in (0..=SLEEPS + CALLS).rev() {
            let cancel = Sqe { opcode: Opcode::Cancel as u8, arg: raw(number), ..NOP };
            let _ = ring.push(Sqe { user_data: raw(1000 + number), ..cancel });
        }
        let _ = ring.enter(0, 0);
        drain(ring)
    })
}

/// Completions that are not taken until no credit is left, and entries all the same.
pub fn credits(attacker: &Attacker) -> u64 {
    attacker.io().with_ring(|ring| {
        for number in 0..400 {
            if ring.push(Sqe { user_data: raw(number), ..NOP }).is_err() {
                let _ = ring.enter(u32::MAX, 0);
            }
        }
        for _ in 0..100 {
            let _ = ring.enter(u32::MAX, 1);
        }
        // Each entry does what there is room for.
        let mut count = 0;
        loop {
            match drain(ring) {
                0 => return count,
                taken => count += taken,
            }
            let _ = ring.enter(0, 0);
        }
    })
}
