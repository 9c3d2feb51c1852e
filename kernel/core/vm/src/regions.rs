//! The list of regions and what can be done with it.

use core_paging::Access;

use crate::{Backing, Ceiling, PageRange, Region, Use};

/// Places a change needs for a moment.
pub(crate) const SPARE: usize = 2;

/// The regions of one address space, over storage from outside.
#[derive(Clone, Debug)]
pub struct Regions<S> {
    storage: S,
    len: usize,
    mapped_pages: u64,
}

/// The storage has no room for a region, or for those that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageError;

/// Why nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmError {
    /// Some page is mapped already, or for [`Regions::reserve`] reserved.
    Occupied,
    /// Some page is not mapped, or for [`Regions::unmap`] not reserved either.
    NotMapped,
    /// Some page is in transit: another thread is about to change it.
    Busy,
    /// Some page is of a registered buffer.
    Registered,
    /// Some page cannot be written.
    NotWritable,
    /// Some page is not of the memory object that is meant.
    NotOfObject,
    /// Some page belongs to an object whose facet does not allow this access.
    AboveCeiling,
    /// The object has no page that far.
    ObjectTooShort,
    /// More regions than there is storage for.
    Full,
    /// No gap is large enough.
    NoRoom,
}

/// Whether that is the object's that is meant, if one is.
fn is_of(usage: Use, object: Option<u64>) -> Result<(), VmError> {
    match (object, usage.backing()) {
        (None, _) => Ok(()),
        (Some(object), Some(Backing::Object { id, .. })) if id == object => Ok(()),
        (Some(_), _) => Err(VmError::NotOfObject),
    }
}

/// Pages were mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Mapped {
    /// The pages, at the address asked for or found.
    pub range: PageRange,
    /// So many of them were reserved before.
    pub from_reserved: u64,
}

impl<S: AsRef<[Region]> + AsMut<[Region]>> Regions<S> {
    /// No regions.
    pub fn new(storage: S) -> Result<Self, StorageError> {
        if storage.as_ref().len() <= SPARE {
            return Err(StorageError);
        }
        Ok(Self { storage, len: 0, mapped_pages: 0 })
    }

    /// Goes on in other storage; the old one comes back.
    pub fn move_to(&mut self, mut storage: S) -> Result<S, StorageError> {
        if storage.as_ref().len().saturating_sub(SPARE) < self.len {
            return Err(StorageError);
        }
        for (to, from) in storage.as_mut().iter_mut().zip(self.all()) {
            *to = *from;
        }
        Ok(core::mem::replace(&mut self.storage, storage))
    }

    /// All regions, in ascending order.
    pub fn all(&self) -> &[Region] {
        self.storage.as_ref().get(..self.len).unwrap_or_default()
    }

    /// How many regions there may be.
    pub fn limit(&self) -> usize {
        self.storage.as_ref().len().saturating_sub(SPARE)
    }

    /// How many pages are mapped; reserved ones are not.
    pub fn mapped_pages(&self) -> u64 {
        self.mapped_pages
    }

    /// The region that holds a page.
    pub fn find(&self, page: u64) -> Option<&Region> {
        let at = self.all().partition_point(|region| region.range.end() <= page);
        self.all().get(at).filter(|region| region.range.first() <= page)
    }

