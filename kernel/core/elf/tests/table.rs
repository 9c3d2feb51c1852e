//! One file per error: a sound one with one field changed, refused for that reason and no other.

use core_elf::{Error, Image, limits};
use core_paging::Access;
use elf_testing::{Entry, File, Note, PF_R, PF_W, PF_X, PT_GNU_STACK, PT_LOAD, PT_NOTE, PT_TLS};

/// Index of the code segment, the data segment and the TLS template in the default file.
const CODE: usize = 1;
const DATA: usize = 2;
const TLS: usize = 3;
const STACK: usize = 4;
/// Index of the notes in the guarded file.
const NOTES: usize = 5;

/// The default file with a change, parsed.
fn refusal(change: impl FnOnce(&mut File)) -> Error {
    let mut file = File::default();
    change(&mut file);
    refused(&file)
}

/// Why a file is refused.
fn refused(file: &File) -> Error {
    let bytes = file.bytes();
    let error = Image::parse(&bytes).expect_err("a file that must be refused");
    assert!(error.to_string().len() > 20, "a sentence: {error}");
    error
}

#[test]
fn the_sound_file_parses() {
    let bytes = File::default().bytes();
    let image = Image::parse(&bytes).unwrap();
    assert_eq!(image.entry(), 0x20_1480);
    let [constants, code, data] = image.segments() else { panic!("three segments") };
    assert_eq!((constants.start, constants.pages, constants.access), (0x20_0000, 1, Access::Read));
    assert_eq!((code.start, code.pages, code.access), (0x20_1000, 1, Access::Execute));
    assert_eq!((code.offset, code.bytes), (0x400, &bytes[0x400..0x600]));
    assert_eq!((data.start, data.pages, data.access), (0x20_2000, 3, Access::Write));
    assert_eq!(data.page(0), (0x600, &bytes[0x600..0x640]));
    assert_eq!(data.page(1), (0, &[][..]));
    assert_eq!(image.pages(), 5);
    let tls = image.tls().unwrap();
    assert_eq!((tls.image, tls.memory_size, tls.align), (&bytes[0x600..0x610], 0x28, 16));
}

#[test]
fn identification() {
    assert_eq!(refusal(|f| f.length = 63), Error::Short(63));
    assert_eq!(refusal(|f| f.header.ident[3] = b'G'), Error::Magic);
    assert_eq!(refusal(|f| f.header.ident[4] = 1), Error::Class(1));
    assert_eq!(refusal(|f| f.header.ident[5] = 2), Error::Endianness(2));
    assert_eq!(refusal(|f| f.header.ident[6] = 0), Error::Version(0));
    assert_eq!(refusal(|f| f.header.ident[7] = 9), Error::SystemAbi(9, 0));
    assert_eq!(refusal(|f| f.header.ident[8] = 1), Error::SystemAbi(0, 1));
}

#[test]
fn header() {
    assert_eq!(refusal(|f| f.header.e_version = 2), Error::Version(2));
    assert_eq!(refusal(|f| f.header.e_machine = 183), Error::Machine(183));
    assert_eq!(refusal(|f| f.header.e_type = 3), Error::PositionIndependent);
    assert_eq!(refusal(|f| f.header.e_type = 1), Error::Type(1));
    assert_eq!(refusal(|f| f.header.e_flags = 4), Error::Flags(4));
    assert_eq!(refusal(|f| f.header.e_ehsize = 52), Error::HeaderSize(52));
    assert_eq!(refusal(|f| f.header.e_phentsize = 32), Error::EntrySize(32));
    assert_eq!(refusal(|f| f.header.e_phnum = Some(0)), Error::HeaderCount(0));
    assert_eq!(refusal(|f| f.header.e_phnum = Some(65)), Error::HeaderCount(65));
    assert_eq!(refusal(|f| f.header.e_phnum = Some(0xffff)), Error::HeaderCount(0xffff));
}

#[test]
fn table_outside_the_file() {
    assert_eq!(refusal(|f| f.header.e_phoff = 0x700 - 56), Error::TableOutsideFile);
    assert_eq!(refusal(|f| f.header.e_phoff = u64::MAX - 10), Error::TableOutsideFile);
    assert_eq!(refusal(|f| f.length = 64 + 5 * 56 - 1), Error::TableOutsideFile);
}

#[test]
fn dynamic_linking_and_the_stack() {
    assert_eq!(refusal(|f| f.entries[TLS].p_type = 3), Error::Interpreter);
    assert_eq!(refusal(|f| f.entries[TLS].p_type = 2), Error::Dynamic);
    assert_eq!(refusal(|f| f.entries[STACK].p_flags |= PF_X), Error::ExecutableStack);
    assert_eq!(PT_GNU_STACK, File::default().entries[STACK].p_type);
}

