//! Entropy: random bytes out of the kernel's generators.
//!
//! Decided in ADR 341.

use crate::refuse;
use schema::entropy::{FillParams, FillResults, InfoResults, Server};
use schema_wire::{Answer, ExceptionKind};

/// Bytes one `fill` gives at most.
pub const FILL_BYTES: usize = 1024;
/// Bytes that are drawn between two preemption points: each 64 of them are a hash, and so is the next key.
const BYTES_PER_PAUSE: usize = 128;

/// What it needs of the kernel.
pub trait Host {
    /// Fills `out` with bytes that are given once.
    fn fill(&mut self, out: &mut [u8]);
    /// What they rest on.
    fn sources(&self) -> InfoResults;
    /// Lets others run.
    fn pause(&mut self);
}

/// The server of one call, with room for what is drawn.
#[derive(Debug)]
pub struct Entropy<'h, H> {
    host: &'h mut H,
    buffer: [u8; FILL_BYTES],
}

impl<'h, H: Host> Entropy<'h, H> {
    /// A server over `host`.
    pub fn new(host: &'h mut H) -> Self {
        Self { host, buffer: [0; FILL_BYTES] }
    }
}

impl<H: Host> Server for Entropy<'_, H> {
    fn fill(&mut self, params: FillParams, room: usize) -> Answer<FillResults<'_>> {
        let count = params.count as usize;
        let Some(bytes) = self.buffer.get_mut(..count).filter(|bytes| !bytes.is_empty()) else {
            return Err(refuse(ExceptionKind::InvalidArgument, "count has to be 1 to 1024"));
        };
        // Nobody's bytes are thrown away by half: who wants as many has to take them.
        if count.next_multiple_of(8) > room {
            return Err(refuse(
                ExceptionKind::InvalidArgument,
                "the results have no room for count bytes: take results of count + 32 bytes",
            ));
        }
        for part in bytes.chunks_mut(BYTES_PER_PAUSE) {
            self.host.fill(part);
            self.host.pause();
        }
        Ok(FillResults { bytes })
    }

    fn info(&mut self) -> Answer<InfoResults> {
        Ok(self.host.sources())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schema_wire::NoResult;

    /// A counter that never gives a byte twice in 256, and remembers how much was asked of it at once.
    #[derive(Default)]
    struct Counter {
        next: u8,
        longest: usize,
        drawn: usize,
        pauses: usize,
    }

    const SOURCES: InfoResults =
        InfoResults { seed_bits: 0, generator_bits: 512, jitter_bits: 7, enough: true };

    impl Host for Counter {
        fn fill(&mut self, out: &mut [u8]) {
            self.longest = self.longest.max(out.len());
            self.drawn += out.len();
            for byte in out {
                *byte = self.next;
                self.next = self.next.wrapping_add(1);
            }
        }
        fn sources(&self) -> InfoResults {
            SOURCES
        }
        fn pause(&mut self) {
            self.pauses += 1;
        }
    }

    #[test]
    fn as_many_bytes_as_asked_for_in_bounded_pieces() {
        for count in [1_u32, 7, 64, 128, 129, 1023, 1024] {
            let mut counter = Counter::default();
            let mut server = Entropy::new(&mut counter);
            let results = server.fill(FillParams { count }, 2048).unwrap();
            assert!(results.bytes.iter().copied().eq((0..count).map(|number| number as u8)));
            assert!(counter.longest <= BYTES_PER_PAUSE);
            assert_eq!(counter.pauses, (count as usize).div_ceil(BYTES_PER_PAUSE));
        }
    }

    #[test]
    fn what_cannot_be_given_whole_draws_nothing() {
        for (count, room) in [(0, 2048), (1025, 2048), (u32::MAX, 2048), (9, 15), (1024, 1023)] {
            let mut counter = Counter::default();
            let mut server = Entropy::new(&mut counter);
            let Err(NoResult::Exception(said)) = server.fill(FillParams { count }, room) else {
                panic!("{count} bytes in {room}");
            };
            assert_eq!(said.kind(), ExceptionKind::InvalidArgument);
            assert_eq!(counter.drawn, 0);
        }
    }

    #[test]
    fn two_calls_give_no_byte_twice_and_info_is_the_hosts() {
        let mut counter = Counter::default();
        let first =
            Entropy::new(&mut counter).fill(FillParams { count: 100 }, 2048).map(|r| r.bytes[99]);
        let second =
            Entropy::new(&mut counter).fill(FillParams { count: 100 }, 2048).map(|r| r.bytes[0]);
        assert_eq!((first, second), (Ok(99), Ok(100)));
        assert_eq!(Entropy::new(&mut counter).info(), Ok(SOURCES));
    }
}
