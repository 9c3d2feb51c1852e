//! A process of 256 MiB that ends when it is told to.
#![no_std]
#![no_main]

use abi_types::{Opcode, Sqe};
use capos_rt::{Env, Error, exit};
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicU64;

capos_rt::main!(main);

const WORDS: usize = 256 * 1024 * 1024 / 8;
/// Memory that is there, all of it, from the start; what is in it does not matter.
static MEMORY: MaybeUninit<[AtomicU64; WORDS]> = MaybeUninit::uninit();

fn main(env: &'static Env) -> Result<(), Error> {
    // Not for the compiler to leave out.
    core::hint::black_box(&MEMORY);
    let orders = env.cap("orders", schema::endpoint::INTERFACE_ID)?.to_bits();
    let recv = Sqe { opcode: Opcode::Recv as u8, cap: orders, ..Sqe::default() };
    let _ = env.io.run(recv, &[], &mut [0; 16])?;
    exit(0)
}
