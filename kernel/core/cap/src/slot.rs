//! One slot of a table, and what it holds.

use abi_types::InterfaceTag;

use crate::Grant;

/// A capability: an object, the interface it is called by, the mark its calls carry, and the grant it falls
/// with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap<O> {
    /// What the capability is to: the kernel's name for the object, copied freely.
    pub object: O,
    /// The interface that a call must mean.
    pub interface: InterfaceTag,
    /// What an endpoint's server sees on calls through this facet; 0 on an unmarked one.
    pub badge: u64,
    /// What revokes it; [`Grant::PERMANENT`] if nothing does.
    pub grant: Grant,
}

impl<O> Cap<O> {
    /// An unmarked capability that nothing revokes.
    pub const fn new(object: O, interface: InterfaceTag) -> Self {
        Self { object, interface, badge: 0, grant: Grant::PERMANENT }
    }
}

/// One place of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot<O> {
    /// The bits of the `CapSlot` that names the content, 0 without one: a single compare
    /// checks position, generation and presence.
    pub(crate) name: u64,
    /// The generation of the latest content.
    pub(crate) generation: u32,
    pub(crate) content: Content<O>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content<O> {
    /// On the free list; `next` is the position after it there, or [`NO_SLOT`].
    Free { next: u32 },
    /// Promised to a transfer under way.
    Reserved,
    /// In use.
    Held(Cap<O>),
    /// Moved out by a transfer that has not ended: nobody's, until it is settled or called back.
    Leaving(Cap<O>),
    /// Its generations are used up.
    Retired,
}

/// The end of a list of slots.
pub(crate) const NO_SLOT: u32 = u32::MAX;

impl<O> Slot<O> {
    /// A slot that has never been used.
    pub const UNUSED: Self = Self::used_before(0);

    /// Number `index` of the slots of a new table: free, and followed by the next. Made one by one, so that a long
    /// table need not be made at once.
    pub const fn fresh(index: u32, count: u32) -> Self {
        let next = if index + 1 < count { index + 1 } else { NO_SLOT };
        Self { name: 0, generation: 0, content: Content::Free { next } }
    }

    /// A slot whose latest content had this generation.
    pub const fn used_before(generation: u32) -> Self {
        Self { name: 0, generation, content: Content::Free { next: NO_SLOT } }
    }
}
