//! What a program's file tells the kernel: ELF notes of the name "capOS".
//!
//! A note is a header of three words, the name and the descriptor, each padded to the alignment of
//! its segment (`PT_NOTE`), which is 4 or 8. Notes of other names mean nothing here; one of this name
//! with a type that is not below is refused.
//!
//! Decided in ADRs 180 and 286.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The name of the notes, with the zero that ends it.
pub const NOTE_NAME: [u8; 6] = *b"capOS\0";

/// The type of a note whose descriptor is [`Guards`].
pub const NOTE_GUARDS: u32 = 1;

/// The type of a note whose descriptor is the number of the ABI that the program is made for, 32 bits.
pub const NOTE_ABI: u32 = 2;

/// The number of this ABI. It changes when a program that was built before would not run rightly any more.
pub const ABI_NUMBER: u32 = 1;

/// Bytes of a guard: one page.
pub const GUARD_BYTES: u64 = 4096;

/// Stacks of one size side by side, each with a guard below it: the pages at `start + i * stride` for
/// `i` below `count` are not mapped. The stack of number `i` is what follows up to the next guard.
///
/// All of it lies in one writable segment, where the file has no bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Guards {
    /// The first guard, a multiple of the page size.
    pub start: u64,
    /// From one guard to the next: a multiple of the page size, at least two pages.
    pub stride: u64,
    /// How many, at least one.
    pub count: u64,
}

static_assertions::assert_eq_size!(Guards, [u8; 24]);
