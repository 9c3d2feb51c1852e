//! What is wrong with an executable, and what would be right.

use core::fmt;

use crate::limits;

/// Why a file is refused. A number `header` is the position in the program header table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Shorter than an ELF header: so many bytes.
    Short(usize),
    /// The first four bytes are not ELF's.
    Magic,
    /// `EI_CLASS`: not 64-bit.
    Class(u8),
    /// `EI_DATA`: not little-endian.
    Endianness(u8),
    /// `EI_VERSION` or `e_version`: not 1.
    Version(u32),
    /// `EI_OSABI` or `EI_ABIVERSION`: made for another system.
    SystemAbi(u8, u8),
    /// `e_machine`: not x86-64.
    Machine(u16),
    /// `e_type` is `ET_DYN`: position independent, or a shared object.
    PositionIndependent,
    /// `e_type`: no executable.
    Type(u16),
    /// `e_flags`: x86-64 has none.
    Flags(u32),
    /// `e_ehsize`: not an ELF64 header's size.
    HeaderSize(u16),
    /// `e_phentsize`: not an ELF64 program header's size.
    EntrySize(u16),
    /// `e_phnum`: none, or too many.
    HeaderCount(u16),
    /// The program header table reaches past the end of the file.
    TableOutsideFile,
    /// `PT_INTERP`: wants a dynamic linker.
    Interpreter,
    /// `PT_DYNAMIC`: wants to be relocated.
    Dynamic,
    /// `PT_GNU_STACK` asks for a stack that can be executed.
    ExecutableStack,
    /// More than [`limits::SEGMENTS`] segments to load.
    TooManySegments,
    /// Nothing to load.
    NoSegments,
    /// A segment without memory.
    Empty {
        /// Its header.
        header: usize,
    },
    /// A segment is larger in the file than in memory.
    FileLarger {
        /// Its header.
        header: usize,
    },
    /// A segment's bytes are not all in the file.
    OutsideFile {
        /// Its header.
        header: usize,
    },
    /// An alignment that is no power of two.
    Alignment {
        /// Its header.
        header: usize,
        /// `p_align`.
        align: u64,
    },
    /// Address and file offset differ modulo the alignment or the page size.
    Congruence {
        /// Its header.
        header: usize,
    },
    /// Permission bits without a meaning.
    Permissions {
        /// Its header.
        header: usize,
        /// `p_flags`.
        flags: u32,
    },
    /// A segment that cannot be read.
    Unreadable {
        /// Its header.
        header: usize,
    },
    /// A segment that is writable and executable.
    WritableCode {
        /// Its header.
        header: usize,
    },
    /// A segment's addresses are not all in user memory, or wrap.
    OutsideUser {
        /// Its header.
        header: usize,
    },
    /// A segment lies where the kernel maps its own pages into every process.
    Reserved {
        /// Its header.
        header: usize,
    },
    /// A segment begins below the one before it.
    Order {
        /// Its header.
        header: usize,
    },
    /// A segment shares a page with the one before it.
    Overlap {
        /// Its header.
        header: usize,
    },
    /// All segments together are larger than [`limits::IMAGE_BYTES`].
    TooLarge,
    /// A second `PT_TLS`.
    SecondTls,
    /// Thread-local data of more than [`limits::TLS_BYTES`].
    TlsTooLarge(u64),
    /// Thread-local data with an alignment above [`limits::TLS_ALIGN`] or no power of two.
    TlsAlignment(u64),
    /// `e_entry` lies in no executable segment's bytes.
    Entry(u64),
    /// Notes that are aligned otherwise than notes are.
    NoteAlignment {
        /// Their header.
        header: usize,
        /// `p_align`.
        align: u64,
    },
    /// A note that is not all there.
    NoteCut {
        /// Its header.
        header: usize,
    },
    /// More than [`limits::NOTES`] notes.
    TooManyNotes,
    /// A note of the system's name with a type that has no meaning.
    NoteType(u32),
    /// A note says that it is made for another ABI of this system.
    Abi(u32),
    /// No note says which ABI it is made for.
    NoAbi,
    /// Two notes say which ABI it is made for.
    SecondAbi,
    /// A note of the ABI whose descriptor has another size: so many bytes.
    AbiSize(usize),
    /// A note of guards whose descriptor has another size: so many bytes.
    NoteSize(usize),
    /// Guards that do not begin on a page.
    GuardAlignment {
        /// The first.
        start: u64,
    },
    /// Guards whose distance is no size of a stack with its guard.
    GuardStride {
        /// The first.
        start: u64,
        /// The distance.
        stride: u64,
    },
    /// A note that declares no guard.
    NoGuards {
        /// Where the first would be.
        start: u64,
    },
    /// Stacks with guards that are not all in one writable segment.
    GuardsOutside {
        /// The first guard.
        start: u64,
    },
    /// Stacks with guards where the file has bytes.
    GuardsOverBytes {
        /// The first guard.
        start: u64,
    },
    /// Stacks with guards that share memory with others.
    GuardsOverlap {
        /// The first guard.
        start: u64,
    },
    /// More than [`limits::GUARDS`] notes of guards.
    TooManyGuards,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Short(bytes) => {
                write!(f, "the file has {bytes} bytes; an ELF header alone has 64")
            }
            Self::Magic => f.write_str("not an ELF file: it does not begin with 7f 45 4c 46"),
            Self::Class(class) => write!(f, "ELF class {class}; expected 2 (64-bit)"),
            Self::Endianness(data) => {
                write!(f, "ELF data encoding {data}; expected 1 (little-endian)")
            }
            Self::Version(version) => write!(f, "ELF version {version}; expected 1"),
            Self::SystemAbi(system, version) => {
                write!(f, "made for system ABI {system} version {version}; expected 0 version 0")
            }
            Self::Machine(machine) => {
                write!(f, "made for ELF machine {machine}; expected 62 (x86-64)")
            }
            Self::PositionIndependent => f.write_str(
                "position independent (ELF type 3); link it at fixed addresses (relocation-model=static)",
            ),
            Self::Type(kind) => write!(f, "ELF type {kind}; expected 2 (executable)"),
            Self::Flags(flags) => write!(f, "ELF flags {flags:#x}; x86-64 has none"),
            Self::HeaderSize(bytes) => write!(f, "an ELF header of {bytes} bytes; expected 64"),
            Self::EntrySize(bytes) => write!(f, "program headers of {bytes} bytes; expected 56"),
            Self::HeaderCount(count) => {
                write!(f, "{count} program headers; expected 1 to {}", limits::HEADERS)
            }
            Self::TableOutsideFile => {
                f.write_str("the program header table reaches past the end of the file")
            }
            Self::Interpreter => f.write_str("wants a dynamic linker; link it statically"),
            Self::Dynamic => {
                f.write_str("has a dynamic section; link it statically at fixed addresses")
            }
            Self::ExecutableStack => {
                f.write_str("wants an executable stack; link it with -z noexecstack")
            }
            Self::TooManySegments => {
                write!(f, "more than {} segments to load", limits::SEGMENTS)
            }
            Self::NoSegments => f.write_str("nothing to load: it has no PT_LOAD segment"),
            Self::Empty { header } => {
                write!(f, "program header {header}: takes no memory; leave it out")
            }
            Self::FileLarger { header } => {
                write!(f, "program header {header}: larger in the file than in memory")
            }
            Self::OutsideFile { header } => {
                write!(f, "program header {header}: reaches past the end of the file")
            }
            Self::Alignment { header, align } => {
                write!(f, "program header {header}: alignment {align:#x} is no power of two")
            }
            Self::Congruence { header } => write!(
                f,
                "program header {header}: address and file offset differ modulo alignment or page"
            ),
            Self::Permissions { header, flags } => write!(
                f,
                "program header {header}: permissions {flags:#x}; only read, write and execute have a meaning"
            ),
            Self::Unreadable { header } => {
                write!(f, "program header {header}: cannot be read; every segment is readable")
            }
            Self::WritableCode { header } => write!(
                f,
                "program header {header}: writable and executable; split it into code and data"
            ),
            Self::OutsideUser { header } => write!(
                f,
                "program header {header}: not within user memory, which begins at {:#x}",
                limits::FIRST_VADDR
            ),
            Self::Reserved { header } => write!(
                f,
                "program header {header}: addresses from {:#x} on are the kernel's to place",
                limits::END_VADDR
            ),
            Self::Order { header } => write!(
                f,
                "program header {header}: begins below the segment before it; sort them by address"
            ),
            Self::Overlap { header } => write!(
                f,
                "program header {header}: shares a page with the segment before it; align it to 4096"
            ),
            Self::TooLarge => {
                write!(f, "takes more than {} MiB of memory", limits::IMAGE_BYTES >> 20)
            }
            Self::SecondTls => f.write_str("has two templates of thread-local data; expected one"),
            Self::TlsTooLarge(bytes) => write!(
                f,
                "{bytes} bytes of thread-local data; expected at most {}",
                limits::TLS_BYTES
            ),
            Self::TlsAlignment(align) => write!(
                f,
                "thread-local data aligned to {align:#x}; expected a power of two up to {:#x}",
                limits::TLS_ALIGN
            ),
            Self::Entry(address) => {
                write!(f, "the entry {address:#x} lies in no executable segment")
            }
            Self::NoteAlignment { header, align } => {
                write!(f, "program header {header}: notes aligned to {align:#x}; expected 4 or 8")
            }
            Self::NoteCut { header } => {
                write!(f, "program header {header}: a note reaches past the end of its segment")
            }
            Self::TooManyNotes => write!(f, "more than {} notes; leave out what nobody reads", limits::NOTES),
            Self::NoteType(kind) => {
                write!(f, "a note \"capOS\" of type {kind}; expected 1 (guards) or 2 (ABI)")
            }
            Self::Abi(number) => write!(
                f,
                "made for ABI {number}; this system has {}: build it with this system's runtime",
                abi_types::ABI_NUMBER
            ),
            Self::NoAbi => write!(
                f,
                "no note says which ABI it is made for; expected a note \"capOS\" of type 2 with {}",
                abi_types::ABI_NUMBER
            ),
            Self::SecondAbi => f.write_str("two notes say which ABI it is made for; expected one"),
            Self::AbiSize(bytes) => write!(f, "a note of the ABI has {bytes} bytes; expected 4"),
            Self::NoteSize(bytes) => write!(f, "a note of guards has {bytes} bytes; expected 24"),
            Self::GuardAlignment { start } => {
                write!(f, "guards from {start:#x} on: the first is not at a multiple of 4096")
            }
            Self::GuardStride { start, stride } => write!(
                f,
                "guards from {start:#x} on: they are {stride:#x} apart; expected a multiple of 4096, \
                 for a guard and at least one more page"
            ),
            Self::NoGuards { start } => {
                write!(f, "guards from {start:#x} on: there are none; leave the note out")
            }
            Self::GuardsOutside { start } => write!(
                f,
                "guards from {start:#x} on: they and their stacks are not all within one writable segment"
            ),
            Self::GuardsOverBytes { start } => write!(
                f,
                "guards from {start:#x} on: the file has bytes there; stacks are zeros without a place \
                 in the file"
            ),
            Self::GuardsOverlap { start } => write!(
                f,
                "guards from {start:#x} on: they or their stacks share memory with others; declare each \
                 stack once"
            ),
            Self::TooManyGuards => write!(
                f,
                "more than {} notes of guards; one is enough for all stacks of one size",
                limits::GUARDS
            ),
        }
    }
}

impl core::error::Error for Error {}
