//! Which processes of the boot manifest run, and which endpoints they serve.

use core_manifest::limits;
use kernel_ops::capability::{FacetOf, ProcessKey};

/// What runs of the manifest.
#[derive(Debug)]
pub struct Entries {
    /// Instances by the number of their process.
    pub(crate) instances: [Option<ProcessKey>; limits::PROCESSES],
    /// Endpoints by their number through all processes.
    pub(crate) endpoints: [Option<FacetOf>; limits::ENDPOINTS],
}

/// In the place of an instance that is being started.
pub(crate) const STARTING: ProcessKey = ProcessKey { slot: u32::MAX, generation: 0 };

impl Entries {
    /// Nothing.
    pub const fn new() -> Self {
        Self { instances: [None; limits::PROCESSES], endpoints: [None; limits::ENDPOINTS] }
    }
}

impl Default for Entries {
    fn default() -> Self {
        Self::new()
    }
}
