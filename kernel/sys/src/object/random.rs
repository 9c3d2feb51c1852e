//! Entropy: the generator of the CPU that a call is on.

use crate::kernel::{Calling, Kernel};
use kernel_arch::entropy;
use kernel_dispatch::preemption_point;
use schema::entropy::InfoResults;

/// The machine's random bytes, in a call.
pub struct Random<'c, 'r>(pub &'c mut Calling<'r>);

impl kernel_object::entropy::Host for Random<'_, '_> {
    fn fill(&mut self, out: &mut [u8]) {
        entropy::fill(out);
    }

    fn sources(&self) -> InfoResults {
        let gathered = entropy::gathered_bits();
        let bits = |bits: u64| u32::try_from(bits).unwrap_or(u32::MAX);
        InfoResults {
            seed_bits: gathered.map_or(0, |gathered| bits(gathered.seed)),
            generator_bits: gathered.map_or(0, |gathered| bits(gathered.generator)),
            jitter_bits: gathered.map_or(0, |gathered| bits(gathered.jitter)),
            enough: gathered.is_some_and(|gathered| gathered.is_enough()),
        }
    }

    fn pause(&mut self) {
        preemption_point(Kernel);
        let _ = &self.0;
    }
}
