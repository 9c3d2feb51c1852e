//! The checks, from the outside in: identification, header, table, each entry, their neighbours.

use arrayvec::ArrayVec;
use core_address::PAGE_SIZE;
use core_paging::Access;
use elf::abi;
use elf::endian::LittleEndian;
use elf::file::{Class, FileHeader, parse_ident};
use elf::segment::{ProgramHeader, SegmentTable};

use crate::notes::{Meaning, Notes};
use crate::{Error, FileBytes, Guards, Segment, Source, Tls, limits};

/// Bytes of an ELF64 header.
const HEADER_BYTES: usize = 64;
/// Bytes of an ELF64 program header.
const ENTRY_BYTES: usize = 56;
/// Bytes of the longest program header table.
const TABLE_BYTES: usize = limits::HEADERS * ENTRY_BYTES;

/// An executable every field of which was found sound: what it says can be mapped as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    entry: u64,
    segments: ArrayVec<Segment, { limits::SEGMENTS }>,
    tls: Option<Tls>,
    guards: Guards,
    abi: Option<u32>,
}

impl Image {
    /// Checks a file from its first byte to its last header; each fault has an error of its own. Headers are copied,
    /// once, and judged as copies.
    pub fn parse(file: &(impl Source + ?Sized)) -> Result<Self, Error> {
        let header = file_header(file)?;
        let mut table = [0; TABLE_BYTES];
        let headers = program_headers(file, &header, &mut table)?;
        let mut image = Self {
            abi: None,
            entry: header.e_entry,
            segments: ArrayVec::new(),
            tls: None,
            guards: Guards::new(),
        };
        for (index, entry) in headers.iter().enumerate() {
            match entry.p_type {
                abi::PT_INTERP => return Err(Error::Interpreter),
                abi::PT_DYNAMIC => return Err(Error::Dynamic),
                abi::PT_GNU_STACK if entry.p_flags & abi::PF_X != 0 => {
                    return Err(Error::ExecutableStack);
                }
                abi::PT_LOAD => image.add_segment(index, segment(file, index, &entry)?)?,
                abi::PT_TLS if image.tls.is_some() => return Err(Error::SecondTls),
                abi::PT_TLS => image.tls = Some(template(file, index, &entry)?),
                // Unwind tables and what other systems define: nothing to load. Notes are read below.
                _ => {}
            }
        }
        if image.segments.is_empty() {
            return Err(Error::NoSegments);
        }
        if !image.segments.iter().any(|segment| segment.is_code(image.entry)) {
            return Err(Error::Entry(image.entry));
        }
        let mut notes = 0;
        for (index, entry) in headers.iter().enumerate() {
            if entry.p_type == abi::PT_NOTE {
                image.add_notes(file, index, &entry, &mut notes)?;
            }
        }
        Ok(image)
    }

    /// Where the program begins, in the file's bytes of an executable segment.
    pub const fn entry(&self) -> u64 {
        self.entry
    }

    /// Whether it is made for this system, as a note of it says.
    pub const fn check_abi(&self) -> Result<(), Error> {
        match self.abi {
            Some(abi_types::ABI_NUMBER) => Ok(()),
            Some(other) => Err(Error::Abi(other)),
            None => Err(Error::NoAbi),
        }
    }

    /// The segments, by ascending address; no two share a page.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// What to map: the segments without their guards, by ascending address.
    pub fn parts(&self) -> impl Iterator<Item = Segment> {
        self.segments.iter().flat_map(|segment| {
            let guards = self.guards.pages_in(segment.start..segment.end());
            segment.without(guards)
        })
    }

    /// The guards below its stacks.
    pub const fn guards(&self) -> &Guards {
        &self.guards
    }

    /// The template of thread-local data.
    pub const fn tls(&self) -> Option<Tls> {
        self.tls
    }

    /// Pages to map: those of all segments but for the guards.
    pub fn pages(&self) -> u64 {
        self.segment_pages() - self.guards.pages()
    }

