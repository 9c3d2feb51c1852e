//! The boot itself, in two steps: [`prepare`] with the firmware's help, [`finish`] without.

mod finish;
mod prepare;

pub use finish::{EfiMemoryMap, Facts, Handover, Performance, Screen, VideoMode, finish};
pub use prepare::{MAX_FILES, Prepared, prepare};

/// What the bootloader info response says.
pub const NAME: &str = "capOS loader";

/// Version of the loader.
pub const VERSION: &str = "0.1.0";
