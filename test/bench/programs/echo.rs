//! The server of raw calls: answers with the bytes it got, one entry a call.
#![no_std]
#![no_main]

use abi_ring::INLINE_WORDS;
use abi_types::{CapSlot, NEVER, Opcode, Sqe, SqeFlags, Status};
use capos_rt::io::{ok, status_of};
use capos_rt::serve::receive;
use capos_rt::{Env, Error, Ring};

capos_rt::main!(main);

fn main(env: &Env) -> Result<(), Error> {
    let requests = env.cap("requests", schema::endpoint::INTERFACE_ID)?;
    Ok(env.io.with_ring(|ring| echo(ring, requests))?)
}

/// The message that is measured: its size is known here, as it is to any server of a fixed message.
const BYTES: u32 = 64;

fn echo(ring: &mut Ring, requests: CapSlot) -> Result<(), Status> {
    let slot = ring.take_slot().ok_or(Status::Overloaded)?;
    let answer = Sqe {
        opcode: Opcode::Return as u8,
        flags: SqeFlags::THEN_RECV,
        cap: requests.to_bits(),
        buffer: slot,
        ..Sqe::default()
    };
    let mut next = receive(requests);
    loop {
        ring.push(next).map_err(|_| Status::Overloaded)?;
        let completion = loop {
            let _ = ring.enter(1, NEVER);
            if let Some(completion) = ring.pop() {
                break completion;
            }
        };
        let cqe = *completion.cqe();
        ok(status_of(&cqe))?;
        let mut words = [0; INLINE_WORDS];
        if cqe.length == BYTES {
            completion.read_inline(BYTES, &mut words);
            drop(completion);
            ring.write_inline(slot, &words[..BYTES as usize / 8]);
        } else {
            completion.read_inline(cqe.length, &mut words);
            drop(completion);
            ring.write_inline(slot, &words[..(cqe.length as usize / 8).min(INLINE_WORDS)]);
        }
        next = Sqe { length: cqe.length, arg: cqe.token, ..answer };
    }
}
