//! Guest suites of the racing lane under load: many runs, beside busy CPUs, while single CPUs of
//! the guest are stopped.
//!
//! The emulator's own races are few: its CPUs are host threads that mostly run side by side. A CPU
//! that stands still for some milliseconds in the middle of anything, while the others go on, is
//! what finds an order nobody thought of. [`pauser`] stops one CPU thread at a time by ptrace,
//! [`burners`] keep the host's CPUs busy, [`campaign`] runs suites through their own runner and
//! counts, [`report`] says what came of it.
//!
//! Decided in ADR 210.

pub mod burners;
pub mod campaign;
pub mod chance;
pub mod options;
pub mod pauser;
pub mod report;
pub mod threads;
