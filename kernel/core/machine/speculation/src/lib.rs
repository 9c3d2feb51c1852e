//! Speculation: what a CPU says about itself, and what the kernel therefore turns on or refuses.
//!
//! * [`Words`]: the CPUID and MSR words that matter, as read or as planted by a test.
//! * [`Facts`]: what they mean.
//! * [`decide`]: the [`Plan`] for such a CPU, or why the kernel does not run on it.
//!
//! What holds on every CPU is not decided here: indices that a program chooses are masked, and user registers
//! are cleared on the way in.
//!
//! Decided in ADR 260.
#![no_std]

mod facts;
mod plan;
mod words;

pub use facts::{Facts, Host, Vendor};
pub use plan::{Branches, Meltdown, Mitigations, Plan, Refused, decide};
pub use words::{BadWords, Words};

/// IA32_SPEC_CTRL: indirect branches are restricted.
pub const SPEC_CTRL_IBRS: u64 = 1 << 0;
/// IA32_SPEC_CTRL: indirect branches are not steered by the sibling thread.
pub const SPEC_CTRL_STIBP: u64 = 1 << 1;
