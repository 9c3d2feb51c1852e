//! A process's capabilities: the table, its slots' generations, transfer, facets, revocation.
//!
//! In here: [`Table`], which maps a [`CapSlot`](abi_types::CapSlot) to a [`Cap`]; transfer between two
//! tables in two steps ([`Parcel`], [`Reservation`]); facets with a badge; [`Grants`], the
//! epochs by which a facet is revoked everywhere at once; [`Payer`], who pays for slots. Not in here: what an
//! object is, its reference counts and release rules.
//!
//! # Contract
//!
//! - A [`Table`] is called under its process's table lock; [`Grants`] is looked at without a
//!   lock and changed under its own.
//! - Storage comes from outside: a power of two of [`Slot`]s, of which `limit` may be in use.
//! - A slot is paid for before it is promised or filled, and has its payment back when it is empty again,
//!   whichever operation does either.
//! - What leaves the table comes out in a verdict, once: its receiver runs the object's
//!   release rule. An error changes nothing.
//! - The object type is a name (a pointer or key with a generation), copied freely; holding a
//!   reference count for each copy in a table is the caller's part, at the moments the
//!   verdicts name.
#![cfg_attr(not(loom), no_std)]

mod grants;
mod payer;
mod slot;
mod table;
mod transfer;

pub use grants::{Grant, GrantEntry, GrantError, Grants};
pub use payer::Payer;
pub use slot::{Cap, Slot};
pub use table::{CapError, DrainVerdict, FacetError, InsertError, Released, Table, TableSizeError};
pub use transfer::{
    Arrived, Item, Mode, Parcel, Request, Reservation, ReserveError, TransferError, Undeliverable,
};
