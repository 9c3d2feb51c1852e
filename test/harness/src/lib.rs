//! The host's half of a guest test: start QEMU, gather evidence, judge, tell.
//!
//! A verdict needs three witnesses that agree: how QEMU ended, the records on the second
//! serial port, and the counts within them ([`judge`]). Console text is for people and never
//! part of a verdict. Pure parts: [`transcript`] (bytes to events), [`judge`] (evidence to
//! verdict), [`junit`] and [`tell`] (verdict to text). [`machine`] starts the process,
//! [`options`] reads the description of a run. Of a guest that does not end [`dump`] keeps where its
//! CPUs are, through the emulator's [`monitor`].

pub mod dump;
pub mod judge;
pub mod junit;
pub mod ledger;
pub mod machine;
pub mod monitor;
pub mod names;
pub mod options;
pub mod tell;
pub mod transcript;
