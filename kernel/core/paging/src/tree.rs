//! Map, unmap, protect and translate ranges of pages in a four-level tree.
//!
//! Every operation either does all of what was asked or leaves the tree as it was. Flushing
//! the TLB after unmap and protect is the caller's part; entries that were empty need none.
//!
//! Tables that become empty are freed, but for those right below the root in the upper half:
//! the kernel's half of the root is copied into every address space, so its entries never change
//! once they are there (invariant PT-2).

use crate::entry::{Access, Entry, Level, Meaning, PageSize, Rights};
use core_address::{Frame, PAGE_SIZE, PhysAddr, VirtAddr};

/// Where tables are kept. `index` is always below 512.
pub trait TableStore {
    /// Reads an entry.
    fn read(&self, table: Frame, index: usize) -> Entry;
    /// Writes an entry.
    fn write(&mut self, table: Frame, index: usize, entry: Entry);
    /// A new table with every entry empty, or `None` when out of memory.
    fn new_table(&mut self) -> Option<Frame>;
    /// Takes back a table that nothing refers to.
    fn free_table(&mut self, table: Frame);
    /// The first entry of a table that is in use, of those from `from` to `end`.
    fn next_used(&self, table: Frame, from: usize, end: usize) -> Option<usize> {
        (from..end).find(|index| self.read(table, *index) != Entry::EMPTY)
    }
    /// Entries of a lowest table from `from` on, up to `end`, that map pages of the space's own onto `first` and the
    /// frames after it.
    fn own_run(&self, table: Frame, from: usize, end: usize, first: Frame) -> usize {
        let is_next = |(index, number): &(usize, u64)| match self.read(table, *index).own_page() {
            Some(frame) => frame.number() == *number,
            None => false,
        };
        (from..end).zip(first.number()..).take_while(is_next).count()
    }
    /// Whether no entry of a table is in use.
    fn is_unused(&self, table: Frame) -> bool {
        self.next_used(table, 0, 512).is_none()
    }
}

/// Which page sizes beyond 4 KiB may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageSizes {
    /// 2 MiB pages.
    pub large: bool,
    /// 1 GiB pages (CPUID 8000_0001 EDX bit 26).
    pub huge: bool,
}

impl PageSizes {
    /// 4 KiB pages only.
    pub const SMALL: PageSizes = PageSizes { large: false, huge: false };
}

/// A range of pages to map: `pages` 4 KiB pages from `virt` onto the frames from `frame`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// First page.
    pub virt: VirtAddr,
    /// Frame of the first page.
    pub frame: Frame,
    /// How many 4 KiB pages.
    pub pages: u64,
    /// What they may be used for.
    pub rights: Rights,
    /// Which page sizes may serve.
    pub sizes: PageSizes,
}

/// Why a range could not be mapped. Nothing changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapError {
    /// The range is empty, not page-aligned, or leaves its half of the address space.
    BadRange,
    /// Some page of it is mapped.
    AlreadyMapped,
    /// No frame for a table.
    OutOfMemory,
}

/// Why a range could not be unmapped or given other rights. Nothing changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnmapError {
    /// The range is empty, not page-aligned, or leaves its half of the address space.
    BadRange,
    /// Some page of it is not mapped.
    NotMapped,
    /// It begins or ends inside a larger page.
    CutsLargePage,
}

/// What an address leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Translation {
    /// The byte's physical address.
    pub phys: PhysAddr,
    /// Size of the page it lies in.
    pub size: PageSize,
    /// What the page may be used for.
    pub rights: Rights,
}

/// First and end page number of a range, if it is one.
fn page_range(virt: VirtAddr, pages: u64) -> Option<(u64, u64)> {
    let last = virt.checked_add(pages.checked_mul(PAGE_SIZE)?.checked_sub(1)?)?;
    (virt.page_offset() == 0).then_some((virt.as_u64() / PAGE_SIZE, last.as_u64() / PAGE_SIZE + 1))
}

