//! Identities: what names a thread, a capability slot, a pending reply.
//!
//! Each carries a generation, so that a name that outlived its object is recognised and
//! never mistaken for the object that took its place.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A process number; unique together with the process generation.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
#[repr(transparent)]
pub struct Pid(pub u32);

/// A thread number: the position of the thread's record, so unique in the whole system and not
/// counted anew in each process (ADR 55); unique over time together with the thread generation.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
#[repr(transparent)]
pub struct Tid(pub u32);

/// The full name of a thread, valid for ever: a reused number has another generation.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
#[repr(C)]
pub struct ThreadRef {
    /// The process.
    pub pid: Pid,
    /// Which use of that process number.
    pub process_generation: u32,
    /// The thread.
    pub tid: Tid,
    /// Which use of that thread number.
    pub thread_generation: u32,
}

/// Declares a name of one word: an index below, the generation of what stands there above.
macro_rules! generational {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// Generation 0 is never given out, so the all-zero value names nothing.
        #[derive(
            Clone,
            Copy,
            Debug,
            PartialEq,
            Eq,
            PartialOrd,
            Ord,
            Hash,
            FromBytes,
            IntoBytes,
            Immutable,
            KnownLayout,
        )]
        #[repr(transparent)]
        pub struct $name(u64);

        impl $name {
            /// Names nothing.
            pub const NONE: Self = Self(0);

            /// What stands at `index`, in its `generation`.
            #[inline]
            pub const fn new(index: u32, generation: u32) -> Self {
                Self(index as u64 | (generation as u64) << 32)
            }

            /// The position.
            #[inline]
            pub const fn index(self) -> u32 {
                self.0 as u32
            }

            /// Which use of that position.
            #[inline]
            pub const fn generation(self) -> u32 {
                (self.0 >> 32) as u32
            }

            /// The value as it stands in an SQE or CQE.
            #[inline]
            pub const fn to_bits(self) -> u64 {
                self.0
            }

            /// The name that stands in an SQE or CQE.
            #[inline]
            pub const fn from_bits(bits: u64) -> Self {
                Self(bits)
            }
        }

        static_assertions::assert_eq_size!($name, [u8; 8]);
    };
}

generational! {
    /// A slot of the process's capability table, with the generation it had when it was filled.
    CapSlot
}

generational! {
    /// One received call, towards the kernel: its record in the receiver's table and the
    /// record's generation. Returned once; a second use is stale.
    ReplyToken
}

static_assertions::assert_eq_size!(ThreadRef, [u8; 16]);
