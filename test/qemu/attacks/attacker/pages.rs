//! Attacks by an address space that changes all the time.

use abi_types::{CapSlot, Sqe, SqeFlags};
use capos_rt::caller::call;
use schema::memory_capnp::MemoryAccess;
use schema::timer::methods::Now;
use schema::virtual_memory;
use schema_wire::Method;
use test_bare::raw::Child;

use crate::{Attacker, TIMER, goes_on, slot};

/// Where pages come and go, across the boundary of two tables.
const FIRST: u64 = 0x5000_001c_0000;
/// How many: several steps of each change.
const BYTES: u64 = 128 * 4096;

/// Calls whose results go where the pages are, or are not.
fn call_into(child: &Child) -> i64 {
    let mut at = child.argument;
    while goes_on() {
        at = (at + 8184) % (BYTES - 128);
        let now = Sqe {
            flags: SqeFlags::RESULT_BY_ADDRESS,
            result_address: FIRST + at,
            result_capacity: 128,
            ..call(slot(&TIMER), Now::ORDINAL, 0)
        };
        let _ = child.io.run_plain(now);
    }
    0
}

/// Maps, protects, reserves and unmaps as fast as it can, under the pointers of siblings' calls.
pub fn storm(attacker: &Attacker) -> u64 {
    let memory: CapSlot = attacker.memory;
    let mut rounds = 0;
    attacker.with_siblings(2, call_into, || {
        let mut client = virtual_memory::Client::new(attacker.io().caller(), memory);
        while goes_on() {
            rounds += u64::from(client.map(FIRST, BYTES, MemoryAccess::Write, true).is_ok());
            let _ = client.protect(FIRST + BYTES / 4, BYTES / 2, MemoryAccess::Read);
            let _ = client.unmap(FIRST + BYTES / 2, BYTES / 2);
            let _ = client.reserve(FIRST + BYTES / 2, BYTES / 2, true);
            let _ = client.unmap(FIRST, BYTES);
        }
    });
    rounds
}
