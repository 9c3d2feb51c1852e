//! The table: look-up, insert, release, facets, teardown.
//!
//! Decided in ADR 56.

use core::marker::PhantomData;

use abi_types::CapSlot;

use crate::slot::{Content, NO_SLOT};
use crate::{Cap, Grant, GrantEntry, Grants, Payer, Slot};

/// The capabilities of one process, over storage from outside; `P` pays for the slots in use.
///
/// Positions are 32-bit; the storage is a power of two of them, so that a position is masked
/// before it is used and no misprediction reads beyond the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table<O, S, P = ()> {
    pub(crate) slots: S,
    mask: u32,
    pub(crate) first_free: u32,
    /// Slots that are held, leaving or reserved.
    pub(crate) used: u32,
    limit: u32,
    payer: P,
    closed: bool,
    /// Teardown has passed every position below this one.
    drained: u32,
    objects: PhantomData<O>,
}

/// The storage is not a power of two of slots, or holds fewer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSizeError;

/// Why a slot gives no capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapError {
    /// Empty, stale or outside the table.
    Disconnected,
    /// The slot is good; the facet in it was revoked.
    Revoked,
}

/// Why nothing could be put into the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertError {
    /// Every slot the process may use is in use.
    Full,
    /// The table was closed because its process is ending; nothing enters it any more.
    Closed,
}

/// Why a facet could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FacetError {
    /// The source cannot be used.
    Source(CapError),
    /// The source carries a badge already: only the unmarked capability marks facets.
    AlreadyBadged,
    /// The source falls with a grant, and its facets fall with the same one.
    NestedGrant,
    /// No slot for the facet.
    Insert(InsertError),
}

/// A capability that has left its slot. The caller runs the object's release rule, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Released<O>(pub Cap<O>);

/// How far a teardown got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum DrainVerdict {
    /// There may be more: call again.
    More,
    /// The table is empty but for slots of transfers under way: those promised come back as
    /// undeliverable, those that are leaving are settled or cannot be called back.
    Done,
}

impl<O: Copy, S: AsRef<[Slot<O>]> + AsMut<[Slot<O>]>> Table<O, S> {
    /// An empty table over `slots`, of which `limit` may be in use at once. Nobody pays for them.
    pub fn new(slots: S, limit: u32) -> Result<Self, TableSizeError> {
        Self::paid_by((), slots, limit)
    }
}

impl<O: Copy, S: AsRef<[Slot<O>]> + AsMut<[Slot<O>]>, P: Payer> Table<O, S, P> {
    /// The same, and `payer` pays for each slot in use.
    pub fn paid_by(payer: P, mut slots: S, limit: u32) -> Result<Self, TableSizeError> {
        let slice = slots.as_mut();
        let count = u32::try_from(slice.len()).map_err(|_| TableSizeError)?;
        if !count.is_power_of_two() || limit > count {
            return Err(TableSizeError);
        }
        let mut first_free = NO_SLOT;
        for (index, slot) in (0..count).zip(slice.iter_mut()).rev() {
            *slot = Slot::used_before(slot.generation);
            if slot.generation == u32::MAX {
                slot.content = Content::Retired;
            } else {
                slot.content = Content::Free { next: first_free };
                first_free = index;
            }
        }
        let mask = count.wrapping_sub(1);
        Ok(Self {
            slots,
            mask,
            first_free,
            used: 0,
            limit,
            payer,
            closed: false,
            drained: 0,
            objects: PhantomData,
        })
    }

    /// The same over slots that are [fresh](Slot::fresh), all of them and in order: nothing is looked at but the first
    /// and the last.
    pub fn of_fresh(payer: P, slots: S, limit: u32) -> Result<Self, TableSizeError> {
        let all = slots.as_ref();
        let count = u32::try_from(all.len()).map_err(|_| TableSizeError)?;
        let is_fresh = |index: u32| {
            let slot = all.get(index as usize);
            slot.is_some_and(|slot| match (slot.content, Slot::<O>::fresh(index, count).content) {
                (Content::Free { next }, Content::Free { next: expected }) => next == expected,
                _ => false,
            })
        };
        let last = count.wrapping_sub(1);
        if !count.is_power_of_two() || limit > count || !is_fresh(0) || !is_fresh(last) {
            return Err(TableSizeError);
        }
        let (first_free, used, drained) = (0, 0, 0);
        let (closed, objects) = (false, PhantomData);
        Ok(Self { slots, mask: last, first_free, used, limit, payer, closed, drained, objects })
    }

