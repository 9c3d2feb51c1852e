//! The executables of user programs: static ELF64 files for x86-64, checked completely.
//!
//! [`Image::parse`] refuses everything that is not a whole, consistent, statically linked
//! executable within user memory, each with its own [`Error`]; what it accepted can be mapped and
//! copied without another look. A file is never repaired and nothing of it is guessed.
//!
//! * [`image`]: the checks, and what is left to do as page-granular [`Segment`]s.
//! * [`guards`]: pages below stacks that are not mapped, and which stack an address is the guard of.
//! * [`tls`]: where a thread's copy of the thread-local data goes.
//! * [`source`]: where the bytes come from, which may be memory that somebody changes meanwhile.
//! * [`limits`]: how large an image and its tables may be, and where it may lie.
//!
//! Section headers and symbols are not looked at, nor notes that are not the system's own: nothing
//! that runs depends on them. Allocates nothing, never panics; time is linear in program headers and
//! notes.
//!
//! Decided in ADR 80.
#![no_std]

mod error;
pub mod guards;
pub mod image;
pub mod limits;
mod notes;
mod segment;
pub mod source;
pub mod tls;

pub use error::Error;
pub use guards::{Guards, Overflow};
pub use image::Image;
pub use segment::Segment;
pub use source::{FileBytes, Source};
pub use tls::{Tls, TlsLayout};
