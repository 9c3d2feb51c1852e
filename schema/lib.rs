//! Generated code of the Cap'n Proto files in this folder, one module per file.
#![no_std]
#![allow(missing_docs, clippy::all, clippy::pedantic, clippy::restriction, unused)]

/// The boot manifest.
pub mod manifest_capnp {
    include!(concat!(env!("SCHEMA_BINDINGS"), "/manifest_capnp.rs"));
}