    /// Pages of all segments.
    fn segment_pages(&self) -> u64 {
        self.segments.iter().map(|segment| segment.pages).sum()
    }

    /// Takes a segment that is sound on its own; checks it against those before it.
    fn add_segment(&mut self, header: usize, segment: Segment) -> Result<(), Error> {
        if let Some(before) = self.segments.last() {
            if segment.start < before.start {
                return Err(Error::Order { header });
            }
            if segment.start < before.end() {
                return Err(Error::Overlap { header });
            }
        }
        if (self.segment_pages() + segment.pages) > limits::IMAGE_BYTES / PAGE_SIZE {
            return Err(Error::TooLarge);
        }
        self.segments.try_push(segment).map_err(|_| Error::TooManySegments)
    }

    /// Takes what the notes of a `PT_NOTE` declare; `count` are the notes read before.
    fn add_notes(
        &mut self,
        file: &(impl Source + ?Sized),
        header: usize,
        entry: &ProgramHeader,
        count: &mut usize,
    ) -> Result<(), Error> {
        let bytes = FileBytes::within(entry.p_offset, entry.p_filesz, file.length());
        let bytes = bytes.ok_or(Error::OutsideFile { header })?;
        for note in Notes::new(file, bytes, header, entry)? {
            let meaning = note?;
            *count += 1;
            if *count > limits::NOTES {
                return Err(Error::TooManyNotes);
            }
            match meaning {
                Meaning::Guards(guards) => self.guards.add(guards, &self.segments)?,
                Meaning::Abi(_) if self.abi.is_some() => return Err(Error::SecondAbi),
                Meaning::Abi(number) => self.abi = Some(number),
                Meaning::Nothing => {}
            }
        }
        Ok(())
    }
}

/// Reads and checks the header.
fn file_header(file: &(impl Source + ?Sized)) -> Result<FileHeader<LittleEndian>, Error> {
    let short = Error::Short(usize::try_from(file.length()).unwrap_or(usize::MAX));
    let mut header = [0; HEADER_BYTES];
    if !file.read(0, &mut header) {
        return Err(short);
    }
    let (ident, tail) = header.split_at_checked(abi::EI_NIDENT).ok_or(short)?;
    if ident.get(..abi::ELFMAGIC.len()) != Some(abi::ELFMAGIC.as_slice()) {
        return Err(Error::Magic);
    }
    let byte = |at: usize| ident.get(at).copied().unwrap_or_default();
    if byte(abi::EI_CLASS) != abi::ELFCLASS64 {
        return Err(Error::Class(byte(abi::EI_CLASS)));
    }
    if byte(abi::EI_DATA) != abi::ELFDATA2LSB {
        return Err(Error::Endianness(byte(abi::EI_DATA)));
    }
    if byte(abi::EI_VERSION) != abi::EV_CURRENT {
        return Err(Error::Version(byte(abi::EI_VERSION).into()));
    }
    let ident = parse_ident::<LittleEndian>(ident).map_err(|_| Error::Magic)?;
    let header = FileHeader::parse_tail(ident, tail).map_err(|_| short)?;
    if (header.osabi, header.abiversion) != (abi::ELFOSABI_SYSV, 0) {
        return Err(Error::SystemAbi(header.osabi, header.abiversion));
    }
    if header.version != u32::from(abi::EV_CURRENT) {
        return Err(Error::Version(header.version));
    }
    if header.e_machine != abi::EM_X86_64 {
        return Err(Error::Machine(header.e_machine));
    }
    match header.e_type {
        abi::ET_EXEC => {}
        abi::ET_DYN => return Err(Error::PositionIndependent),
        other => return Err(Error::Type(other)),
    }
    if header.e_flags != 0 {
        return Err(Error::Flags(header.e_flags));
    }
    if usize::from(header.e_ehsize) != HEADER_BYTES {
        return Err(Error::HeaderSize(header.e_ehsize));
    }
    Ok(header)
}