#[test]
fn sizes() {
    assert_eq!(refusal(|f| f.entries[DATA].p_memsz = 0), Error::Empty { header: DATA });
    assert_eq!(refusal(|f| f.entries[TLS].p_memsz = 0), Error::Empty { header: TLS });
    assert_eq!(refusal(|f| f.entries[DATA].p_memsz = 0x3f), Error::FileLarger { header: DATA });
    assert_eq!(refusal(|f| f.entries[TLS].p_filesz = 0x29), Error::FileLarger { header: TLS });
    assert_eq!(refusal(|f| f.entries[DATA].p_filesz = 0x101), Error::OutsideFile { header: DATA });
    assert_eq!(
        refusal(|f| f.entries[DATA].p_offset = u64::MAX - 0x1f),
        Error::OutsideFile { header: DATA }
    );
    assert_eq!(refusal(|f| f.entries[TLS].p_offset = 0x6f1), Error::OutsideFile { header: TLS });
    assert_eq!(refusal(|f| f.entries[DATA].p_memsz = limits::IMAGE_BYTES), Error::TooLarge);
}

#[test]
fn no_segments_and_too_many() {
    assert_eq!(refusal(|f| f.entries.retain(|e| e.p_type != PT_LOAD)), Error::NoSegments);
    let many = |count: u64| {
        let mut file = File { length: 0x1000, ..File::default() };
        file.entries = (0..count)
            .map(|i| Entry::load(0x20_0000 + i * 0x1000, 0x400, 8, 8, PF_R | PF_X))
            .collect();
        file.header.e_entry = 0x20_0400;
        Image::parse(&file.bytes()).map(|image| image.segments().len())
    };
    assert_eq!(many(limits::SEGMENTS as u64), Ok(limits::SEGMENTS));
    assert_eq!(many(limits::SEGMENTS as u64 + 1), Err(Error::TooManySegments));
}

#[test]
fn alignment() {
    let header = DATA;
    assert_eq!(
        refusal(|f| f.entries[DATA].p_align = 0x1800),
        Error::Alignment { header, align: 0x1800 }
    );
    assert_eq!(refusal(|f| f.entries[DATA].p_vaddr += 1), Error::Congruence { header });
    assert_eq!(refusal(|f| f.entries[DATA].p_align = 0x4000), Error::Congruence { header });
    // Without an alignment of its own a segment still has the page's.
    assert_eq!(
        refusal(|f| (f.entries[DATA].p_align, f.entries[DATA].p_vaddr) = (0, 0x20_2601)),
        Error::Congruence { header }
    );
    assert_eq!(refusal(|f| f.entries[TLS].p_align = 24), Error::TlsAlignment(24));
    assert_eq!(refusal(|f| f.entries[TLS].p_align = 0x2000), Error::TlsAlignment(0x2000));
}

#[test]
fn permissions() {
    assert_eq!(
        refusal(|f| f.entries[DATA].p_flags |= 8),
        Error::Permissions { header: DATA, flags: 14 }
    );
    assert_eq!(refusal(|f| f.entries[CODE].p_flags = PF_X), Error::Unreadable { header: CODE });
    assert_eq!(
        refusal(|f| f.entries[CODE].p_flags = PF_R | PF_W | PF_X),
        Error::WritableCode { header: CODE }
    );
}

#[test]
fn places() {
    let at = |vaddr: u64| refusal(|f| f.entries[DATA].p_vaddr = vaddr);
    let header = DATA;
    assert_eq!(at(0xffff_8000_0000_0600), Error::OutsideUser { header });
    assert_eq!(at(u64::MAX - 0x9ff), Error::OutsideUser { header });
    assert_eq!(at(abi_types::place::USER_END - 0xa00), Error::OutsideUser { header });
    assert_eq!(at(abi_types::place::CAPSET_VADDR + 0x600), Error::Reserved { header });
    assert_eq!(at(abi_types::place::CAPSET_VADDR - 0x1a00), Error::Reserved { header });
    assert_eq!(at(abi_types::place::TIME_VADDR + 0x600), Error::Reserved { header });
    assert_eq!(at(abi_types::place::RING_VADDR + 0x600), Error::Reserved { header });
    assert_eq!(
        at(abi_types::place::RING_VADDR + 7 * abi_types::place::RING_ROOM + 0x600),
        Error::Reserved { header }
    );
    let first = |vaddr| refusal(|f| f.entries[0].p_vaddr = vaddr);
    assert_eq!(first(0), Error::OutsideUser { header: 0 });
    assert_eq!(first(0xf000), Error::OutsideUser { header: 0 });
}

#[test]
fn neighbours() {
    assert_eq!(refusal(|f| f.entries.swap(0, 1)), Error::Order { header: 1 });
    // The bytes do not overlap; the pages do.
    assert_eq!(refusal(|f| f.entries[DATA].p_vaddr = 0x20_1600), Error::Overlap { header: DATA });
    assert_eq!(refusal(|f| f.entries[0].p_memsz = 0x1001), Error::Overlap { header: CODE });
}

