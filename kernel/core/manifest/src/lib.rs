//! The boot manifest: which processes start, with what.
//!
//! [`Manifest::check`] takes the canonical encoding that `capos_manifest` makes and accepts
//! nothing that is not a whole, consistent manifest; the same function runs when the manifest
//! is built and when the kernel boots. What it accepted can then be read any number of times.
//!
//! The rules, beside the ranges in `manifest.capnp`:
//!
//! - process names are unique, grant names are unique in their process;
//! - a process's binary is one of the boot modules;
//! - an endpoint exists because exactly one grant, of one process, is its receiving side;
//!   client grants name an endpoint that exists;
//! - arguments and environment fit a page; a process that is marked `boot` is a client of such ones only.
//!
//! Allocates nothing, never panics; time and stack are bounded by the limits in [`limits`].
//!
//! Decided in ADR 67.
#![no_std]

mod check;
mod error;
mod grant;
pub mod limits;
mod manifest;
mod name;
mod process;
mod profile;

pub use core_ledger::Profile;
pub use error::Error;
pub use grant::{Grant, GrantKind};
pub use manifest::{Endpoint, Manifest};
pub use name::Name;
pub use process::{Process, is_variable_name};
pub use profile::{ProfileError, check_profile};
