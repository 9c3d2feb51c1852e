//! Line coverage of crates: runs programs whose crates count what they execute, and says which
//! lines nobody reached.
//!
//! [`options`] is what to run and what to measure, [`measure`] runs it and has LLVM's tools read the
//! counters, [`lines`] (pure) turns their answer and the sources into a verdict.
//!
//! Decided in ADR 212.

pub mod lines;
pub mod measure;
pub mod options;
