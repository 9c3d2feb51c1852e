//! The one place that knows how capOS starts QEMU.
//!
//! The test runner and the interactive run targets describe a [`Machine`] and get its command
//! line. Everything is software emulation: no accelerator other than TCG is ever asked for,
//! because a KVM device node may exist and not work.
//!
//! Pure: no file is opened and no process started here.
//!
//! Decided in ADR 32.

mod machine;
mod shell;

pub use machine::{Display, Gdb, Lane, Machine, Media, Refused, Serial};
pub use shell::quoted;

/// The emulator's name in the pinned tool chain.
pub const QEMU: &str = "qemu-system-x86_64";

/// UEFI firmware of the pinned tool chain, code and variables in one file.
///
/// Given by `-bios` it starts half a second faster than from flash, and nothing in a test
/// outlives its boot, so no variable store is kept.
pub const FIRMWARE: &str = "/usr/share/ovmf/OVMF.fd";