/// The entry that decides about a page: the level it is found at and what it means there.
fn lookup(store: &impl TableStore, root: Frame, page: u64) -> (Level, Meaning) {
    let (mut table, mut level) = (root, Level::L4);
    loop {
        let meaning = store.read(table, level.index(page)).meaning(level);
        match (meaning, level.below()) {
            (Meaning::Table(next), Some(below)) => (table, level) = (next, below),
            _ => return (level, meaning),
        }
    }
}

/// What `virt` leads to, or `None` where nothing is mapped.
pub fn translate(store: &impl TableStore, root: Frame, virt: VirtAddr) -> Option<Translation> {
    let page = virt.as_u64() / PAGE_SIZE;
    let (level, Meaning::Page(frame, rights)) = lookup(store, root, page) else { return None };
    let size = level.page_size()?;
    let inside = page % size.frames();
    let phys = frame.checked_add(inside)?.start().checked_add(virt.page_offset())?;
    Some(Translation { phys, size, rights })
}

/// A mapped page, as [`for_each_page`] tells of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MappedPage {
    /// Number of its first 4 KiB page: address / 4096, without the sign extension.
    pub page: u64,
    /// Its size.
    pub size: PageSize,
    /// Its entry, as it is.
    pub entry: Entry,
}

/// Calls `each` for every mapped page, in ascending order.
pub fn for_each_page(store: &impl TableStore, root: Frame, each: &mut impl FnMut(MappedPage)) {
    walk(store, root, Level::L4, 0, each);
}

fn walk(
    store: &impl TableStore,
    table: Frame,
    level: Level,
    first: u64,
    each: &mut impl FnMut(MappedPage),
) {
    for index in 0..512 {
        let page = first + index as u64 * level.pages_per_entry();
        let entry = store.read(table, index);
        match (entry.meaning(level), level.below(), level.page_size()) {
            (Meaning::Table(next), Some(below), _) => walk(store, next, below, page, each),
            (Meaning::Page(..), _, Some(size)) => each(MappedPage { page, size, entry }),
            _ => {}
        }
    }
}

/// The largest page size that fits at `page` and `frame` with `left` pages to go.
pub fn best_size(page: u64, frame: Frame, left: u64, sizes: PageSizes) -> PageSize {
    let fits = |size: PageSize| {
        left >= size.frames()
            && page.is_multiple_of(size.frames())
            && frame.number().is_multiple_of(size.frames())
    };
    if sizes.huge && fits(PageSize::Huge) {
        PageSize::Huge
    } else if sizes.large && fits(PageSize::Large) {
        PageSize::Large
    } else {
        PageSize::Small
    }
}

/// Maps a range that nothing is mapped in, with the largest pages allowed.
pub fn map(store: &mut impl TableStore, root: Frame, request: Request) -> Result<(), MapError> {
    let (start, end) = page_range(request.virt, request.pages).ok_or(MapError::BadRange)?;
    request.frame.checked_add(request.pages).ok_or(MapError::BadRange)?;
    if !is_empty(store, root, start, end) {
        return Err(MapError::AlreadyMapped);
    }
    let mut page = start;
    while page < end {
        match fill_run(store, root, &request, page, start, end) {
            Some(next) => page = next,
            None => {
                remove(store, root, start, page, |_, _, _| ());
                prune(store, root, page);
                return Err(MapError::OutOfMemory);
            }
        }
    }
    Ok(())
}

/// Whether nothing is mapped in pages `start..end`. Tables are walked to once, not once per page.
fn is_empty(store: &impl TableStore, root: Frame, start: u64, end: u64) -> bool {
    let mut page = start;
    while page < end {
        let (mut table, mut level) = (root, Level::L4);
        while let (Meaning::Table(next), Some(below)) =
            (store.read(table, level.index(page)).meaning(level), level.below())
        {
            (table, level) = (next, below);
        }
        let span = level.pages_per_entry();
        loop {
            match store.read(table, level.index(page)).meaning(level) {
                Meaning::Empty => page = (page / span + 1) * span,
                Meaning::Table(_) => break,
                Meaning::Page(..) => return false,
            }
            if page >= end || level.index(page) == 0 {
                break;
            }
        }
    }
    true
}

