//! One region: pages, what is behind them, what may be done there.

use core_paging::Access;

use crate::PageRange;

/// What is behind a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Frames of the process's own.
    Own,
    /// A memory object.
    Object {
        /// Its identity, never reused.
        id: u64,
        /// The object's page behind the region's first.
        first_page: u64,
    },
}

/// The most that protecting may allow: what the mapped object's facet allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ceiling {
    /// May be made writable.
    pub write: bool,
    /// May be made executable.
    pub execute: bool,
}

impl Ceiling {
    /// No limit beyond that of every page.
    pub const ANY: Self = Self { write: true, execute: true };

    /// Whether it permits that access.
    pub const fn permits(self, access: Access) -> bool {
        match access {
            Access::Read => true,
            Access::Write => self.write,
            Access::Execute => self.execute,
        }
    }
}

/// What a region is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Nothing can be accessed there, and nothing else is put there: a guard, or room to map
    /// into later.
    Reserved,
    /// Memory.
    Mapped {
        /// What may be done with it.
        access: Access,
        /// The most that a later protect may allow.
        ceiling: Ceiling,
        /// Where the memory comes from.
        backing: Backing,
    },
    /// Memory on its way to be mapped so, or to this access. Only who began that changes the pages, until they
    /// are settled.
    Settling {
        /// What may be done with it then.
        access: Access,
        /// The most that a later protect may allow.
        ceiling: Ceiling,
        /// Where the memory comes from.
        backing: Backing,
    },
    /// Memory that a registered buffer is made of: it is neither unmapped nor protected before the buffer is given up.
    Registered {
        /// What may be done with it.
        access: Access,
        /// The most that a later protect may allow.
        ceiling: Ceiling,
        /// Where the memory comes from.
        backing: Backing,
    },
    /// On its way out: what is behind the pages until they are settled, if anything is.
    Leaving(Option<Backing>),
}

impl Use {
    /// Whether somebody is about to change it.
    pub const fn is_in_transit(self) -> bool {
        matches!(self, Self::Settling { .. } | Self::Leaving(_))
    }

    /// Whether it is somebody's range as a whole, and so is one region with none of its neighbours.
    pub(crate) const fn is_apart(self) -> bool {
        self.is_in_transit() || matches!(self, Self::Registered { .. })
    }

    /// What is behind the pages, if anything is.
    pub const fn backing(self) -> Option<Backing> {
        match self {
            Self::Reserved => None,
            Self::Mapped { backing, .. }
            | Self::Settling { backing, .. }
            | Self::Registered { backing, .. } => Some(backing),
            Self::Leaving(backing) => backing,
        }
    }
}

impl Backing {
    /// What is behind the page `pages` later.
    const fn after(self, pages: u64) -> Self {
        match self {
            Self::Own => Self::Own,
            Self::Object { id, first_page } => {
                Self::Object { id, first_page: first_page.saturating_add(pages) }
            }
        }
    }
}

/// Pages in a row with one use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its pages; neighbours of the same use are one region.
    pub range: PageRange,
    /// What the pages are used for: reserved, or memory with its access.
    pub usage: Use,
}

/// A combination of rights that no page has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessError {
    /// Writable and executable at once. Make it writable, fill it, then protect it executable.
    WriteAndExecute,
    /// Not readable: x86-64 pages with any access can be read. Reserve pages without access.
    NotReadable,
}

/// The access that wishes for reading, writing and executing come to.
pub const fn access(read: bool, write: bool, execute: bool) -> Result<Access, AccessError> {
    match (read, write, execute) {
        (_, true, true) => Err(AccessError::WriteAndExecute),
        (false, _, _) => Err(AccessError::NotReadable),
        (true, true, false) => Ok(Access::Write),
        (true, false, true) => Ok(Access::Execute),
        (true, false, false) => Ok(Access::Read),
    }
}

impl Region {
    /// Fills unused storage.
    pub const UNUSED: Self = Self { range: PageRange::part(0, 0), usage: Use::Reserved };

    /// How many of its pages have something behind them: all or none.
    pub const fn mapped_pages(&self) -> u64 {
        match self.usage.backing() {
            None => 0,
            Some(_) => self.range.pages(),
        }
    }

    /// What the page `pages` after the first is used for.
    const fn usage_at(&self, pages: u64) -> Use {
        match self.usage {
            Use::Reserved => Use::Reserved,
            Use::Mapped { access, ceiling, backing } => {
                Use::Mapped { access, ceiling, backing: backing.after(pages) }
            }
            Use::Settling { access, ceiling, backing } => {
                Use::Settling { access, ceiling, backing: backing.after(pages) }
            }
            Use::Registered { access, ceiling, backing } => {
                Use::Registered { access, ceiling, backing: backing.after(pages) }
            }
            Use::Leaving(Some(backing)) => Use::Leaving(Some(backing.after(pages))),
            Use::Leaving(None) => Use::Leaving(None),
        }
    }

    /// The part of it that is in `range`.
    pub fn part_in(&self, range: PageRange) -> Option<Self> {
        let inside = self.range.overlap(range)?;
        let skipped = inside.first().saturating_sub(self.range.first());
        Some(Self { range: inside, usage: self.usage_at(skipped) })
    }

    /// Whether `next` begins where it ends and is the same thing going on. What is in transit may be two threads'
    /// doing, of which one settles first, and what is registered two buffers, of which one is given up first.
    pub(crate) fn continues_in(&self, next: &Self) -> bool {
        self.range.end() == next.range.first()
            && !self.usage.is_apart()
            && self.usage_at(self.range.pages()) == next.usage
    }

    /// It and the region it continues in.
    pub(crate) fn joined(&self, next: &Self) -> Self {
        Self { range: PageRange::part(self.range.first(), next.range.end()), usage: self.usage }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C10: of the eight wishes, three are a page's access.
    #[test]
    fn write_and_execute_exclude_each_other() {
        let mut granted = 0;
        for bits in 0..8_u8 {
            let (read, write, execute) = (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0);
            match access(read, write, execute) {
                Ok(got) => {
                    granted += 1;
                    assert!(read && !(write && execute));
                    assert_eq!(got == Access::Write, write);
                    assert_eq!(got == Access::Execute, execute);
                }
                Err(AccessError::WriteAndExecute) => assert!(write && execute),
                Err(AccessError::NotReadable) => assert!(!read),
            }
        }
        assert_eq!(granted, 3);
    }
}