#[test]
fn thread_local_data() {
    assert_eq!(refusal(|f| f.entries[STACK] = f.entries[TLS]), Error::SecondTls);
    assert_eq!(
        refusal(|f| f.entries[TLS].p_memsz = limits::TLS_BYTES + 1),
        Error::TlsTooLarge(limits::TLS_BYTES + 1)
    );
    assert_eq!(PT_TLS, File::default().entries[TLS].p_type);
}

#[test]
fn entry() {
    let at = |entry: u64| refusal(|f| f.header.e_entry = entry);
    for outside in [0, 0x20_0010, 0x20_13ff, 0x20_1600, 0x20_2600, u64::MAX] {
        assert_eq!(at(outside), Error::Entry(outside));
    }
}

/// The guarded file with a change, parsed.
fn guarded_refusal(change: impl FnOnce(&mut File)) -> Error {
    let mut file = File::guarded();
    change(&mut file);
    refused(&file)
}

/// The guarded file with such stacks instead of its own.
fn guards(all: &[(u64, u64, u64)]) -> File {
    let note = |(start, stride, count): &_| Note::guards(*start, *stride, *count);
    File::guarded().with_notes(all.iter().map(note).collect())
}

/// Start and number of pages of what is mapped.
fn parts(file: &File) -> Vec<(u64, u64)> {
    let bytes = file.bytes();
    let image = Image::parse(&bytes).unwrap();
    let parts: Vec<_> = image.parts().map(|part| (part.start, part.pages)).collect();
    assert_eq!(parts.iter().map(|part| part.1).sum::<u64>(), image.pages());
    parts
}

#[test]
fn guards_are_not_mapped() {
    let code = [(0x20_0000, 1), (0x20_1000, 1)];
    let all = |data: &[(u64, u64)]| [&code[..], data].concat();
    assert_eq!(parts(&File::default()), all(&[(0x20_2000, 3)]));
    let bytes = File::guarded().bytes();
    let image = Image::parse(&bytes).unwrap();
    let two = abi_types::Guards { start: 0x20_4000, stride: 0x3000, count: 2 };
    assert_eq!(image.guards().declared(), [two]);
    assert_eq!(image.segments().len(), 3);
    let (split, whole) = (image.parts().nth(2).unwrap(), image.segments()[2]);
    assert_eq!((split.bytes, split.offset, split.access), (whole.bytes, 0x600, Access::Write));
    assert_eq!(image.parts().nth(3).unwrap().bytes, []);
    assert_eq!(parts(&File::guarded()), all(&[(0x20_2000, 2), (0x20_5000, 2), (0x20_8000, 3)]),);
    // Declared out of order, one behind the other, up to the segment's end.
    let file = guards(&[(0x20_7000, 0x2000, 2), (0x20_3000, 0x4000, 1)]);
    assert_eq!(
        parts(&file),
        all(&[(0x20_2000, 1), (0x20_4000, 3), (0x20_8000, 1), (0x20_a000, 1)])
    );
    // A segment of zeros that begins with a guard.
    let mut file = guards(&[(0x21_0000, 0x2000, 1)]);
    file.entries[DATA] = Entry { p_offset: 0, p_vaddr: 0x21_0000, ..file.entries[DATA] };
    (file.entries[DATA].p_filesz, file.entries[DATA].p_memsz) = (0, 0x3000);
    assert_eq!(parts(&file), all(&[(0x21_1000, 2)]));
}

