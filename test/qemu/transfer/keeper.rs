//! A process that takes capabilities: keeps them, uses them, gives them back, ends with them.
#![no_std]
#![no_main]

use abi_types::{CapSlot, NEVER, Sqe, Status};
use capos_rt::{Env, exit};
use test_ring::{Got, Raw, borrow, sqe};
use transfer_protocol::{CLOCKS, DROP, EXIT, GIVE, KEEP};

capos_rt::main!(main);

/// More than its table has.
const MOST: usize = 16;

/// What it keeps.
struct Kept {
    slots: [CapSlot; MOST],
    count: usize,
}

impl Kept {
    fn take(&mut self, got: &Got) {
        let from = got.cqe.length.div_ceil(8) as usize;
        for number in 0..usize::from(got.cqe.transfers()) {
            self.slots[self.count] = CapSlot::from_bits(got.words[from + 2 * number]);
            self.count += 1;
        }
    }
}

fn wait(ring: &mut Raw<'_>, sqe: Sqe) -> Got {
    ring.push(sqe);
    loop {
        let _ = ring.enter(1, NEVER);
        if let Some(got) = ring.pop() {
            return got;
        }
    }
}

fn main(env: &Env) -> i64 {
    let requests = env.caps.named("requests").unwrap_or(CapSlot::NONE);
    let log = borrow(&env.io, |ring| {
        let mut kept = Kept { slots: [CapSlot::NONE; MOST], count: 0 };
        loop {
            let got = wait(ring, Sqe { result_transfers: 8, ..sqe::recv(requests) });
            if got.status() != Some(Status::Ok) {
                return ring.fail(format_args!("{:?}", got.status()));
            }
            let mut answer = sqe::answer(got.cqe.token, 0, 8);
            let mut said = [0; 3];
            match got.cqe.method {
                KEEP => {
                    kept.take(&got);
                    said[0] = kept.count as u64;
                }
                DROP => {
                    for slot in &kept.slots[..kept.count] {
                        said[0] +=
                            u64::from(wait(ring, sqe::release(*slot)).status() == Some(Status::Ok));
                    }
                    kept.count = 0;
                }
                CLOCKS => {
                    for slot in &kept.slots[..kept.count] {
                        let now = wait(ring, sqe::call_timer(*slot, 0, 1, 0));
                        said[0] += u64::from(now.status() == Some(Status::Ok));
                    }
                }
                GIVE => {
                    kept.count -= 1;
                    said = [0, kept.slots[kept.count].to_bits(), 1];
                    answer.transfers = 1;
                }
                EXIT => exit(0),
                odd => ring.fail(format_args!("method {odd}")),
            }
            ring.put(0, &said);
            let answered = wait(ring, answer);
            if answered.status() == Some(Status::TransferRefused) {
                kept.count += 1;
                wait(ring, sqe::answer(got.cqe.token, 0, 0));
            } else if answered.status() != Some(Status::Ok) {
                ring.fail(format_args!("an answer: {:?}", answered.status()));
            }
        }
    });
    log.failures() as i64
}
