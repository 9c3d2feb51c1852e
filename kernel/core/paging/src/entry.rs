//! What a page may be used for, and how an x86-64 page-table entry says so.
//!
//! Bit positions: Intel SDM vol. 3, 4.5.4 (tables 4-15 to 4-20). Caching goes through the PAT
//! with the order the boot protocol sets and [`PAT_VALUE`] keeps: 0 WB, 1 WT, 2 UC-, 3 UC, 4 WP, 5 WC.

use core_address::Frame;

/// IA32_PAT as every CPU of the kernel has it (Intel SDM vol. 3, 11.12.2): WB, WT, UC-, UC, WP, WC, UC-, UC.
pub const PAT_VALUE: u64 = 0x0007_0105_0007_0406;

const PRESENT: u64 = 1 << 0;
const WRITABLE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const PWT: u64 = 1 << 3;
const PCD: u64 = 1 << 4;
const LARGE: u64 = 1 << 7;
const PAT_SMALL: u64 = 1 << 7;
const GLOBAL: u64 = 1 << 8;
/// Left to software (Intel SDM vol. 3, table 4-20): the frame is not the address space's own.
const SHARED: u64 = 1 << 9;
const PAT_LARGE: u64 = 1 << 12;
const NO_EXECUTE: u64 = 1 << 63;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// What code may do with a page. Writable and executable at once has no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Read only.
    Read,
    /// Read and write.
    Write,
    /// Read and execute.
    Execute,
}

/// How accesses are cached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Caching {
    /// Ordinary memory.
    WriteBack,
    /// Frame buffers: writes are gathered, reads are slow.
    WriteCombining,
    /// Device registers.
    Uncached,
}

/// Everything an entry says about a page beside where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rights {
    /// What may be done with it.
    pub access: Access,
    /// How it is cached.
    pub caching: Caching,
    /// Whether user mode may.
    pub user: bool,
    /// Whether the frame belongs to somebody else, and stays when the page goes.
    pub shared: bool,
}

impl Rights {
    /// Kernel memory, write-back.
    pub const fn kernel(access: Access) -> Self {
        Self { access, caching: Caching::WriteBack, user: false, shared: false }
    }

    /// User memory, write-back.
    pub const fn user(access: Access) -> Self {
        Self { access, caching: Caching::WriteBack, user: true, shared: false }
    }

    /// Device registers.
    pub const fn device() -> Self {
        Self { access: Access::Write, caching: Caching::Uncached, user: false, shared: false }
    }
}

/// A page's size.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PageSize {
    /// 4 KiB.
    Small,
    /// 2 MiB.
    Large,
    /// 1 GiB.
    Huge,
}

impl PageSize {
    /// How many 4 KiB frames it has.
    pub const fn frames(self) -> u64 {
        match self {
            PageSize::Small => 1,
            PageSize::Large => 512,
            PageSize::Huge => 512 * 512,
        }
    }

    /// The level whose tables hold its entries.
    pub const fn level(self) -> Level {
        match self {
            PageSize::Small => Level::L1,
            PageSize::Large => Level::L2,
            PageSize::Huge => Level::L3,
        }
    }
}

/// A level of tables: L4 is the root, L1 holds 4 KiB pages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Page table.
    L1,
    /// Page directory.
    L2,
    /// Page-directory-pointer table.
    L3,
    /// The root, PML4.
    L4,
}

impl Level {
    /// The level below.
    pub const fn below(self) -> Option<Level> {
        match self {
            Level::L4 => Some(Level::L3),
            Level::L3 => Some(Level::L2),
            Level::L2 => Some(Level::L1),
            Level::L1 => None,
        }
    }

    /// The size of a page mapped at this level, if there is one.
    pub const fn page_size(self) -> Option<PageSize> {
        match self {
            Level::L4 => None,
            Level::L3 => Some(PageSize::Huge),
            Level::L2 => Some(PageSize::Large),
            Level::L1 => Some(PageSize::Small),
        }
    }

