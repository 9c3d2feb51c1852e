//! The user programs as the linker makes them: the kernel's parser accepts each.

use core_elf::{Error, Image};
use core_paging::Access;

fn programs() -> Vec<(String, Vec<u8>)> {
    let paths = std::env::var("PROGRAMS").expect("the BUILD file gives the paths");
    paths.split(' ').map(|path| (path.to_owned(), std::fs::read(path).unwrap())).collect()
}

#[test]
fn every_program_is_accepted() {
    for (path, bytes) in programs() {
        let image = Image::parse(&bytes[..]).unwrap_or_else(|error| panic!("{path}: {error}"));
        let code = image.segments().iter().find(|segment| segment.is_code(image.entry()));
        assert_eq!(code.map(|segment| segment.access), Some(Access::Execute), "{path}");
        println!("{path}: {} pages, entry {:#x}", image.pages(), image.entry());
        // The runtime says which ABI it is; one program is without it.
        let is_bare = path.ends_with("program_user.elf");
        assert_eq!(image.check_abi(), if is_bare { Err(Error::NoAbi) } else { Ok(()) }, "{path}");
        assert!(image.pages() < 1024, "{path} takes {} pages", image.pages());
    }
}

#[test]
fn a_program_with_thread_local_data_says_so() {
    let (_, bytes) = programs().remove(0);
    let tls = Image::parse(&bytes[..]).unwrap().tls().expect("it has a thread_local static");
    // The static is a u64 of 41: its bytes end where the thread pointer points.
    assert_eq!((tls.image.of(&bytes), tls.memory_size), (&41u64.to_le_bytes()[..], 8));
    assert_eq!(tls.layout().image + 8, tls.layout().thread_pointer);
}

#[test]
fn the_guards_of_declared_stacks_are_in_the_file() {
    let (_, bytes) = programs().remove(1);
    let image = Image::parse(&bytes[..]).unwrap();
    // Two stacks of 32 KiB, declared in two places.
    let declared = image.guards().declared();
    assert_eq!(declared.iter().map(|guards| guards.count).collect::<Vec<_>>(), [1, 1]);
    assert!(declared.iter().all(|guards| guards.stride == 0x9000), "{declared:?}");
    let pages = image.segments().iter().map(|segment| segment.pages).sum::<u64>();
    assert_eq!(image.pages(), pages - 2);
}

#[test]
fn a_program_that_was_cut_or_changed_is_refused() {
    let (_, mut bytes) = programs().remove(1);
    // What is behind the segments, debug sections, nobody misses.
    assert!(Image::parse(&bytes[..4096]).is_err());
    bytes[18] ^= 1;
    assert!(Image::parse(&bytes[..]).is_err());
}
