//! The executables of user programs: static ELF64 files for x86-64, checked completely.
//!
//! [`Image::parse`] refuses everything that is not a whole, consistent, statically linked
//! executable within user memory, each with its own [`Error`]; what it accepted can be mapped and
//! copied without another look. A file is never repaired and nothing of it is guessed.
//!
//! * [`image`]: the checks, and what is left to do as page-granular [`Segment`]s.
//! * [`tls`]: where a thread's copy of the thread-local data goes.
//! * [`limits`]: how large an image and its tables may be, and where it may lie.
//!
//! Section headers, symbols and notes are not looked at: nothing that runs depends on them.
//! Allocates nothing, never panics; time is linear in the program headers.
#![no_std]

mod error;
pub mod image;
pub mod limits;
mod segment;
pub mod tls;

pub use error::Error;
pub use image::Image;
pub use segment::Segment;
pub use tls::{Tls, TlsLayout};
