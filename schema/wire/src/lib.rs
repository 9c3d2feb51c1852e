//! The wire form of capOS messages: what generated clients and servers are made of.
//!
//! A message is one Cap'n Proto segment without a segment table: the root pointer is word 0,
//! the bytes are 8-aligned and a whole number of words. An empty message is a struct with every
//! field at its default. A capability in a message is its position in the transfer list.
//!
//! - [`Message`] reads bytes somebody else wrote, through the `capnp` crate's reader: each word
//!   is visited once at most (once more to check lists), structures nest [`NESTING_LIMIT`] deep at most, far pointers are
//!   errors because there is no other segment.
//! - [`Writer`] writes into a buffer of the caller's and says so when it is full.
//! - [`List`] is a list of integers or structs, read where it lies and written from a slice.
//! - [`Value`] is a struct as plain fields, [`Method`] ties two of them to an ordinal; the
//!   schema compiler writes both.
//! - [`Transport`] is what a client calls through, [`Answer`] what a server method returns.
//! - [`Exception`] is the answer that is not a result.
//!
//! Allocates nothing and never panics, whatever the bytes are.
//!
//! Decided in ADR 66.
#![no_std]

mod answer;
mod call;
mod error;
mod exception;
mod interface;
mod list;
mod message;
mod value;
mod writer;

/// Reading code of `exception.capnp`, as the stock generator writes it.
#[allow(missing_docs, clippy::all, clippy::pedantic, clippy::restriction, unused)]
mod exception_capnp {
    include!(concat!(env!("EXCEPTION_BINDINGS"), "/exception_capnp.rs"));
}

pub use answer::{Answer, NoResult, Served, answer_with, params_error, room_for};
pub use call::{CallError, Callee, Reading, Reply, Transfer, Transport, results_of};
pub use error::WireError;
pub use exception::{EXCEPTION_BYTES, EXCEPTION_MESSAGE_BYTES, Exception};
pub use interface::{Interface, MethodEntry, StructLayout};
pub use list::{Element, ElementLayout, List};
pub use message::{Message, NESTING_LIMIT, data_of, enum_of, text_of, transfer_of};
pub use value::{Encode, Method, TransferIndex, Value, fixed_bytes};
pub use writer::{Place, Writer};

// What generated code names, so that a crate of it depends on this one alone.
pub use abi_types::{CapSlot, ExceptionKind, InterfaceTag, Status};
pub use capnp;
