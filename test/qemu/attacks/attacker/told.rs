//! Attacks by reading: all that the directory tells, page by page without end, and random bytes.

use abi_types::CapSlot;
use schema::{entropy, process_directory};

use crate::Attacker;

/// Every process, and of each its threads, capabilities and account; then as many random bytes as a call gives.
pub fn readers(attacker: &Attacker) -> u64 {
    let named = |name| attacker.env.caps.named(name).unwrap_or(CapSlot::NONE);
    let io = attacker.io();
    let mut directory = process_directory::Client::new(io.large(), named("directory"));
    let (mut from, mut looks) = (0, 0);
    loop {
        let mut keys = [(0, 0); 16];
        let (next, has_more) = {
            let Ok(message) = directory.processes(from) else { return 0 };
            let Ok(page) = message.get() else { return 0 };
            for (place, entry) in keys.iter_mut().zip(page.processes.iter().flatten()) {
                *place = (entry.pid, entry.generation);
            }
            (page.next, page.more)
        };
        for (pid, generation) in keys.into_iter().filter(|(_, generation)| *generation != 0) {
            let _ = directory.threads(pid, generation, 0).map(|_| ());
            let _ = directory.capabilities(pid, generation, 0).map(|_| ());
            let _ = directory.ledger(pid, generation).map(|_| ());
            looks += 1;
        }
        if !has_more {
            break;
        }
        from = next;
    }
    let mut random = entropy::Client::new(io.large(), named("entropy"));
    looks + u64::from(random.fill(960).is_ok())
}
