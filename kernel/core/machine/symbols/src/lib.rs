//! Names for code addresses, from the symbol table of an ELF file.
//!
//! Used while panicking: no allocation, no panic on any input, one pass over the table per
//! question. The file is checked once by [`Symbols::parse`]; a damaged one gives no symbols.
#![no_std]

use core::fmt;
use elf::ElfBytes;
use elf::abi::STT_FUNC;
use elf::endian::LittleEndian;
use elf::string_table::StringTable;
use elf::symbol::SymbolTable;

/// The functions of an ELF file.
pub struct Symbols<'a> {
    table: SymbolTable<'a, LittleEndian>,
    names: StringTable<'a>,
    /// What to add to a symbol's value to get its address in memory.
    slide: u64,
}

/// A function that holds an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found<'a> {
    /// As the linker knows it; print it through [`Demangled`].
    pub name: &'a str,
    /// Bytes from the function's start to the address.
    pub offset: u64,
}

impl<'a> Symbols<'a> {
    /// The symbol table of `file`, whose image lies `slide` bytes above its linked addresses.
    pub fn parse(file: &'a [u8], slide: u64) -> Option<Self> {
        let elf = ElfBytes::<LittleEndian>::minimal_parse(file).ok()?;
        let (table, names) = elf.symbol_table().ok()??;
        Some(Self { table, names, slide })
    }

    /// How many symbols there are.
    pub fn count(&self) -> usize {
        self.table.len()
    }

    /// The function that holds `address`. A function without a size reaches to the next symbol.
    pub fn lookup(&self, address: u64) -> Option<Found<'a>> {
        let linked = address.wrapping_sub(self.slide);
        let best = self
            .table
            .iter()
            .filter(|s| s.st_symtype() == STT_FUNC && s.st_value <= linked && s.st_shndx != 0)
            .filter(|s| s.st_size == 0 || linked - s.st_value < s.st_size)
            .max_by_key(|s| (s.st_value, s.st_size != 0))?;
        let name = self.names.get(usize::try_from(best.st_name).ok()?).ok()?;
        Some(Found { name, offset: linked - best.st_value })
    }
}

/// A symbol's name as its source has it, without the hash.
pub struct Demangled<'a>(pub &'a str);

impl fmt::Display for Demangled<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", rustc_demangle::demangle(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::string::ToString;
    use std::vec::Vec;

    /// An ELF file with a string table and these function symbols (name, value, size).
    fn elf(functions: &[(&str, u64, u64)]) -> Vec<u8> {
        let mut names = std::vec![0u8];
        let mut symbols = std::vec![0u8; 24];
        for (name, value, size) in functions {
            symbols.extend((names.len() as u32).to_le_bytes());
            symbols.extend([STT_FUNC, 0, 1, 0]);
            symbols.extend(value.to_le_bytes());
            symbols.extend(size.to_le_bytes());
            names.extend(name.as_bytes());
            names.push(0);
        }
        let mut file = std::vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        file.extend(2u16.to_le_bytes());
        file.extend(62u16.to_le_bytes());
        file.extend(1u32.to_le_bytes());
        file.extend([0; 16]);
        let sections = 64 + names.len() + symbols.len();
        file.extend((sections as u64).to_le_bytes());
        file.extend(0u32.to_le_bytes());
        for half in [64u16, 0, 0, 64, 3, 0] {
            file.extend(half.to_le_bytes());
        }
        let name_len = names.len() as u64;
        file.extend(&names);
        file.extend(&symbols);
        let mut header = |kind: u32, offset: u64, size: u64, link: u32, entry: u64| {
            file.extend(0u32.to_le_bytes());
            file.extend(kind.to_le_bytes());
            file.extend([0; 16]);
            file.extend(offset.to_le_bytes());
            file.extend(size.to_le_bytes());
            file.extend(link.to_le_bytes());
            file.extend(0u32.to_le_bytes());
            file.extend(1u64.to_le_bytes());
            file.extend(entry.to_le_bytes());
        };
        header(0, 0, 0, 0, 0);
        header(3, 64, name_len, 0, 0);
        header(2, 64 + name_len, symbols.len() as u64, 1, 24);
        file
    }

    #[test]
    fn finds_the_function_around_an_address() {
        let file = elf(&[("low", 0x1000, 0x10), ("high", 0x2000, 0x20), ("open", 0x3000, 0)]);
        let symbols = Symbols::parse(&file, 0).unwrap();
        let found = |a| symbols.lookup(a).map(|f| (f.name, f.offset));
        assert_eq!(found(0x1000), Some(("low", 0)));
        assert_eq!(found(0x100f), Some(("low", 15)));
        assert_eq!(found(0x1010), None);
        assert_eq!(found(0x201f), Some(("high", 0x1f)));
        assert_eq!(found(0x9999), Some(("open", 0x6999)));
        assert_eq!(found(0xfff), None);
        assert_eq!(symbols.count(), 4);
    }

    #[test]
    fn a_slide_moves_every_symbol() {
        let file = elf(&[("f", 0x1000, 0x10)]);
        let symbols = Symbols::parse(&file, 0x100_0000).unwrap();
        assert_eq!(symbols.lookup(0x1000), None);
        assert_eq!(symbols.lookup(0x100_1004), Some(Found { name: "f", offset: 4 }));
    }

    #[test]
    fn a_damaged_file_never_panics() {
        let file = elf(&[("low", 0x1000, 0x10), ("high", 0x2000, 0x20)]);
        for end in 0..file.len() {
            if let Some(symbols) = Symbols::parse(&file[..end], 0) {
                symbols.lookup(0x1008);
            }
        }
        let mut state = 7u64;
        for _ in 0..20_000 {
            let mut damaged = file.clone();
            for _ in 0..4 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let at = (state >> 33) as usize % damaged.len();
                damaged[at] = (state >> 20) as u8;
            }
            if let Some(symbols) = Symbols::parse(&damaged, 0) {
                symbols.lookup(0x1008);
                symbols.lookup(u64::MAX);
            }
        }
    }

    #[test]
    fn names_lose_their_hash() {
        let name = "_ZN6kernel4main17h0123456789abcdefE";
        assert_eq!(Demangled(name).to_string(), "kernel::main");
        assert_eq!(Demangled("_start").to_string(), "_start");
    }
}
