//! Instruction counts: from a run's metrics to figures, a table, and what moved.
//!
//! * [`figures`]: what a run measured. [`bars`]: what it is measured against.
//! * [`accepted`]: the checked-in counts, by tool chain. [`compare`]: what differs, in sentences.
//! * [`table`]: for people. [`options`]: what they say.
//!
//! Pure: files and processes are the program's (`main.rs`).

pub mod accepted;
pub mod bars;
pub mod compare;
pub mod figures;
pub mod options;
pub mod table;

pub use accepted::{Accepted, Count};
pub use compare::{Finding, compare};
pub use figures::Figure;
pub use options::Options;