/// Copies the program header table.
fn program_headers<'a>(
    file: &(impl Source + ?Sized),
    header: &FileHeader<LittleEndian>,
    table: &'a mut [u8; TABLE_BYTES],
) -> Result<SegmentTable<'a, LittleEndian>, Error> {
    if usize::from(header.e_phentsize) != ENTRY_BYTES {
        return Err(Error::EntrySize(header.e_phentsize));
    }
    let count = usize::from(header.e_phnum);
    if !(1..=limits::HEADERS).contains(&count) {
        return Err(Error::HeaderCount(header.e_phnum));
    }
    let table = table.get_mut(..count * ENTRY_BYTES).unwrap_or_default();
    if !file.read(header.e_phoff, table) {
        return Err(Error::TableOutsideFile);
    }
    Ok(SegmentTable::new(LittleEndian, Class::ELF64, table))
}

/// Checks a `PT_LOAD` on its own.
fn segment(
    file: &(impl Source + ?Sized),
    header: usize,
    entry: &ProgramHeader,
) -> Result<Segment, Error> {
    let bytes = contents(file, header, entry)?;
    let align = entry.p_align.max(1);
    if !align.is_power_of_two() {
        return Err(Error::Alignment { header, align });
    }
    if (entry.p_vaddr ^ entry.p_offset) & (align.max(PAGE_SIZE) - 1) != 0 {
        return Err(Error::Congruence { header });
    }
    let access = access(header, entry.p_flags)?;
    let end = entry
        .p_vaddr
        .checked_add(entry.p_memsz)
        .filter(|end| *end <= abi_types::place::USER_END)
        .ok_or(Error::OutsideUser { header })?;
    if entry.p_vaddr < limits::FIRST_VADDR {
        return Err(Error::OutsideUser { header });
    }
    if end > limits::END_VADDR {
        return Err(Error::Reserved { header });
    }
    let offset = entry.p_vaddr % PAGE_SIZE;
    let start = entry.p_vaddr - offset;
    Ok(Segment { start, pages: (end - start).div_ceil(PAGE_SIZE), access, bytes, offset })
}

/// Checks the `PT_TLS` on its own.
fn template(
    file: &(impl Source + ?Sized),
    header: usize,
    entry: &ProgramHeader,
) -> Result<Tls, Error> {
    let image = contents(file, header, entry)?;
    if entry.p_memsz > limits::TLS_BYTES {
        return Err(Error::TlsTooLarge(entry.p_memsz));
    }
    let align = entry.p_align.max(1);
    if !align.is_power_of_two() || align > limits::TLS_ALIGN {
        return Err(Error::TlsAlignment(entry.p_align));
    }
    Ok(Tls { image, memory_size: entry.p_memsz, align, address: entry.p_vaddr })
}

/// The bytes a program header names; some memory, and no more bytes than it.
fn contents(
    file: &(impl Source + ?Sized),
    header: usize,
    entry: &ProgramHeader,
) -> Result<FileBytes, Error> {
    if entry.p_memsz == 0 {
        return Err(Error::Empty { header });
    }
    if entry.p_filesz > entry.p_memsz {
        return Err(Error::FileLarger { header });
    }
    FileBytes::within(entry.p_offset, entry.p_filesz, file.length())
        .ok_or(Error::OutsideFile { header })
}

/// What the permission bits allow.
fn access(header: usize, flags: u32) -> Result<Access, Error> {
    if flags & !(abi::PF_R | abi::PF_W | abi::PF_X) != 0 {
        return Err(Error::Permissions { header, flags });
    }
    if flags & abi::PF_R == 0 {
        return Err(Error::Unreadable { header });
    }
    match (flags & abi::PF_W != 0, flags & abi::PF_X != 0) {
        (true, true) => Err(Error::WritableCode { header }),
        (true, false) => Ok(Access::Write),
        (false, true) => Ok(Access::Execute),
        (false, false) => Ok(Access::Read),
    }
}
