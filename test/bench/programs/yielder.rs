//! The other process of a yield: on request it yields so many times.
//!
//! A call carries one word, how often to yield; the answer is one word, how often it has yielded
//! before. It is answered first, then the yields follow, so that caller and server yield to each
//! other; at all other times this process waits and disturbs nothing.
#![no_std]
#![no_main]

use abi_types::{CapSlot, Cqe, NEVER, Opcode, Sqe, Status};
use capos_rt::io::{ok, status_of};
use capos_rt::serve::receive;
use capos_rt::{Env, Error, Ring};

capos_rt::main!(main);

fn main(env: &Env) -> Result<(), Error> {
    let requests = env.cap("requests", schema::endpoint::INTERFACE_ID)?;
    Ok(env.io.with_ring(|ring| serve(ring, requests))?)
}

fn serve(ring: &mut Ring, requests: CapSlot) -> Result<(), Status> {
    let slot = ring.take_slot().ok_or(Status::Overloaded)?;
    let mut done = 0;
    loop {
        let (call, times) = run(ring, receive(requests))?;
        ring.write_inline(slot, &[done]);
        let answer = Sqe {
            opcode: Opcode::Return as u8,
            length: 8,
            arg: call.token,
            buffer: slot,
            ..Sqe::default()
        };
        run(ring, answer)?;
        for _ in 0..times {
            run(ring, Sqe { opcode: Opcode::Yield as u8, ..Sqe::default() })?;
        }
        done += times;
    }
}

/// Runs one operation; its completion and the first word of its payload.
#[inline]
fn run(ring: &mut Ring, sqe: Sqe) -> Result<(Cqe, u64), Status> {
    ring.push(sqe).map_err(|_| Status::Overloaded)?;
    loop {
        let _ = ring.enter(1, NEVER);
        if let Some(completion) = ring.pop() {
            let word = completion.inline_word(0);
            let cqe = completion.take();
            return ok(status_of(&cqe)).map(|()| (cqe, word));
        }
    }
}