    /// How many 4 KiB pages one entry of this level spans.
    pub const fn pages_per_entry(self) -> u64 {
        match self {
            Level::L1 => 1,
            Level::L2 => 512,
            Level::L3 => 512 * 512,
            Level::L4 => 512 * 512 * 512,
        }
    }

    /// Which entry of a table of this level a 4 KiB page (address / 4096) belongs to.
    pub const fn index(self, page: u64) -> usize {
        (page / self.pages_per_entry() % 512) as usize
    }
}

/// An entry of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Entry(pub u64);

/// What an entry means at its level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meaning {
    /// Nothing is mapped.
    Empty,
    /// The table below.
    Table(Frame),
    /// A page.
    Page(Frame, Rights),
}

impl Entry {
    /// Nothing mapped.
    pub const EMPTY: Entry = Entry(0);

    /// An entry that leads to a table. Rights are the leaf's business, so a table allows all.
    pub const fn table(table: Frame, user: bool) -> Entry {
        Entry(table.start().as_u64() | PRESENT | WRITABLE | if user { USER } else { 0 })
    }

    /// An entry that maps a page. Kernel pages are global: they are the same in every address space.
    pub const fn page(frame: Frame, size: PageSize, rights: Rights) -> Entry {
        let access = match rights.access {
            Access::Read => NO_EXECUTE,
            Access::Write => NO_EXECUTE | WRITABLE,
            Access::Execute => 0,
        };
        let (large, pat) = match size {
            PageSize::Small => (0, PAT_SMALL),
            PageSize::Large | PageSize::Huge => (LARGE, PAT_LARGE),
        };
        let caching = match rights.caching {
            Caching::WriteBack => 0,
            Caching::WriteCombining => pat | PWT,
            Caching::Uncached => PCD | PWT,
        };
        let owner = if rights.user { USER } else { GLOBAL };
        let shared = if rights.shared { SHARED } else { 0 };
        Entry(frame.start().as_u64() | PRESENT | access | large | caching | owner | shared)
    }

    /// What the entry means in a table of that level.
    pub fn meaning(self, level: Level) -> Meaning {
        if self.0 & PRESENT == 0 {
            return Meaning::Empty;
        }
        let is_page = level == Level::L1 || self.0 & LARGE != 0;
        let address = if is_page && level != Level::L1 { ADDRESS & !PAT_LARGE } else { ADDRESS };
        let Some(frame) = Frame::new((self.0 & address) / core_address::PAGE_SIZE) else {
            return Meaning::Empty;
        };
        if !is_page {
            return Meaning::Table(frame);
        }
        let access = match (self.0 & WRITABLE != 0, self.0 & NO_EXECUTE != 0) {
            (true, _) => Access::Write,
            (false, true) => Access::Read,
            (false, false) => Access::Execute,
        };
        let pat = if level == Level::L1 { PAT_SMALL } else { PAT_LARGE };
        let caching = if self.0 & pat != 0 {
            Caching::WriteCombining
        } else if self.0 & PCD != 0 {
            Caching::Uncached
        } else {
            Caching::WriteBack
        };
        let (user, shared) = (self.0 & USER != 0, self.0 & SHARED != 0);
        Meaning::Page(frame, Rights { access, caching, user, shared })
    }

    /// The frame of a 4 KiB page that belongs to the space it is mapped in, and to nobody else.
    #[inline]
    pub fn own_page(self) -> Option<Frame> {
        let is_own = self.0 & (PRESENT | SHARED) == PRESENT;
        if is_own { Frame::new((self.0 & ADDRESS) / core_address::PAGE_SIZE) } else { None }
    }

