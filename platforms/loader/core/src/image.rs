//! The executable: an ELF64 file checked completely, then placed.
//!
//! [`Image::parse`] refuses everything the protocol does not allow with the reason;
//! afterwards loading is copying. One contiguous physical block holds the image, so one
//! offset turns every virtual address of it into a physical one.

use core::fmt;

use arrayvec::ArrayVec;
use elf::ElfBytes;
use elf::abi;
use elf::endian::LittleEndian;

use crate::memory::{Memory, PAGE, page_down, page_up};
use crate::refusal::Refusal;

/// Executables live in the topmost 2 GiB.
pub const HIGHER_HALF: u64 = 0xffff_ffff_8000_0000;

/// Executables end below this; the last page stays unmapped so that no end address wraps.
pub const IMAGE_LIMIT: u64 = 0xffff_ffff_ffff_f000;

/// The most PT_LOAD segments taken.
pub const MAX_SEGMENTS: usize = 32;

/// The largest alignment a segment may ask for: a gigabyte page's.
const MAX_ALIGNMENT: u64 = 1 << 30;

/// One PT_LOAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Address it is linked at.
    pub vaddr: u64,
    /// Bytes in memory.
    pub memory_size: u64,
    /// Bytes in the file.
    pub file_size: u64,
    /// Where in the file.
    pub offset: u64,
    /// PF_W.
    pub writable: bool,
    /// PF_X.
    pub executable: bool,
}

impl Segment {
    fn end(&self) -> u64 {
        self.vaddr + self.memory_size
    }
}

/// A checked executable, before it has a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Segments by ascending address.
    pub segments: ArrayVec<Segment, MAX_SEGMENTS>,
    /// First page's linked address.
    pub start: u64,
    /// End of the last page, linked.
    pub end: u64,
    /// Largest segment alignment, at least a page.
    pub alignment: u64,
    /// Linked entry address.
    pub entry: u64,
    /// Whether the file is ET_DYN and may be slid.
    pub relocatable: bool,
    /// PT_DYNAMIC's linked address and size.
    pub dynamic: Option<(u64, u64)>,
}

/// What is wrong with the executable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageError {
    /// The headers cannot be read as ELF.
    NotElf,
    /// Not 64-bit.
    NotElf64,
    /// Not for x86-64.
    Machine(u16),
    /// Neither ET_EXEC nor ET_DYN.
    Type(u16),
    /// Nothing to load.
    NoSegments,
    /// More segments than [`MAX_SEGMENTS`].
    TooManySegments,
    /// A segment's file part is longer than its memory part.
    FileLarger(usize),
    /// A segment reaches past the end of the file.
    PastEnd(usize),
    /// A segment's address range wraps or ends in the last page.
    Wraps(usize),
    /// An alignment that is no power of two, above 1 GiB, or that address and offset break.
    Alignment(usize),
    /// A fixed address outside the topmost 2 GiB.
    LowerHalf(u64),
    /// Larger than the topmost 2 GiB.
    TooLarge(u64),
    /// Two segments overlap.
    Overlap(u64),
    /// Two segments with other permissions share a page.
    SharedPage(u64),
    /// The entry lies in no executable segment.
    Entry(u64),
    /// PT_INTERP: dynamically linked.
    Interpreter,
    /// PT_DYNAMIC lies outside what is loaded.
    Dynamic,
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("executable: ")?;
        match self {
            Self::NotElf => f.write_str("not a well-formed little-endian ELF file"),
            Self::NotElf64 => f.write_str("32-bit ELF; expected ELF64"),
            Self::Machine(machine) => {
                write!(f, "made for ELF machine {machine}; expected 62 (x86-64)")
            }
            Self::Type(kind) => {
                write!(f, "ELF type {kind}; expected 2 (executable) or 3 (position independent)")
            }
            Self::NoSegments => f.write_str("no PT_LOAD segment with a size"),
            Self::TooManySegments => write!(f, "more than {MAX_SEGMENTS} PT_LOAD segments"),
            Self::FileLarger(i) => {
                write!(f, "program header {i}: larger in the file than in memory")
            }
            Self::PastEnd(i) => write!(f, "program header {i}: reaches past the end of the file"),
            Self::Wraps(i) => {
                write!(f, "program header {i}: address range leaves the address space")
            }
            Self::Alignment(i) => write!(
                f,
                "program header {i}: alignment must be a power of two up to 1 GiB, and address and offset equal modulo it"
            ),
            Self::LowerHalf(address) => write!(
                f,
                "linked at {address:#x}; expected {HIGHER_HALF:#x} or above, or position independent"
            ),
            Self::TooLarge(bytes) => write!(f, "{bytes} bytes do not fit the topmost 2 GiB"),
            Self::Overlap(address) => write!(f, "two segments overlap at {address:#x}"),
            Self::SharedPage(address) => write!(
                f,
                "two segments with different permissions share the page at {address:#x}; align them to 4096"
            ),
            Self::Entry(address) => {
                write!(f, "entry {address:#x} lies in no executable segment")
            }
            Self::Interpreter => f.write_str("wants a dynamic linker; link it statically"),
            Self::Dynamic => f.write_str("its dynamic section lies outside the loaded segments"),
        }
    }
}

