//! Writes executables that are none, by the number of the kind of fault.

use elf_testing::{File, Note, PF_W, PF_X};

/// A file with one thing wrong with it.
type Change = fn(&mut File);

/// Index of the code segment, the data segment, the TLS template and the stack's header in a file.
const CODE: usize = 1;
const DATA: usize = 2;
const TLS: usize = 3;
const STACK: usize = 4;

/// In the order of the sentences in `src/bad.rs`.
const KINDS: [Change; 26] = [
    |f| f.length = 63,
    |f| f.header.ident[3] = b'G',
    |f| f.header.ident[4] = 1,
    |f| f.header.ident[5] = 2,
    |f| f.header.ident[6] = 0,
    |f| f.header.ident[7] = 9,
    |f| f.header.e_machine = 183,
    |f| f.header.e_type = 3,
    |f| f.header.e_type = 1,
    |f| f.header.e_phentsize = 32,
    |f| f.header.e_phnum = Some(65),
    |f| f.header.e_phoff = u64::MAX - 10,
    |f| f.entries[TLS].p_type = 3,
    |f| f.entries[TLS].p_type = 2,
    |f| f.entries[STACK].p_flags |= PF_X,
    |f| f.entries[DATA].p_memsz = 0,
    |f| f.entries[DATA].p_memsz = 0x3f,
    |f| f.entries[DATA].p_offset = u64::MAX - 0x1f,
    |f| f.entries[CODE].p_flags |= PF_W,
    |f| f.entries[DATA].p_vaddr += 1,
    |f| f.header.e_entry = 0x20_0010,
    |f| f.entries[TLS].p_align = 0x2000,
    |f| f.entries[DATA].p_memsz = 1 << 30,
    // Another ABI, none, and a note that is cut.
    |f| *f = f.clone().with_notes(vec![abi(99)]),
    |f| *f = f.clone().with_notes(vec![]),
    |f| f.notes[0].descriptor.truncate(3),
];

fn abi(number: u32) -> Note {
    let descriptor = number.to_le_bytes().to_vec();
    Note { name: b"capOS\0".to_vec(), kind: 2, descriptor, align: 8 }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut argument = || arguments.next().expect("the number of a kind, and a path");
    let change = KINDS[argument().parse::<usize>().expect("a number")];
    let mut file = File::guarded().with_notes(vec![abi(1)]);
    change(&mut file);
    std::fs::write(argument(), file.bytes()).expect("a file that can be written");
}