/// Maps from `page` on as much as goes into one table with pages of one size: the next page to
/// map, or `None` when out of memory.
fn fill_run(
    store: &mut impl TableStore,
    root: Frame,
    request: &Request,
    page: u64,
    start: u64,
    end: u64,
) -> Option<u64> {
    let mut page = page;
    let mut frame = request.frame.checked_add(page - start)?;
    let best = best_size(page, frame, end - page, request.sizes);
    let size = largest_without_table(store, root, page, best);
    let level = size.level();
    let table = table_for(store, root, page, level, request.rights.user)?;
    loop {
        store.write(table, level.index(page), Entry::page(frame, size, request.rights));
        page += size.frames();
        frame = frame.checked_add(size.frames())?;
        let table_ends = level.index(page) == 0;
        if page >= end
            || table_ends
            || best_size(page, frame, end - page, request.sizes) != size
            || store.read(table, level.index(page)) != Entry::EMPTY
        {
            return Some(page);
        }
    }
}

/// `size`, or smaller where a table with nothing mapped in it is already in the way.
fn largest_without_table(
    store: &impl TableStore,
    root: Frame,
    page: u64,
    size: PageSize,
) -> PageSize {
    let (level, _) = lookup(store, root, page);
    match level {
        Level::L1 => PageSize::Small,
        Level::L2 => size.min(PageSize::Large),
        Level::L3 | Level::L4 => size,
    }
}

/// The table of `level` on the way to a page, made if it is not there; `None` when out of memory.
fn table_for(
    store: &mut impl TableStore,
    root: Frame,
    page: u64,
    wanted: Level,
    user: bool,
) -> Option<Frame> {
    let (mut table, mut level) = (root, Level::L4);
    while level != wanted {
        let index = level.index(page);
        let next = match store.read(table, index).meaning(level) {
            Meaning::Table(next) => next,
            _ => {
                let next = store.new_table()?;
                store.write(table, index, Entry::table(next, user));
                next
            }
        };
        (table, level) = (next, level.below()?);
    }
    Some(table)
}

/// Checks that every page of the range is mapped and no larger page sticks out of it.
fn check_mapped(
    store: &impl TableStore,
    root: Frame,
    virt: VirtAddr,
    pages: u64,
) -> Result<(u64, u64), UnmapError> {
    let (start, end) = page_range(virt, pages).ok_or(UnmapError::BadRange)?;
    let mut page = start;
    while page < end {
        let (level, Meaning::Page(..)) = lookup(store, root, page) else {
            return Err(UnmapError::NotMapped);
        };
        let span = level.pages_per_entry();
        if page % span != 0 || end - page < span {
            return Err(UnmapError::CutsLargePage);
        }
        page += span;
    }
    Ok((start, end))
}

/// Checks that nothing is mapped in a range, and counts the tables that [`fill`] will need for it.
pub fn missing_tables(
    store: &impl TableStore,
    root: Frame,
    virt: VirtAddr,
    pages: u64,
) -> Result<usize, MapError> {
    let (start, end) = page_range(virt, pages).ok_or(MapError::BadRange)?;
    if !is_empty(store, root, start, end) {
        return Err(MapError::AlreadyMapped);
    }
    let mut missing = 0;
    // Where the table below an entry of each level was counted last.
    let mut counted = [None; 3];
    let mut page = start;
    while page < end {
        let (mut level, _) = lookup(store, root, page);
        while let Some(below) = level.below() {
            let span = page / level.pages_per_entry();
            if let Some(last) = counted.get_mut(below as usize)
                && *last != Some(span)
            {
                *last = Some(span);
                missing += 1;
            }
            level = below;
        }
        let span = Level::L2.pages_per_entry();
        page = (page / span + 1) * span;
    }
    Ok(missing)
}