    /// How many of these entries of a lowest table map pages of their space's own onto `first` and the frames after
    /// it, before one that does not.
    #[inline]
    pub fn own_run(entries: &[u64], first: Frame) -> usize {
        let mut expected = first.start().as_u64() | PRESENT;
        let is_next = |entry: &&u64| {
            let is_next = (**entry ^ expected) & (ADDRESS | PRESENT | SHARED) == 0;
            expected += core_address::PAGE_SIZE;
            is_next
        };
        entries.iter().take_while(is_next).count()
    }

    /// Whether the hardware would let a page be written and executed: never true for entries made here.
    pub const fn is_writable_and_executable(self) -> bool {
        self.0 & (PRESENT | WRITABLE) == PRESENT | WRITABLE && self.0 & NO_EXECUTE == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL_ACCESS: [Access; 3] = [Access::Read, Access::Write, Access::Execute];
    const ALL_CACHING: [Caching; 3] =
        [Caching::WriteBack, Caching::WriteCombining, Caching::Uncached];

    #[test]
    fn an_entry_says_what_it_was_made_from() {
        for access in ALL_ACCESS {
            for caching in ALL_CACHING {
                for (user, shared) in [(false, false), (true, false), (true, true)] {
                    for size in [PageSize::Small, PageSize::Large, PageSize::Huge] {
                        let rights = Rights { access, caching, user, shared };
                        let frame = Frame::new(size.frames() * 3).unwrap();
                        let entry = Entry::page(frame, size, rights);
                        assert_eq!(entry.meaning(size.level()), Meaning::Page(frame, rights));
                        assert!(!entry.is_writable_and_executable());
                    }
                }
            }
        }
    }

    #[test]
    fn a_run_is_of_pages_of_the_spaces_own() {
        let frame = |number| Frame::new(number).unwrap();
        let rights = Rights::user(Access::Write);
        let page = |number| Entry::page(frame(number), PageSize::Small, rights).0;
        let shared = Entry::page(frame(9), PageSize::Small, Rights { shared: true, ..rights });
        assert_eq!(shared.own_page(), None);
        assert_eq!(Entry::EMPTY.own_page(), None);
        assert_eq!(Entry(page(7)).own_page(), Some(frame(7)));
        let dirty = 1 << 6;
        assert_eq!(Entry::own_run(&[page(7), page(8) | dirty, shared.0, page(10)], frame(7)), 2);
        assert_eq!(Entry::own_run(&[page(7), page(9)], frame(7)), 1);
        assert_eq!(Entry::own_run(&[page(7), 0, page(9)], frame(7)), 1);
        assert_eq!(Entry::own_run(&[page(8)], frame(7)), 0);
        assert_eq!(Entry::own_run(&[], frame(7)), 0);
    }

    #[test]
    fn bits_are_those_of_the_manual() {
        let frame = Frame::new(0x200).unwrap();
        let text = Entry::page(frame, PageSize::Small, Rights::kernel(Access::Execute));
        assert_eq!(text.0, 0x20_0101);
        let data = Entry::page(frame, PageSize::Large, Rights::kernel(Access::Write));
        assert_eq!(data.0, 0x8000_0000_0020_0183);
        let device = Entry::page(frame, PageSize::Small, Rights::device());
        assert_eq!(device.0, 0x8000_0000_0020_011b);
        let screen = Rights { caching: Caching::WriteCombining, ..Rights::kernel(Access::Write) };
        assert_eq!(Entry::page(frame, PageSize::Small, screen).0, 0x8000_0000_0020_018b);
        assert_eq!(Entry::page(frame, PageSize::Large, screen).0, 0x8000_0000_0020_118b);
        assert_eq!(Entry::table(frame, false).0, 0x20_0003);
        assert_eq!(Entry::table(frame, true).0, 0x20_0007);
    }

    #[test]
    fn the_pat_gives_each_index_its_type() {
        let types = PAT_VALUE.to_le_bytes();
        // WB, WT, UC-, UC, WP, WC (encodings of table 11-10).
        assert_eq!(types, [6, 4, 7, 0, 5, 1, 7, 0]);
    }
}
