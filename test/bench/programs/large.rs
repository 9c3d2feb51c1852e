//! The server of calls with a page: answers with the bytes it got, from where they came to, one entry a call. Its first
//! argument says whether that is a registered buffer.
#![no_std]
#![no_main]

use abi_types::{CapSlot, NEVER, Opcode, Sqe, SqeFlags, Status};
use capos_rt::io::{ok, status_of};
use capos_rt::memory::{Memory, PAGE_BYTES};
use capos_rt::serve::receive;
use capos_rt::{Env, Error, Ring};

capos_rt::main!(main);

fn main(env: &Env) -> Result<(), Error> {
    let requests = env.cap("requests", schema::endpoint::INTERFACE_ID)?;
    let memory = Memory::of(&env.caps)?;
    let pages = memory.map(&env.io, PAGE_BYTES)?;
    let result_capacity = PAGE_BYTES as u32;
    if env.arguments().next() != Some("registered") {
        let (address, result_address) = (pages.address(), pages.address());
        let flags = SqeFlags::RESULT_BY_ADDRESS;
        let next = Sqe { flags, result_address, result_capacity, ..receive(requests) };
        let answer = Sqe { flags: flags | SqeFlags::BY_ADDRESS, address, ..next };
        return Ok(env.io.with_ring(|ring| echo(ring, requests, next, answer))?);
    }
    let buffer = memory.register(&env.io, pages).map_err(|(_, error)| error)?;
    let flags = SqeFlags::RESULT_REGISTERED;
    let result_buffer = buffer.number();
    let next = Sqe { flags, result_buffer, result_capacity, ..receive(requests) };
    let answer = Sqe { flags: flags | SqeFlags::REGISTERED, buffer: result_buffer, ..next };
    Ok(env.io.with_ring(|ring| echo(ring, requests, next, answer))?)
}

fn echo(ring: &mut Ring, requests: CapSlot, first: Sqe, answer: Sqe) -> Result<(), Status> {
    let flags = answer.flags | SqeFlags::THEN_RECV;
    let (opcode, cap) = (Opcode::Return as u8, requests.to_bits());
    let mut next = first;
    loop {
        ring.push(next).map_err(|_| Status::Overloaded)?;
        let completion = loop {
            let _ = ring.enter(1, NEVER);
            if let Some(completion) = ring.pop() {
                break completion;
            }
        };
        let cqe = completion.take();
        ok(status_of(&cqe))?;
        next = Sqe { opcode, flags, cap, length: cqe.length, arg: cqe.token, ..answer };
    }
}
