//! Reading what the loader left: words, strings, page tables, the memory map.

use crate::requests::{Answer, HHDM, MEMORY_MAP};

/// A word at a virtual address.
pub fn word(address: u64) -> u64 {
    // SAFETY: addresses come from responses; a wrong one faults, and the test fails.
    unsafe { (address as *const u64).read_unaligned() }
}

/// A byte at a virtual address.
pub fn byte(address: u64) -> u8 {
    // SAFETY: as for `word`.
    unsafe { (address as *const u8).read() }
}

/// A NUL-terminated string.
pub fn text(address: u64) -> &'static str {
    let mut length = 0;
    while length < 4096 && byte(address + length) != 0 {
        length += 1;
    }
    // SAFETY: the bytes were just read, and the loader's memory does not change.
    let bytes = unsafe { core::slice::from_raw_parts(address as *const u8, length as usize) };
    core::str::from_utf8(bytes).unwrap_or("(not text)")
}

/// The direct map's base.
pub fn hhdm() -> Option<u64> {
    Some(word(HHDM.response()? + 8))
}

/// An entry of the memory map.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// First byte.
    pub base: u64,
    /// Bytes.
    pub length: u64,
    /// The protocol's number.
    pub kind: u64,
}

/// The memory map.
pub fn map() -> impl Iterator<Item = Region> + Clone {
    let (count, list) = match MEMORY_MAP.response() {
        Some(response) => (word(response + 8), word(response + 16)),
        None => (0, 0),
    };
    (0..count).map(move |index| {
        let entry = word(list + index * 8);
        Region { base: word(entry), length: word(entry + 8), kind: word(entry + 16) }
    })
}

/// The kind of a physical address, or 99 for a hole.
pub fn kind_of(phys: u64) -> u64 {
    map().find(|r| r.base <= phys && phys - r.base < r.length).map_or(99, |r| r.kind)
}

/// The kind of what a virtual address in the direct map shows; 98 outside the direct map.
pub fn kind_of_direct(virt: u64) -> Kind {
    match hhdm() {
        _ if MEMORY_MAP.response().is_none() => Kind(None),
        None => Kind(None),
        Some(base) if virt >= base => Kind(Some(kind_of(virt - base))),
        Some(_) => Kind(Some(98)),
    }
}

/// A kind, unknown without memory map or direct map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(pub Option<u64>);

impl core::fmt::Display for Kind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0 {
            Some(kind) => kind.fmt(f),
            None => f.write_str("unknown"),
        }
    }
}

impl Kind {
    /// Whether firmware tables may lie there; unknown counts as not.
    pub fn holds_tables(self) -> bool {
        matches!(self.0, Some(2 | 3 | 8))
    }
}

/// What the page tables say about an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Physical address of the byte.
    pub phys: u64,
    /// Writable, executable, user.
    pub rights: (bool, bool, bool),
    /// Page attribute index.
    pub cache: u8,
    /// Bytes of the page.
    pub size: u64,
}

/// Walks the page tables from `root` through the direct map; `visit` sees each table.
pub fn walk(root: u64, levels: u32, virt: u64, visit: &mut dyn FnMut(u64)) -> Option<Leaf> {
    let base = hhdm()?;
    let mut table = root & 0x000f_ffff_ffff_f000;
    let (mut write, mut execute, mut user) = (true, true, true);
    for level in (1..=levels).rev() {
        visit(table);
        let shift = 12 + 9 * (level - 1);
        let entry = word(base + table + (virt >> shift & 511) * 8);
        if entry & 1 == 0 {
            return None;
        }
        write &= entry & 2 != 0;
        user &= entry & 4 != 0;
        execute &= entry >> 63 == 0;
        let is_large = level > 1 && entry & 0x80 != 0;
        if level == 1 || is_large {
            let size = 1u64 << shift;
            let pat = if is_large { entry >> 12 & 1 } else { entry >> 7 & 1 };
            let cache = (pat << 2 | entry >> 3 & 3) as u8;
            let frame = entry & 0x000f_ffff_ffff_f000 & !(size - 1);
            return Some(Leaf {
                phys: frame + virt % size,
                rights: (write, execute, user),
                cache,
                size,
            });
        }
        table = entry & 0x000f_ffff_ffff_f000;
    }
    None
}
