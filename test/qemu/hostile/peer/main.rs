//! The healthy peer: answers with the bytes it got, whoever calls, and lets no caller end it.
#![no_std]
#![no_main]

use abi_types::{CapSlot, NEVER, Status};
use capos_rt::Env;
use test_ring::{borrow, sqe};

capos_rt::main!(main);

fn main(env: &Env) -> i64 {
    let requests = env.caps.named("requests").unwrap_or(CapSlot::NONE);
    let log = borrow(&env.io, |ring| {
        let mut next = sqe::recv(requests);
        let mut token = 0;
        loop {
            ring.push(next);
            let _ = ring.enter(1, NEVER);
            let got = loop {
                match ring.pop() {
                    Some(got) => break got,
                    None => ring.enter(1, NEVER),
                };
            };
            match got.status() {
                Some(Status::Ok) => {
                    token = got.cqe.token;
                    ring.put(0, &got.words);
                    next = sqe::then_recv(sqe::answer(token, 0, got.cqe.length), requests);
                }
                // The caller made no room for what it sent, and gets nothing.
                Some(Status::ResultTooLarge) => {
                    next = sqe::then_recv(sqe::answer(token, 0, 0), requests);
                }
                odd => return ring.fail(format_args!("{odd:?}")),
            }
        }
    });
    log.failures() as i64
}