#[test]
fn notes() {
    let header = NOTES;
    let entry = |change: fn(&mut Entry)| guarded_refusal(|f| change(&mut f.entries[NOTES]));
    assert_eq!(entry(|e| e.p_align = 0), Error::NoteAlignment { header, align: 0 });
    assert_eq!(entry(|e| e.p_align = 16), Error::NoteAlignment { header, align: 16 });
    assert_eq!(entry(|e| e.p_filesz = 0x81), Error::OutsideFile { header });
    assert_eq!(entry(|e| e.p_offset = u64::MAX), Error::OutsideFile { header });
    for cut in [1, 11, 12, 0x14, 0x19, 0x23, 0x24, 0x30, 0x47] {
        let cut = guarded_refusal(|f| f.entries[NOTES].p_filesz = cut);
        assert_eq!(cut, Error::NoteCut { header });
    }
    assert_eq!(PT_NOTE, File::guarded().entries[NOTES].p_type);
    // Somebody else's, without a byte or with many, and without padding at the end.
    let empty = Note { name: vec![], kind: 0, descriptor: vec![], align: 4 };
    let odd = Note { name: b"odd".to_vec(), kind: 9, descriptor: vec![1; 33], align: 4 };
    let mut file = File::guarded().with_notes(vec![empty.clone(), odd]);
    file.entries[NOTES].p_filesz -= 3;
    assert_eq!(parts(&file).len(), 3);
    // Four as alignment is as good.
    let four = Note { align: 4, ..Note::guards(0x20_4000, 0x3000, 2) };
    assert_eq!(parts(&File::guarded().with_notes(vec![four])).len(), 5);
    let many = |count| File::guarded().with_notes(vec![empty.clone(); count]);
    assert_eq!(parts(&many(limits::NOTES)).len(), 3);
    assert_eq!(refused(&many(limits::NOTES + 1)), Error::TooManyNotes);
    assert_eq!(guarded_refusal(|f| f.notes[1].kind = 2), Error::NoteType(2));
    let size = |bytes| {
        let mut note = Note::guards(0x20_4000, 0x3000, 2);
        note.descriptor.resize(bytes, 0);
        refused(&File::guarded().with_notes(vec![note]))
    };
    assert_eq!([size(0), size(23), size(32)], [0, 23, 32].map(Error::NoteSize));
    // Not this system's: the name is another one.
    let foreign = Note { name: b"capOS".to_vec(), ..Note::guards(1, 1, 1) };
    assert_eq!(parts(&File::guarded().with_notes(vec![foreign])).len(), 3);
}

#[test]
fn guards_that_make_no_sense() {
    let start = 0x20_4000;
    let refuse = |start, stride, count| refused(&guards(&[(start, stride, count)]));
    assert_eq!(refuse(0x20_4001, 0x3000, 2), Error::GuardAlignment { start: 0x20_4001 });
    for stride in [0, 1, 0x1000, 0x2001, 0x2fff, u64::MAX] {
        assert_eq!(refuse(start, stride, 2), Error::GuardStride { start, stride });
    }
    assert_eq!(refuse(start, 0x3000, 0), Error::NoGuards { start });
    // Past the end of the segment, by one stack or by all there is.
    assert_eq!(refuse(start, 0x3000, 3), Error::GuardsOutside { start });
    assert_eq!(refuse(start, 0x3000, u64::MAX), Error::GuardsOutside { start });
    assert_eq!(refuse(start, 1 << 63, 2), Error::GuardsOutside { start });
    assert_eq!(refuse(start, u64::MAX - 0xfff, 1), Error::GuardsOutside { start });
    // In no segment, in code, in constants, across two segments.
    for start in [0, 0x1_0000, 0x20_b000, !0xfff, 0x20_1000, 0x20_0000] {
        assert_eq!(refuse(start, 0x2000, 1), Error::GuardsOutside { start });
    }
    let read_only = |f: &mut File| f.entries[DATA].p_flags = PF_R;
    assert_eq!(guarded_refusal(read_only), Error::GuardsOutside { start });
    // The data's bytes are in its first page, and may fill it to the last.
    let start = 0x20_2000;
    assert_eq!(refuse(start, 0x3000, 2), Error::GuardsOverBytes { start });
    let mut file = guards(&[(0x20_3000, 0x3000, 1)]);
    file.length = 0x2000;
    file.entries[DATA].p_filesz = 0xa00;
    assert_eq!(parts(&file).len(), 4);
    file.entries[DATA].p_filesz = 0xa01;
    assert_eq!(refused(&file), Error::GuardsOverBytes { start: 0x20_3000 });
}

#[test]
fn guards_beside_others() {
    let mut file = guards(&[(0x20_4000, 0x3000, 2), (0x20_4000, 0x3000, 2)]);
    let start = 0x20_4000;
    assert_eq!(refused(&file), Error::GuardsOverlap { start });
    // The second stack of one is another's first.
    file = guards(&[(0x20_4000, 0x3000, 2), (0x20_8000, 0x2000, 1)]);
    assert_eq!(refused(&file), Error::GuardsOverlap { start: 0x20_8000 });
    file = guards(&[(0x20_8000, 0x2000, 1), (0x20_4000, 0x3000, 2)]);
    assert_eq!(refused(&file), Error::GuardsOverlap { start });
    // One within another's stack.
    file = guards(&[(0x20_4000, 0x6000, 1), (0x20_6000, 0x2000, 1)]);
    assert_eq!(refused(&file), Error::GuardsOverlap { start: 0x20_6000 });
    let many = |count: u64| {
        let each = |i| (0x21_0000 + i * 0x2000, 0x2000, 1);
        let mut file = guards(&(0..count).map(each).collect::<Vec<_>>());
        file.entries[DATA].p_memsz = 0x10_0000;
        file
    };
    assert_eq!(parts(&many(limits::GUARDS as u64)).len(), 3 + limits::GUARDS);
    assert_eq!(refused(&many(limits::GUARDS as u64 + 1)), Error::TooManyGuards);
}