impl Image {
    /// Checks a file.
    pub fn parse(file: &[u8]) -> Result<Self, ImageError> {
        if file.get(..4) != Some(b"\x7fELF") {
            return Err(ImageError::NotElf);
        }
        if file.get(4) == Some(&abi::ELFCLASS32) {
            return Err(ImageError::NotElf64);
        }
        let elf = ElfBytes::<LittleEndian>::minimal_parse(file).map_err(|_| ImageError::NotElf)?;
        if elf.ehdr.e_machine != abi::EM_X86_64 {
            return Err(ImageError::Machine(elf.ehdr.e_machine));
        }
        let relocatable = match elf.ehdr.e_type {
            abi::ET_EXEC => false,
            abi::ET_DYN => true,
            other => return Err(ImageError::Type(other)),
        };
        let mut segments: ArrayVec<Segment, MAX_SEGMENTS> = ArrayVec::new();
        let mut alignment = PAGE;
        let mut dynamic = None;
        for (index, header) in elf.segments().ok_or(ImageError::NoSegments)?.iter().enumerate() {
            match header.p_type {
                abi::PT_INTERP => return Err(ImageError::Interpreter),
                abi::PT_DYNAMIC => dynamic = Some((header.p_vaddr, header.p_memsz)),
                abi::PT_LOAD if header.p_memsz > 0 => {
                    alignment = alignment.max(check_segment(index, &header, file.len() as u64)?);
                    segments
                        .try_push(Segment {
                            vaddr: header.p_vaddr,
                            memory_size: header.p_memsz,
                            file_size: header.p_filesz,
                            offset: header.p_offset,
                            writable: header.p_flags & abi::PF_W != 0,
                            executable: header.p_flags & abi::PF_X != 0,
                        })
                        .map_err(|_| ImageError::TooManySegments)?;
                }
                _ => {}
            }
        }
        segments.sort_unstable_by_key(|segment| segment.vaddr);
        check_neighbours(&segments)?;
        let (Some(first), Some(last)) = (segments.first(), segments.last()) else {
            return Err(ImageError::NoSegments);
        };
        let (start, end) = (page_down(first.vaddr), page_up(last.end()));
        if !relocatable && start < HIGHER_HALF {
            return Err(ImageError::LowerHalf(first.vaddr));
        }
        if end - start > IMAGE_LIMIT - HIGHER_HALF {
            return Err(ImageError::TooLarge(end - start));
        }
        let image = Self {
            segments,
            start,
            end,
            alignment,
            entry: elf.ehdr.e_entry,
            relocatable,
            dynamic: dynamic.filter(|_| relocatable),
        };
        if !image.is_code(image.entry) {
            return Err(ImageError::Entry(image.entry));
        }
        if let Some((address, size)) = image.dynamic {
            let inside = address >= start
                && address.checked_add(size).is_some_and(|dynamic_end| dynamic_end <= end);
            if !inside {
                return Err(ImageError::Dynamic);
            }
        }
        Ok(image)
    }

