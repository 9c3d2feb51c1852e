//! Relocations of a position-independent executable, applied to the loaded image.
//!
//! Served: RELATIVE, 64, GLOB_DAT, JUMP_SLOT and packed RELR. Everything is read from the
//! loaded bytes and checked against their length; System V ABI, x86-64 supplement, 4.4.

use core::fmt;

use crate::image::Image;
use crate::memory::{get_u16, get_u64, put_u64};

/// What is wrong with the relocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelocationError {
    /// The tables lie outside the image or have a wrong entry size.
    Tables,
    /// REL tables, which x86-64 does not use.
    RelTable,
    /// A relocation of a type that is not served.
    Type(u32),
    /// A relocation that would write outside the image.
    Target(u64),
    /// A symbol that is not defined in the image.
    Symbol(u32),
}

impl fmt::Display for RelocationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("executable: ")?;
        match self {
            Self::Tables => f.write_str("relocation tables lie outside the image or are damaged"),
            Self::RelTable => f.write_str("has a DT_REL table; x86-64 uses DT_RELA"),
            Self::Type(kind) => write!(
                f,
                "relocation type {kind} is not served; expected RELATIVE, 64, GLOB_DAT or JUMP_SLOT"
            ),
            Self::Target(address) => {
                write!(f, "a relocation writes outside the image at {address:#x}")
            }
            Self::Symbol(index) => write!(f, "symbol {index} is not defined; link it statically"),
        }
    }
}

const DT_PLTRELSZ: u64 = 2;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_RELAENT: u64 = 9;
const DT_REL: u64 = 17;
const DT_JMPREL: u64 = 23;
const DT_RELRSZ: u64 = 35;
const DT_RELR: u64 = 36;

const R_NONE: u32 = 0;
const R_64: u32 = 1;
const R_GLOB_DAT: u32 = 6;
const R_JUMP_SLOT: u32 = 7;
const R_RELATIVE: u32 = 8;

const RELA_SIZE: u64 = 24;
const SYMBOL_SIZE: u64 = 24;

/// Applies every relocation for an image slid by `slide`. `bytes` is the loaded block.
pub fn relocate(bytes: &mut [u8], image: &Image, slide: u64) -> Result<(), RelocationError> {
    let Some((dynamic, dynamic_size)) = image.dynamic else { return Ok(()) };
    let mut tags = [0u64; 37];
    let start = (dynamic - image.start) as usize;
    for entry in 0..(dynamic_size / 16) as usize {
        let at = start + entry * 16;
        let tag = get_u64(bytes, at).ok_or(RelocationError::Tables)?;
        let value = get_u64(bytes, at + 8).ok_or(RelocationError::Tables)?;
        if tag == 0 {
            break;
        }
        if tag == DT_REL {
            return Err(RelocationError::RelTable);
        }
        if let Some(slot) = tags.get_mut(tag as usize) {
            *slot = value;
        }
    }
    let tag = |tag: u64| tags.get(tag as usize).copied().unwrap_or(0);
    let mut work = Work { bytes, start: image.start, slide, symbols: tag(DT_SYMTAB) };
    if tag(DT_RELASZ) > 0 {
        if tag(DT_RELAENT) != RELA_SIZE {
            return Err(RelocationError::Tables);
        }
        work.rela_table(tag(DT_RELA), tag(DT_RELASZ))?;
    }
    work.rela_table(tag(DT_JMPREL), tag(DT_PLTRELSZ))?;
    work.relr_table(tag(DT_RELR), tag(DT_RELRSZ))
}

struct Work<'a> {
    bytes: &'a mut [u8],
    start: u64,
    slide: u64,
    symbols: u64,
}

impl Work<'_> {
    fn offset(&self, address: u64) -> Option<usize> {
        usize::try_from(address.checked_sub(self.start)?).ok()
    }

    fn word(&self, address: u64) -> Result<u64, RelocationError> {
        self.offset(address)
            .and_then(|offset| get_u64(self.bytes, offset))
            .ok_or(RelocationError::Tables)
    }

    fn put(&mut self, address: u64, value: u64) -> Result<(), RelocationError> {
        let offset = self.offset(address).ok_or(RelocationError::Target(address))?;
        put_u64(self.bytes, offset, value).ok_or(RelocationError::Target(address))
    }

    fn rela_table(&mut self, table: u64, size: u64) -> Result<(), RelocationError> {
        if !size.is_multiple_of(RELA_SIZE) || size > self.bytes.len() as u64 {
            return Err(RelocationError::Tables);
        }
        for index in 0..size / RELA_SIZE {
            let at = table.checked_add(index * RELA_SIZE).ok_or(RelocationError::Tables)?;
            let target = self.word(at)?;
            let info = self.word(at.wrapping_add(8))?;
            let addend = self.word(at.wrapping_add(16))?;
            let symbol = (info >> 32) as u32;
            let value = match info as u32 {
                R_NONE => continue,
                R_RELATIVE => self.slide.wrapping_add(addend),
                R_64 => self.symbol(symbol)?.wrapping_add(addend),
                R_GLOB_DAT | R_JUMP_SLOT => self.symbol(symbol)?,
                other => return Err(RelocationError::Type(other)),
            };
            self.put(target, value)?;
        }
        Ok(())
    }

    fn symbol(&self, index: u32) -> Result<u64, RelocationError> {
        let at = self
            .symbols
            .checked_add(u64::from(index) * SYMBOL_SIZE)
            .and_then(|address| self.offset(address))
            .filter(|_| self.symbols != 0)
            .ok_or(RelocationError::Tables)?;
        let section = get_u16(self.bytes, at + 6).ok_or(RelocationError::Tables)?;
        let value = get_u64(self.bytes, at + 8).ok_or(RelocationError::Tables)?;
        // SHN_UNDEF: only a weak symbol may be missing, and then it is zero.
        if section == 0 {
            let binding = self.bytes.get(at + 4).copied().unwrap_or(0) >> 4;
            const STB_WEAK: u8 = 2;
            return if binding == STB_WEAK || index == 0 {
                Ok(0)
            } else {
                Err(RelocationError::Symbol(index))
            };
        }
        // SHN_ABS does not move.
        const SHN_ABS: u16 = 0xfff1;
        Ok(if section == SHN_ABS { value } else { value.wrapping_add(self.slide) })
    }

    fn relr_table(&mut self, table: u64, size: u64) -> Result<(), RelocationError> {
        if !size.is_multiple_of(8) || size > self.bytes.len() as u64 {
            return Err(RelocationError::Tables);
        }
        let mut next = 0u64;
        for index in 0..size / 8 {
            let entry = self.word(table.checked_add(index * 8).ok_or(RelocationError::Tables)?)?;
            if entry & 1 == 0 {
                self.add_slide(entry)?;
                next = entry.wrapping_add(8);
            } else {
                for bit in 0..63 {
                    if entry >> (bit + 1) & 1 == 1 {
                        self.add_slide(next.wrapping_add(bit * 8))?;
                    }
                }
                next = next.wrapping_add(63 * 8);
            }
        }
        Ok(())
    }

    fn add_slide(&mut self, address: u64) -> Result<(), RelocationError> {
        let value = self.word(address).map_err(|_| RelocationError::Target(address))?;
        self.put(address, value.wrapping_add(self.slide))
    }
}
