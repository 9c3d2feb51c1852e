//! Another process: keeps a memory object, maps it, reads, writes and parks in it, makes one of its own, ends.
//!
//! What it is asked for is the number of the method, what it needs words of the message; the answer is words too.
#![no_std]
#![no_main]

use abi_types::{CapSlot, Opcode, Sqe, Status};
use capos_rt::io::status_of;
use capos_rt::{Env, exit};
use memory_peer::{Ask, MADE_AT, MAGIC, access_of};
use schema::{frame_allocator, memory_object, virtual_memory};
use schema_wire::CallError;
use test_wild::at;

capos_rt::main!(main);

/// 0 if a call was answered, or what it was refused with.
fn told<V>(result: Result<V, CallError>) -> u64 {
    match result {
        Ok(_) => 0,
        Err(CallError::Exception(said)) => 1 + said.kind() as u64,
        Err(_) => u64::MAX,
    }
}

struct Peer<'e> {
    env: &'e Env,
    kept: CapSlot,
}

impl Peer<'_> {
    fn named(&self, name: &str) -> CapSlot {
        self.env.caps.named(name).unwrap_or(CapSlot::NONE)
    }

    fn object(&self) -> memory_object::Client<capos_rt::caller::Caller<'_>> {
        memory_object::Client::new(self.env.io.caller(), self.kept)
    }

    /// What it answers; with the object if that is to go along.
    fn serve(&mut self, ask: Ask, words: &[u64; 16]) -> (u64, bool) {
        let [first, second, third, fourth, ..] = *words;
        let answer = match ask {
            Ask::Keep => 0,
            Ask::Map => told(self.object().map(first, true, second, third, access_of(fourth))),
            Ask::Unmap => told(self.object().unmap(first, second)),
            Ask::Read => at::read64(first),
            Ask::Write => {
                at::write64(first, second);
                0
            }
            Ask::Drop => u64::from(self.env.io.release(self.kept).is_err()),
            Ask::Make => {
                let frames = self.named("frames");
                let made =
                    frame_allocator::Client::new(self.env.io.caller(), frames).create_object(first);
                if let Ok(made) = &made {
                    self.kept = CapSlot::new(made.object_index.into(), made.object_generation);
                    let access = access_of(1);
                    let mapped = self.object().map(MADE_AT, true, 0, first, access);
                    if mapped.is_ok() {
                        at::write64(MADE_AT, MAGIC);
                    }
                    return (told(mapped), true);
                }
                told(made)
            }
            Ask::UnmapOwn => {
                let memory = self.named("memory");
                let mut own = virtual_memory::Client::new(self.env.io.caller(), memory);
                told(own.unmap(first, second))
            }
            Ask::Play => 0,
            Ask::Exit => exit(0),
        };
        (answer, false)
    }

    /// Answers every odd number in a word by the next, parked in between.
    fn play(&self, words: &[u64; 16]) -> bool {
        let [address, rounds, ..] = *words;
        let park = self.named("park");
        memory_peer::play(&self.env.io, park, address, rounds, 1)
    }
}

fn main(env: &Env) -> i64 {
    let mut peer = Peer { env, kept: CapSlot::NONE };
    let requests = peer.named("requests");
    loop {
        let mut words = [0; 16];
        let receive = Sqe {
            opcode: Opcode::Recv as u8,
            cap: requests.to_bits(),
            result_transfers: 1,
            ..Sqe::default()
        };
        let Ok(cqe) = env.io.run(receive, &[], &mut words) else { return 1 };
        if status_of(&cqe) != Status::Ok {
            return 2;
        }
        let Some(ask) = Ask::of(cqe.method) else { return 3 };
        if cqe.transfers() == 1 {
            let from = cqe.length.div_ceil(8) as usize;
            peer.kept = CapSlot::from_bits(words[from]);
        }
        let (said, goes_along) = peer.serve(ask, &words);
        let answer = Sqe {
            opcode: Opcode::Return as u8,
            arg: cqe.token,
            length: 8,
            transfers: u16::from(goes_along),
            ..Sqe::default()
        };
        let payload = [said, peer.kept.to_bits(), 0];
        let answered = env.io.run(answer, &payload, &mut [0; 16]).map(|cqe| status_of(&cqe));
        if answered != Ok(Status::Ok) {
            return 4;
        }
        if ask == Ask::Play && !peer.play(&words) {
            return 5;
        }
    }
}
