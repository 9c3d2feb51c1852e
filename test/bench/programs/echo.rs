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

/// Words of the message that is measured: its size is known here, as it is to any server of a
/// fixed message.
const WORDS: usize = 8;

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
        if cqe.length as usize == WORDS * 8 {
            let words: [u64; WORDS] = core::array::from_fn(|word| completion.inline_word(word));
            drop(completion);
            ring.write_inline(slot, &words);
        } else {
            let mut words = [0; INLINE_WORDS];
            completion.read_inline(cqe.length, &mut words);
            drop(completion);
            ring.write_inline(slot, words.get(..cqe.length as usize / 8).unwrap_or_default());
        }
        next = Sqe { length: cqe.length, arg: cqe.token, ..answer };
    }
}
