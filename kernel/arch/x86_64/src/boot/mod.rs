//! Entry from the loader, by the Limine boot protocol, and what it handed over.

mod entry;
mod handover;
mod requests;

pub use handover::{
    BootModule, CpuStart, FramebufferInfo, Handover, MemoryKind, MemoryRegion, MissingAnswer,
};
