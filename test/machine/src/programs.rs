//! Programs that can be spawned: files that are loaded as any other, and whose entry says which body runs.

use abi_types::ABI_NUMBER;
use elf_testing::{File, Note};

/// The entry of program 0; that of the others follows byte by byte.
pub(crate) const FIRST_ENTRY: u64 = 0x20_1400;

/// A file whose first thread does what the body of that number does.
pub fn program(number: u32) -> Vec<u8> {
    let descriptor = ABI_NUMBER.to_le_bytes().to_vec();
    let abi = Note { name: b"capOS\0".to_vec(), kind: 2, descriptor, align: 8 };
    let mut file = File::guarded().with_notes(vec![abi, Note::guards(0x20_4000, 0x3000, 2)]);
    file.header.e_entry = FIRST_ENTRY + u64::from(number);
    file.bytes()
}

/// The boot modules of a machine with so many programs.
pub(crate) fn modules(count: u32) -> Vec<(&'static str, &'static [u8])> {
    let module = |number: u32| {
        let name: &'static str = Box::leak(format!("{number}.elf").into_boxed_str());
        (name, &*Box::leak(program(number).into_boxed_slice()))
    };
    (0..count).map(module).collect()
}