    /// Bytes of the whole block.
    pub fn size(&self) -> u64 {
        self.end - self.start
    }

    /// Whether a linked address lies in an executable segment.
    pub fn is_code(&self, address: u64) -> bool {
        self.segments.iter().any(|s| s.executable && s.vaddr <= address && address < s.end())
    }

    /// How far the image is slid, given what KASLR may add (`None`: as little as possible).
    ///
    /// The slide keeps every alignment and keeps the image within the topmost 2 GiB.
    pub fn slide(&self, random: Option<u64>) -> Result<u64, ImageError> {
        if !self.relocatable {
            return Ok(0);
        }
        let up = |address: u64| -> u64 { (address + (self.alignment - 1)) & !(self.alignment - 1) };
        let least = up(HIGHER_HALF.saturating_sub(self.start));
        let base = self.start.wrapping_add(least);
        let room = base
            .checked_add(self.size())
            .and_then(|end| IMAGE_LIMIT.checked_sub(end))
            .ok_or(ImageError::TooLarge(self.size()))?;
        let steps = room / self.alignment;
        let extra = match (random, steps.checked_add(1)) {
            (Some(random), Some(choices)) => (random % choices) * self.alignment,
            _ => 0,
        };
        Ok(least.wrapping_add(extra))
    }

    /// Copies the segments from the file at `file` to the zeroed block at `block`.
    pub fn load(&self, memory: &mut impl Memory, file: u64, block: u64) -> Result<(), Refusal> {
        let reach = |base, length| Refusal::Unreachable { base, length };
        memory.bytes(block, self.size()).ok_or(reach(block, self.size()))?.fill(0);
        for segment in self.segments.iter().filter(|segment| segment.file_size > 0) {
            let to = block + (segment.vaddr - self.start);
            memory
                .copy(file + segment.offset, to, segment.file_size)
                .ok_or(reach(to, segment.file_size))?;
        }
        Ok(())
    }
}

/// Checks one PT_LOAD on its own and gives its alignment.
fn check_segment(
    index: usize,
    header: &elf::segment::ProgramHeader,
    file_size: u64,
) -> Result<u64, ImageError> {
    if header.p_filesz > header.p_memsz {
        return Err(ImageError::FileLarger(index));
    }
    let file_end = header.p_offset.checked_add(header.p_filesz);
    if file_end.is_none_or(|end| end > file_size) {
        return Err(ImageError::PastEnd(index));
    }
    let end = header.p_vaddr.checked_add(header.p_memsz);
    if end.is_none_or(|end| end > IMAGE_LIMIT) {
        return Err(ImageError::Wraps(index));
    }
    let alignment = header.p_align.max(1);
    let sound = alignment.is_power_of_two()
        && alignment <= MAX_ALIGNMENT
        && (header.p_vaddr ^ header.p_offset) & (alignment - 1) == 0;
    if !sound {
        return Err(ImageError::Alignment(index));
    }
    Ok(alignment)
}

/// Checks sorted segments against each other.
fn check_neighbours(segments: &[Segment]) -> Result<(), ImageError> {
    for pair in segments.windows(2) {
        let [low, high] = pair else { continue };
        if low.end() > high.vaddr {
            return Err(ImageError::Overlap(high.vaddr));
        }
        let share_a_page = page_down(low.end() - 1) == page_down(high.vaddr);
        let same = low.writable == high.writable && low.executable == high.executable;
        if share_a_page && !same {
            return Err(ImageError::SharedPage(page_down(high.vaddr)));
        }
    }
    Ok(())
}
