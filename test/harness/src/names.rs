//! Names for a guest's code: the symbols of the file it was booted from, if they are its own.
//!
//! A file of another build has a name for every address as well, and each is wrong. So the code at an
//! address is compared with the file's before a name is believed.

use core_symbols::{Demangled, Symbols};
use elf::ElfBytes;
use elf::abi::PT_LOAD;
use elf::endian::LittleEndian;

/// A kernel's file.
pub struct Names<'a> {
    symbols: Symbols<'a>,
    file: ElfBytes<'a, LittleEndian>,
}

impl<'a> Names<'a> {
    /// None: it is no ELF file with symbols.
    pub fn parse(file: &'a [u8]) -> Option<Names<'a>> {
        let symbols = Symbols::parse(file, 0)?;
        Some(Names { symbols, file: ElfBytes::minimal_parse(file).ok()? })
    }

    /// Whether the file has these two words at an address of its image.
    pub fn has(&self, address: u64, words: [u64; 2]) -> bool {
        let found = self.file.segments().into_iter().flatten().find_map(|segment| {
            let offset = address.checked_sub(segment.p_vaddr)?;
            let is_inside = segment.p_type == PT_LOAD && offset < segment.p_filesz;
            let data = is_inside.then(|| self.file.segment_data(&segment).ok())??;
            let bytes = data.get(usize::try_from(offset).ok()?..)?.first_chunk::<16>()?;
            Some(u128::from_le_bytes(*bytes))
        });
        found == Some(u128::from(words[0]) | u128::from(words[1]) << 64)
    }

    /// `function+offset` for an address, if it is in one.
    pub fn name(&self, address: u64) -> Option<String> {
        let found = self.symbols.lookup(address)?;
        Some(format!("{}+{:#x}", Demangled(found.name), found.offset))
    }
}
