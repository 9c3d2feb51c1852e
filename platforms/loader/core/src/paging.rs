//! Page tables for the executable and the direct map: 4 or 5 levels, 4 KiB and 2 MiB pages.
//!
//! Nothing is mapped for user mode, and nothing twice: mapping a page that is mapped
//! otherwise is an error of the loader and refused. Intel SDM volume 3, 5.5.

use crate::memmap::Kind;
use crate::memory::{ALLOCATION_LIMIT, Frames, Memory, PAGE, get_u64, put_u64};
use crate::refusal::Refusal;

const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const WRITE_THROUGH: u64 = 1 << 3;
const LARGE: u64 = 1 << 7;
const PAT_IN_PAGE: u64 = 1 << 7;
const PAT_IN_LARGE_PAGE: u64 = 1 << 12;
const NO_EXECUTE: u64 = 1 << 63;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// A 2 MiB page.
pub const LARGE_PAGE: u64 = 2 << 20;

/// Rights and cache type of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Writable.
    pub write: bool,
    /// Executable.
    pub execute: bool,
    /// Write-combining (PAT entry 5) instead of write-back (entry 0).
    pub write_combining: bool,
}

impl Rights {
    /// The direct map's: everything, write-back.
    pub const ALL: Self = Self { write: true, execute: true, write_combining: false };
    /// A framebuffer's: everything, write-combining.
    pub const FRAMEBUFFER: Self = Self { write: true, execute: true, write_combining: true };

    fn bits(self, large: bool) -> u64 {
        let mut bits = PRESENT;
        if self.write {
            bits |= WRITABLE;
        }
        if !self.execute {
            bits |= NO_EXECUTE;
        }
        if self.write_combining {
            bits |= WRITE_THROUGH | if large { PAT_IN_LARGE_PAGE } else { PAT_IN_PAGE };
        }
        if large {
            bits |= LARGE;
        }
        bits
    }
}

/// Tables under construction.
#[derive(Clone, Copy, Debug)]
pub struct PageTables {
    root: u64,
    levels: u8,
}

impl PageTables {
    /// An empty root of 4 or 5 levels.
    pub fn new(memory: &mut impl Memory, frames: &mut Frames, levels: u8) -> Result<Self, Refusal> {
        Ok(Self { root: table(memory, frames)?, levels })
    }

    /// Physical address of the root.
    pub fn root(&self) -> u64 {
        self.root
    }

    /// Maps `length` bytes at `virt` to `phys`; all three are multiples of a page.
    pub fn map(
        &self,
        memory: &mut impl Memory,
        frames: &mut Frames,
        virt: u64,
        phys: u64,
        length: u64,
        rights: Rights,
    ) -> Result<(), Refusal> {
        let mut done = 0;
        while done < length {
            let (virt, phys) = (virt.wrapping_add(done), phys + done);
            let large = (virt | phys) % LARGE_PAGE == 0 && length - done >= LARGE_PAGE;
            let lowest = if large { 2 } else { 1 };
            let mut current = self.root;
            let mut level = self.levels;
            while level > lowest {
                current = descend(memory, frames, current, index(virt, level))?;
                level -= 1;
            }
            let entry = phys | rights.bits(large);
            let bytes = page(memory, current)?;
            let at = index(virt, level) * 8;
            let old = get_u64(bytes, at).unwrap_or(0);
            if old != 0 && old != entry {
                return Err(Refusal::Unreachable { base: phys, length: PAGE });
            }
            put_u64(bytes, at, entry);
            done += if large { LARGE_PAGE } else { PAGE };
        }
        Ok(())
    }

    /// A second root for the moment of switching: the same upper half, and `top` bytes of
    /// memory from 0 mapped one to one.
    pub fn with_identity(
        &self,
        memory: &mut impl Memory,
        frames: &mut Frames,
        top: u64,
    ) -> Result<u64, Refusal> {
        let other = Self::new(memory, frames, self.levels)?;
        let top = top.next_multiple_of(LARGE_PAGE);
        other.map(memory, frames, 0, 0, top, Rights::ALL)?;
        for slot in 256..512 {
            let entry = get_u64(page(memory, self.root)?, slot * 8).unwrap_or(0);
            put_u64(page(memory, other.root)?, slot * 8, entry);
        }
        Ok(other.root)
    }
}

fn index(virt: u64, level: u8) -> usize {
    (virt >> (12 + 9 * (u32::from(level) - 1)) & 511) as usize
}

fn page(memory: &mut impl Memory, base: u64) -> Result<&mut [u8], Refusal> {
    memory.bytes(base, PAGE).ok_or(Refusal::Unreachable { base, length: PAGE })
}

fn table(memory: &mut impl Memory, frames: &mut Frames) -> Result<u64, Refusal> {
    let base = frames.allocate(1, PAGE, ALLOCATION_LIMIT, Kind::BootloaderReclaimable)?;
    page(memory, base)?.fill(0);
    Ok(base)
}

fn descend(
    memory: &mut impl Memory,
    frames: &mut Frames,
    parent: u64,
    slot: usize,
) -> Result<u64, Refusal> {
    let entry = get_u64(page(memory, parent)?, slot * 8).unwrap_or(0);
    if entry & PRESENT == 0 {
        let child = table(memory, frames)?;
        put_u64(page(memory, parent)?, slot * 8, child | PRESENT | WRITABLE);
        return Ok(child);
    }
    if entry & LARGE != 0 {
        return Err(Refusal::Unreachable { base: entry & ADDRESS, length: LARGE_PAGE });
    }
    Ok(entry & ADDRESS)
}

/// What a finished set of tables says about one address; for checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translation {
    /// Physical address.
    pub phys: u64,
    /// Bytes of the page.
    pub page: u64,
    /// Rights and cache type.
    pub rights: Rights,
}

/// Walks tables as the processor would.
pub fn translate(memory: &impl Memory, root: u64, levels: u8, virt: u64) -> Option<Translation> {
    let mut current = root;
    let mut level = levels;
    loop {
        let entry = get_u64(memory.view(current, PAGE)?, index(virt, level) * 8)?;
        if entry & PRESENT == 0 {
            return None;
        }
        let large = level == 2 && entry & LARGE != 0;
        if level == 1 || large {
            let size = if large { LARGE_PAGE } else { PAGE };
            let pat = if large { PAT_IN_LARGE_PAGE } else { PAT_IN_PAGE };
            return Some(Translation {
                phys: (entry & ADDRESS & !(size - 1)) + virt % size,
                page: size,
                rights: Rights {
                    write: entry & WRITABLE != 0,
                    execute: entry & NO_EXECUTE == 0,
                    write_combining: entry & pat != 0 && entry & WRITE_THROUGH != 0,
                },
            });
        }
        current = entry & ADDRESS;
        level -= 1;
    }
}
