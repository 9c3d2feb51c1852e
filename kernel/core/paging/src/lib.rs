//! Page tables as plain data: what an entry says, how ranges are mapped, what the kernel maps.
//!
//! Nothing here touches memory: tables are read and written through [`TableStore`], so the
//! same code runs in the kernel over the direct map and on the host over a plain map. A mapping
//! that is both writable and executable cannot be expressed ([`Access`]).
//!
//! * [`entry`]: rights and their encoding in a page-table entry.
//! * [`tree`]: map, unmap, protect and translate over four levels.
//! * [`teardown`]: a tree that is no longer used is freed, step by step.
//! * [`plan`]: which physical ranges the direct map holds, and with which rights.
//! * [`layout`]: where the kernel's windows lie in the upper half.
#![no_std]

pub mod entry;
pub mod layout;
pub mod plan;
pub mod teardown;
pub mod tree;

pub use entry::{Access, Caching, Entry, Level, PageSize, Rights};
pub use tree::{MapError, PageSizes, Request, TableStore, Translation, UnmapError};
