//! The CapSet page: the names of a process's bootstrap capabilities.
//!
//! A header, then `count` entries, in one read-only page at
//! [`CAPSET_VADDR`](crate::place::CAPSET_VADDR).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// First word of a CapSet page.
pub const CAPSET_MAGIC: u64 = u64::from_le_bytes(*b"capOSset");

/// Longest name of a bootstrap capability, in bytes.
pub const CAPSET_NAME_BYTES: usize = 44;

/// The start of the page.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CapSetHeader {
    /// [`CAPSET_MAGIC`].
    pub magic: u64,
    /// Entries that follow.
    pub count: u32,
    /// Zero.
    pub reserved: u32,
    /// Zero: the entries begin at 64.
    pub pad: [u64; 6],
}

/// One capability.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CapSetEntry {
    /// Its slot, a [`CapSlot`](crate::CapSlot).
    pub slot: u64,
    /// The id of its Cap'n Proto interface.
    pub interface: u64,
    /// Bytes of `name` that count.
    pub name_length: u32,
    /// What the manifest calls it, UTF-8.
    pub name: [u8; CAPSET_NAME_BYTES],
}

static_assertions::assert_eq_size!(CapSetHeader, [u8; 64]);
static_assertions::assert_eq_size!(CapSetEntry, [u8; 64]);
