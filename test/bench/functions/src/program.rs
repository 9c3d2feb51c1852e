//! Files of the image: their bytes, to recognise a block, and their symbols, to name it.

use elf::ElfBytes;
use elf::abi::{PT_LOAD, STT_FUNC, STT_NOTYPE};
use elf::endian::LittleEndian;

use crate::log::Instruction;

/// The kernel or a user program.
#[derive(Debug)]
pub struct Program {
    /// Its file name without extension.
    pub name: String,
    /// Loaded bytes by address.
    segments: Vec<(u64, Vec<u8>)>,
    /// First address and name, by address.
    symbols: Vec<(u64, String)>,
}

impl Program {
    /// Reads an ELF file with its symbol table.
    pub fn read(name: &str, file: &[u8]) -> Result<Self, String> {
        let wrong = |error: elf::ParseError| format!("{name}: {error}");
        let elf = ElfBytes::<LittleEndian>::minimal_parse(file).map_err(wrong)?;
        let mut segments = Vec::new();
        for header in elf.segments().ok_or(format!("{name}: no segments"))? {
            if header.p_type == PT_LOAD {
                let bytes = elf.segment_data(&header).map_err(wrong)?;
                segments.push((header.p_vaddr, bytes.to_vec()));
            }
        }
        let (table, names) =
            elf.symbol_table().map_err(wrong)?.ok_or(format!("{name}: no symbols"))?;
        let mut symbols: Vec<(u64, u64, String)> = Vec::new();
        for symbol in table {
            let is_code = matches!(symbol.st_symtype(), STT_FUNC | STT_NOTYPE);
            let text = names.get(symbol.st_name as usize).map_err(wrong)?;
            if is_code && symbol.st_value != 0 && !text.is_empty() {
                // Without hash, and with arguments as in a type: `f<8>`.
                let plain = format!("{:#}", rustc_demangle::demangle(text)).replace("::<", "<");
                symbols.push((symbol.st_value, symbol.st_size, plain));
            }
        }
        // Of two names for one address the one with a size is the function's.
        symbols.sort_by(|a, b| (a.0, b.1).cmp(&(b.0, a.1)));
        symbols.dedup_by_key(|symbol| symbol.0);
        let symbols = symbols.into_iter().map(|(address, _, name)| (address, name)).collect();
        Ok(Self { name: name.to_owned(), segments, symbols })
    }

    /// Whether the program has these instructions where they are.
    pub fn has(&self, block: &[Instruction]) -> bool {
        block.iter().all(|instruction| self.bytes_at(instruction).is_some())
    }

    fn bytes_at(&self, instruction: &Instruction) -> Option<()> {
        let (start, bytes) =
            self.segments.iter().rfind(|(start, _)| *start <= instruction.address)?;
        let at = (instruction.address - start) as usize;
        let found = bytes.get(at..at + instruction.bytes.len())?;
        (found == instruction.bytes).then_some(())
    }

    /// The function an address is in.
    pub fn function(&self, address: u64) -> &str {
        let after = self.symbols.partition_point(|(start, _)| *start <= address);
        match after.checked_sub(1).and_then(|index| self.symbols.get(index)) {
            Some((_, name)) => name,
            None => "?",
        }
    }
}