/// Maps small pages where nothing is mapped, each onto the frame that `frame_of` says for it, counted from the
/// first. Cannot fail if the store has the [`missing_tables`].
pub fn fill(
    store: &mut impl TableStore,
    root: Frame,
    virt: VirtAddr,
    pages: u64,
    rights: Rights,
    mut frame_of: impl FnMut(u64) -> Frame,
) -> Result<(), MapError> {
    let (start, end) = page_range(virt, pages).ok_or(MapError::BadRange)?;
    let mut page = start;
    while page < end {
        let table = table_for(store, root, page, Level::L1, rights.user);
        let table = table.ok_or(MapError::OutOfMemory)?;
        loop {
            let entry = Entry::page(frame_of(page - start), PageSize::Small, rights);
            store.write(table, Level::L1.index(page), entry);
            page += 1;
            if page >= end || Level::L1.index(page) == 0 {
                break;
            }
        }
    }
    Ok(())
}

/// Unmaps a range, telling `each` what was mapped, in order. The TLB still holds it until flushed.
pub fn unmap(
    store: &mut impl TableStore,
    root: Frame,
    virt: VirtAddr,
    pages: u64,
    each: impl FnMut(Frame, PageSize, Rights),
) -> Result<(), UnmapError> {
    let (start, end) = check_mapped(store, root, virt, pages)?;
    remove(store, root, start, end, each);
    Ok(())
}

/// Gives a mapped range another kind of access.
pub fn protect(
    store: &mut impl TableStore,
    root: Frame,
    virt: VirtAddr,
    pages: u64,
    access: Access,
) -> Result<(), UnmapError> {
    let (start, end) = check_mapped(store, root, virt, pages)?;
    let mut page = start;
    while page < end {
        let Some((table, level)) = table_of(store, root, page) else { return Ok(()) };
        let index = level.index(page);
        if let (Meaning::Page(frame, rights), Some(size)) =
            (store.read(table, index).meaning(level), level.page_size())
        {
            store.write(table, index, Entry::page(frame, size, Rights { access, ..rights }));
        }
        page += level.pages_per_entry();
    }
    Ok(())
}

/// The table that holds a page's entry, and its level.
fn table_of(store: &impl TableStore, root: Frame, page: u64) -> Option<(Frame, Level)> {
    let (mut table, mut level) = (root, Level::L4);
    loop {
        match store.read(table, level.index(page)).meaning(level) {
            Meaning::Table(next) => (table, level) = (next, level.below()?),
            Meaning::Page(..) => return Some((table, level)),
            Meaning::Empty => return None,
        }
    }
}

/// Empties the entries of pages `start..end`, all of which are mapped, and frees empty tables.
fn remove(
    store: &mut impl TableStore,
    root: Frame,
    start: u64,
    end: u64,
    mut each: impl FnMut(Frame, PageSize, Rights),
) {
    let mut page = start;
    while page < end {
        let Some((table, level)) = table_of(store, root, page) else { return };
        let index = level.index(page);
        if let (Meaning::Page(frame, rights), Some(size)) =
            (store.read(table, index).meaning(level), level.page_size())
        {
            each(frame, size, rights);
        }
        store.write(table, index, Entry::EMPTY);
        let next = page + level.pages_per_entry();
        // A table is looked through once, when the range leaves it.
        if next >= end || index == 511 {
            prune(store, root, page);
        }
        page = next;
    }
}

/// Frees the tables on the way to a page that have no entry left, lowest first.
fn prune(store: &mut impl TableStore, root: Frame, page: u64) {
    let upper_half = page >> 35 & 1 == 1;
    let mut path = [(root, Level::L4); 4];
    let mut depth = 0;
    let (mut table, mut level) = (root, Level::L4);
    while let (Meaning::Table(next), Some(below)) =
        (store.read(table, level.index(page)).meaning(level), level.below())
    {
        (table, level) = (next, below);
        depth += 1;
        if let Some(slot) = path.get_mut(depth) {
            *slot = (table, level);
        }
    }
    while depth > 0 {
        let (Some(&(table, _)), Some(&(parent, above))) = (path.get(depth), path.get(depth - 1))
        else {
            return;
        };
        let kept = above == Level::L4 && upper_half;
        if kept || !store.is_unused(table) {
            return;
        }
        store.write(parent, above.index(page), Entry::EMPTY);
        store.free_table(table);
        depth -= 1;
    }
}