    /// The parts of regions that lie in `range`, in ascending order.
    pub fn pieces(&self, range: PageRange) -> impl Iterator<Item = Region> + '_ {
        let (from, to) = self.indices(range);
        let inside = self.all().get(from..to).unwrap_or_default();
        inside.iter().filter_map(move |region| region.part_in(range))
    }

    /// Maps pages that are free or reserved; they are in transit until they are settled. An object's pages are taken from the one that its
    /// backing names, of `object_pages` in all.
    pub fn map(
        &mut self,
        range: PageRange,
        access: Access,
        ceiling: Ceiling,
        backing: Backing,
        object_pages: u64,
    ) -> Result<Mapped, VmError> {
        if !ceiling.permits(access) {
            return Err(VmError::AboveCeiling);
        }
        if let Backing::Object { first_page, .. } = backing {
            match first_page.checked_add(range.pages()) {
                Some(end) if end <= object_pages => {}
                _ => return Err(VmError::ObjectTooShort),
            }
        }
        let usage = Use::Settling { access, ceiling, backing };
        let mut reserved = 0_u64;
        for piece in self.pieces(range) {
            match piece.usage {
                Use::Reserved => {}
                Use::Mapped { .. } | Use::Registered { .. } => return Err(VmError::Occupied),
                Use::Settling { .. } | Use::Leaving(_) => return Err(VmError::Busy),
            }
            reserved = reserved.saturating_add(piece.range.pages());
        }
        self.replace(Region { range, usage })?;
        self.mapped_pages = self.mapped_pages.saturating_add(range.pages());
        Ok(Mapped { range, from_reserved: reserved })
    }

    /// Maps frames of the process's own; in transit, as by [`map`](Self::map).
    pub fn map_own(&mut self, range: PageRange, access: Access) -> Result<Mapped, VmError> {
        self.map(range, access, Ceiling::ANY, Backing::Own, 0)
    }

    /// Keeps free pages without access.
    pub fn reserve(&mut self, range: PageRange) -> Result<(), VmError> {
        if self.pieces(range).next().is_some() {
            return Err(VmError::Occupied);
        }
        self.replace(Region { range, usage: Use::Reserved })
    }

    /// Begins to free pages, all of which are mapped or reserved, and of that object if one is meant: they are in
    /// transit until they are settled.
    pub fn unmap(&mut self, range: PageRange, object: Option<u64>) -> Result<(), VmError> {
        self.check_covered(range, |piece| match piece.usage {
            Use::Settling { .. } | Use::Leaving(_) => Err(VmError::Busy),
            Use::Registered { .. } => Err(VmError::Registered),
            usage => is_of(usage, object),
        })?;
        self.rewrite(range, |piece| Some(Use::Leaving(piece.usage.backing())))
    }

    /// Begins to change what may be done with pages, all of which are mapped, and of that object if one is
    /// meant: they are in transit until they are settled.
    pub fn protect(
        &mut self,
        range: PageRange,
        access: Access,
        object: Option<u64>,
    ) -> Result<(), VmError> {
        self.check_covered(range, |piece| match piece.usage {
            Use::Reserved => Err(VmError::NotMapped),
            Use::Settling { .. } | Use::Leaving(_) => Err(VmError::Busy),
            Use::Registered { .. } => Err(VmError::Registered),
            Use::Mapped { ceiling, .. } => {
                is_of(piece.usage, object)?;
                if ceiling.permits(access) { Ok(()) } else { Err(VmError::AboveCeiling) }
            }
        })?;
        self.rewrite(range, |piece| match piece.usage {
            Use::Mapped { ceiling, backing, .. } => {
                Some(Use::Settling { access, ceiling, backing })
            }
            usage => Some(usage),
        })
    }

    /// Makes pages a registered buffer's, all of which are mapped, and for writing if it is to be written: nobody unmaps
    /// or protects them until they are [unregistered](Self::unregister).
    pub fn register(&mut self, range: PageRange, is_written: bool) -> Result<(), VmError> {
        self.check_covered(range, |piece| match piece.usage {
            Use::Reserved => Err(VmError::NotMapped),
            Use::Settling { .. } | Use::Leaving(_) => Err(VmError::Busy),
            Use::Registered { .. } => Err(VmError::Registered),
            Use::Mapped { access, .. } if is_written && access != Access::Write => {
                Err(VmError::NotWritable)
            }
            Use::Mapped { .. } => Ok(()),
        })?;
        self.rewrite(range, |piece| match piece.usage {
            Use::Mapped { access, ceiling, backing } => {
                Some(Use::Registered { access, ceiling, backing })
            }
            usage => Some(usage),
        })
    }

    /// The buffer that these pages are of, all of them, is given up. Cannot fail, as [`settle`](Self::settle).
    pub fn unregister(&mut self, range: PageRange) {
        let done = self.rewrite(range, |piece| match piece.usage {
            Use::Registered { access, ceiling, backing } => {
                Some(Use::Mapped { access, ceiling, backing })
            }
            usage => Some(usage),
        });
        debug_assert!(done.is_ok(), "the regions of a buffer are whole regions");
    }

    /// What was begun for this range is done: what settles is mapped, what leaves is gone, and `gone` is told of
    /// it. Cannot fail, because there are fewer regions then, or as many.
    pub fn settle(&mut self, range: PageRange, gone: impl FnMut(Region)) {
        self.forget(range, |usage| matches!(usage, Use::Leaving(_)), gone);
        let done = self.rewrite(range, |piece| match piece.usage {
            Use::Settling { access, ceiling, backing } => {
                Some(Use::Mapped { access, ceiling, backing })
            }
            Use::Leaving(_) => None,
            usage => Some(usage),
        });
        debug_assert!(done.is_ok(), "regions in transit are whole regions");
    }

    /// What was begun to be mapped there is not going to be: the pages before number `end` leave, and are in transit
    /// until they are settled; the others are free, and `gone` is told of them. Cannot fail, as
    /// [`settle`](Self::settle).
    pub fn abandon(&mut self, range: PageRange, end: u64, gone: impl FnMut(Region)) {
        let tail = PageRange::part(end.max(range.first()), range.end());
        self.forget(tail, |_| true, gone);
        let freed = self.rewrite(tail, |_| None);
        let head = PageRange::part(range.first(), tail.first());
        let left = self.rewrite(head, |piece| Some(Use::Leaving(piece.usage.backing())));
        debug_assert!(freed.and(left).is_ok(), "what is in transit is a region of its own");
    }

    /// Tells of what is mapped in a range and is about to go, and counts it out.
    fn forget(&mut self, range: PageRange, goes: fn(Use) -> bool, mut gone: impl FnMut(Region)) {
        let mut pages = 0_u64;
        for piece in self.pieces(range).filter(|piece| goes(piece.usage)) {
            if piece.mapped_pages() > 0 {
                pages = pages.saturating_add(piece.mapped_pages());
                gone(piece);
            }
        }
        self.mapped_pages = self.mapped_pages.saturating_sub(pages);
    }

    /// Takes out at most `most` regions, from the lowest on; `true` when none is left.
    pub fn drain(&mut self, most: usize, mut gone: impl FnMut(Region)) -> bool {
        let taken = most.min(self.len);
        for region in self.all().iter().take(taken).filter(|r| r.mapped_pages() > 0) {
            gone(*region);
        }
        let pages = self.all().iter().take(taken).map(Region::mapped_pages).sum();
        self.mapped_pages = self.mapped_pages.saturating_sub(pages);
        self.close_gap(0, taken);
        self.len == 0
    }

    /// Checks what holds after every operation.
    pub fn check_invariants(&self) -> Result<(), &'static str> {
        if self.len > self.limit() {
            return Err("more regions than the limit");
        }
        for region in self.all() {
            if PageRange::from_page(region.range.first(), region.range.pages()).is_err() {
                return Err("a region outside user memory or in the kernel's areas");
            }
            if let Use::Mapped { access, ceiling, .. }
            | Use::Settling { access, ceiling, .. }
            | Use::Registered { access, ceiling, .. } = region.usage
                && !ceiling.permits(access)
            {
                return Err("a region with more access than its object's facet allows");
            }
        }
        for (one, next) in self.all().iter().zip(self.all().iter().skip(1)) {
            if one.range.end() > next.range.first() {
                return Err("regions overlap or are out of order");
            }
            if one.continues_in(next) {
                return Err("neighbours that continue each other are two regions");
            }
        }
        if self.all().iter().map(Region::mapped_pages).sum::<u64>() != self.mapped_pages {
            return Err("the count of mapped pages is wrong");
        }
        Ok(())
    }

    /// Every page of `range` is in a region, and each piece passes.
    fn check_covered(
        &self,
        range: PageRange,
        check: impl Fn(&Region) -> Result<(), VmError>,
    ) -> Result<(), VmError> {
        let mut next = range.first();
        for piece in self.pieces(range) {
            if piece.range.first() != next {
                return Err(VmError::NotMapped);
            }
            check(&piece)?;
            next = piece.range.end();
        }
        if next == range.end() { Ok(()) } else { Err(VmError::NotMapped) }
    }

    /// The numbers of the regions that overlap `range`, from, and up to but not including.
    pub(crate) fn indices(&self, range: PageRange) -> (usize, usize) {
        let all = self.all();
        let from = all.partition_point(|region| region.range.end() <= range.first());
        // One or two, as a rule: found faster one after the other than by halves.
        let above = all.get(from..).unwrap_or_default().iter();
        let inside = above.take_while(|region| region.range.first() < range.end()).count();
        (from, from.saturating_add(inside))
    }

    pub(crate) fn get(&self, at: usize) -> Option<Region> {
        self.all().get(at).copied()
    }

    pub(crate) fn put(&mut self, at: usize, region: Region) {
        if let Some(place) = self.storage.as_mut().get_mut(at) {
            *place = region;
        }
    }

    /// Makes room for one region at number `at`.
    pub(crate) fn open_gap(&mut self, at: usize) {
        debug_assert!(self.len < self.storage.as_ref().len() && at <= self.len);
        let end = self.len.saturating_add(1);
        // The first of them is where the gap is; it is filled next.
        if let Some(moved) = self.storage.as_mut().get_mut(at..end) {
            moved.copy_within(..moved.len().saturating_sub(1), 1);
            self.len = end;
        }
    }

    /// Takes out the regions from number `from` up to, not including, `to`.
    pub(crate) fn close_gap(&mut self, from: usize, to: usize) {
        let count = to.saturating_sub(from);
        if count == 0 {
            return;
        }
        if let Some(moved) = self.storage.as_mut().get_mut(from..self.len)
            && count <= moved.len()
        {
            moved.copy_within(count.., 0);
            self.len = self.len.saturating_sub(count);
        }
    }
}