    /// Slots in use, promised ones included.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Who pays.
    pub fn payer(&self) -> &P {
        &self.payer
    }

    /// Slots that may be in use.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    #[inline]
    fn slot_of(&self, name: CapSlot) -> Option<&Slot<O>> {
        // The mask keeps a mispredicted bounds check inside the table.
        let position = (name.index() & self.mask) as usize;
        let slot = self.slots.as_ref().get(position)?;
        // Generation 0 is never given out, so a name of zero matches only empty slots.
        (slot.name == name.to_bits()).then_some(slot)
    }

    /// What the slot holds. Not yet checked for revocation: see [`lookup`](Self::lookup).
    #[inline]
    pub fn get(&self, name: CapSlot) -> Result<&Cap<O>, CapError> {
        match self.slot_of(name) {
            Some(Slot { content: Content::Held(cap), .. }) => Ok(cap),
            _ => Err(CapError::Disconnected),
        }
    }

    /// What the slot holds, if it has not been revoked.
    #[inline]
    pub fn lookup<G: AsRef<[GrantEntry]> + AsMut<[GrantEntry]>>(
        &self,
        name: CapSlot,
        grants: &Grants<G>,
    ) -> Result<&Cap<O>, CapError> {
        let cap = self.get(name)?;
        if grants.is_live(cap.grant) { Ok(cap) } else { Err(CapError::Revoked) }
    }

    /// Positions it has.
    pub fn positions(&self) -> u32 {
        self.mask.wrapping_add(1)
    }

    /// What the slot at a position holds, whatever its name, and that name.
    pub fn held_at(&self, position: u32) -> Option<(CapSlot, &Cap<O>)> {
        match self.slots.as_ref().get(position as usize)? {
            Slot { content: Content::Held(cap), generation, .. } => {
                Some((CapSlot::new(position, *generation), cap))
            }
            _ => None,
        }
    }

    pub(crate) fn slot_mut(&mut self, index: u32) -> Option<&mut Slot<O>> {
        self.slots.as_mut().get_mut(index as usize)
    }

    /// How many more slots may be filled; an error says why none.
    pub(crate) fn room(&self) -> Result<u32, InsertError> {
        if self.closed {
            return Err(InsertError::Closed);
        }
        Ok(self.limit.saturating_sub(self.used))
    }

    /// Takes the first free slot out of the list and marks it as promised; `None` if there is none, or the
    /// payer does not pay for one.
    pub(crate) fn take_free(&mut self) -> Option<u32> {
        let index = self.first_free;
        let slot = self.slot_mut(index)?;
        let Content::Free { next } = slot.content else { return None };
        if !self.payer.pay() {
            return None;
        }
        self.slot_mut(index)?.content = Content::Reserved;
        self.first_free = next;
        self.used = self.used.saturating_add(1);
        Some(index)
    }

    /// The name that a free or promised slot gives its next content.
    pub(crate) fn next_name(&self, index: u32) -> CapSlot {
        let slot = self.slots.as_ref().get(index as usize);
        slot.map_or(CapSlot::NONE, |slot| CapSlot::new(index, slot.generation.wrapping_add(1)))
    }

    /// Fills a promised slot and names it.
    pub(crate) fn fill_reserved(&mut self, index: u32, cap: Cap<O>) -> CapSlot {
        let Some(slot) = self.slot_mut(index) else { return CapSlot::NONE };
        slot.generation = slot.generation.wrapping_add(1);
        let name = CapSlot::new(index, slot.generation);
        slot.name = name.to_bits();
        slot.content = Content::Held(cap);
        name
    }

