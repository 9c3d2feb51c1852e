//! What is waited for after a request.

use crate::{CpuSet, Shootdown};

/// One posted request. Its holder keeps what was taken away until it is finished; one that
/// is dropped keeps its place among the open requests for good, rather than end too early.
#[derive(Debug)]
#[must_use = "what was taken away may be reused only when the token is finished"]
pub struct Token {
    generation: u64,
    cpus: CpuSet,
}

impl Token {
    pub(crate) const fn new(generation: u64, cpus: CpuSet) -> Self {
        Self { generation, cpus }
    }

    /// The CPUs it waits for.
    pub const fn cpus(&self) -> CpuSet {
        self.cpus
    }

    /// Whether all of them have flushed.
    pub fn is_done<const CPUS: usize>(&self, shootdown: &Shootdown<CPUS>) -> bool {
        shootdown.is_done(self.generation, self.cpus)
    }

    /// Ends the request if all of them have flushed; else the token comes back. Called without
    /// locks: a CPU that waits for one would not answer.
    pub fn finish<const CPUS: usize>(self, shootdown: &Shootdown<CPUS>) -> Result<(), Self> {
        if !self.is_done(shootdown) {
            return Err(self);
        }
        shootdown.end();
        Ok(())
    }
}