    /// Puts a slot back onto the free list, or retires it after its last generation.
    pub(crate) fn put_free(&mut self, index: u32) {
        let first_free = self.first_free;
        let Some(slot) = self.slot_mut(index) else { return };
        slot.name = 0;
        if slot.generation == u32::MAX {
            slot.content = Content::Retired;
        } else {
            slot.content = Content::Free { next: first_free };
            self.first_free = index;
        }
        self.used = self.used.saturating_sub(1);
        self.payer.refund();
    }

    /// Puts a capability into a slot.
    pub fn insert(&mut self, cap: Cap<O>) -> Result<CapSlot, InsertError> {
        if self.room()? == 0 {
            return Err(InsertError::Full);
        }
        let index = self.take_free().ok_or(InsertError::Full)?;
        Ok(self.fill_reserved(index, cap))
    }

    /// Empties a slot. The slot's name is stale from here on, wherever a copy of it is kept.
    pub fn release(&mut self, name: CapSlot) -> Result<Released<O>, CapError> {
        let cap = *self.get(name)?;
        self.put_free(name.index());
        Ok(Released(cap))
    }

    /// Makes a facet of `source` that carries `badge` and falls with `grant`. Its interface is the source's.
    ///
    /// The caller retains the object for the new copy.
    pub fn facet<G: AsRef<[GrantEntry]> + AsMut<[GrantEntry]>>(
        &mut self,
        source: CapSlot,
        badge: u64,
        grant: Grant,
        grants: &Grants<G>,
    ) -> Result<CapSlot, FacetError> {
        let cap = *self.lookup(source, grants).map_err(FacetError::Source)?;
        if cap.badge != 0 && badge != cap.badge {
            return Err(FacetError::AlreadyBadged);
        }
        let grant = match (cap.grant.is_revocable(), grant.is_revocable()) {
            (false, _) => grant,
            (true, false) => cap.grant,
            (true, true) if grant == cap.grant => grant,
            (true, true) => return Err(FacetError::NestedGrant),
        };
        self.insert(Cap { badge, grant, ..cap }).map_err(FacetError::Insert)
    }

    /// The process is ending: nothing can be put into the table any more.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Takes out up to `limit` capabilities of a closed table and shows each once; the visitor
    /// queues its release rule. Looks at no more than `limit` slots.
    pub fn drain(&mut self, limit: u32, mut visit: impl FnMut(Released<O>)) -> DrainVerdict {
        let count = self.mask.wrapping_add(1);
        let end = self.drained.saturating_add(limit).min(count);
        for index in self.drained..end {
            if let Some(&mut Slot { content: Content::Held(cap), .. }) = self.slot_mut(index) {
                self.put_free(index);
                visit(Released(cap));
            }
        }
        self.drained = end;
        if end < count { DrainVerdict::More } else { DrainVerdict::Done }
    }

    /// Checks what holds after every operation.
    pub fn check_invariants(&self) -> Result<(), &'static str> {
        let slots = self.slots.as_ref();
        let (mut used, mut free) = (0_u32, 0_u32);
        for (index, slot) in (0_u32..).zip(slots) {
            let is_named = match slot.content {
                Content::Held(_) => CapSlot::new(index, slot.generation).to_bits() == slot.name,
                _ => slot.name == 0,
            };
            if !is_named {
                return Err("a slot's name does not fit its content");
            }
            match slot.content {
                Content::Held(_) if slot.generation == 0 => return Err("generation 0 is in use"),
                Content::Held(_) | Content::Leaving(_) | Content::Reserved => {
                    used = used.saturating_add(1)
                }
                Content::Free { .. } if slot.generation == u32::MAX => {
                    return Err("a slot without generations is free");
                }
                Content::Free { .. } => free = free.saturating_add(1),
                Content::Retired => {}
            }
        }
        if used != self.used || used > self.limit {
            return Err("the count of used slots is wrong");
        }
        let mut at = self.first_free;
        while at != NO_SLOT {
            match slots.get(at as usize) {
                Some(Slot { content: Content::Free { next }, .. }) if free > 0 => at = *next,
                _ => return Err("the free list does not consist of the free slots"),
            }
            free = free.saturating_sub(1);
        }
        if free == 0 { Ok(()) } else { Err("a free slot is not on the list") }
    }
}
