//! Thread-local data of threads the program starts: each has a copy of the program's template.
//!
//! The kernel makes the first thread's. Where the template is, the program reads from its own file's
//! headers, which the linker puts into the first segment.
//!
//! Decided in ADR 166.

/// Bytes from the thread pointer on, as the kernel makes them for the first thread: the self pointer,
/// and room beside it.
const CONTROL_BYTES: usize = 64;

/// The template of thread-local data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    /// What a block begins with, and how much of it there is in the file.
    image: usize,
    image_bytes: usize,
    /// Bytes of data, zeros included.
    bytes: usize,
    /// A power of two.
    align: usize,
}

/// Where the parts of a thread's block are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The lowest address.
    data: usize,
    /// What FS is to be; the word there is its own address.
    pub pointer: usize,
}

impl Template {
    /// The highest place for a block that ends at `end` or below.
    pub fn below(&self, end: usize) -> Option<Place> {
        let align = self.align.max(CONTROL_BYTES);
        let pointer = end.checked_sub(CONTROL_BYTES)? & !(align - 1);
        // The distance is the linker's, which compiled it into every access; see `core_elf`'s.
        let padding = self.image.wrapping_add(self.bytes).wrapping_neg() & (self.align - 1);
        Some(Place { data: pointer.checked_sub(self.bytes + padding)?, pointer })
    }

    /// Makes a block: a copy of the template.
    ///
    /// # Safety
    /// `place` came from `below` and is writable memory that nothing else uses.
    #[cfg(target_os = "none")]
    pub unsafe fn fill(&self, place: Place) {
        let data = core::ptr::with_exposed_provenance_mut::<u8>(place.data);
        let image = core::ptr::with_exposed_provenance::<u8>(self.image);
        // SAFETY: the image is in the program's own file; by the caller the rest is writable.
        unsafe {
            data.copy_from_nonoverlapping(image, self.image_bytes);
            data.add(self.image_bytes)
                .write_bytes(0, place.pointer - place.data - self.image_bytes);
            core::ptr::with_exposed_provenance_mut::<usize>(place.pointer).write(place.pointer);
        }
    }
}

impl Place {
    /// Where the block begins.
    pub const fn start(&self) -> usize {
        self.data
    }
}

/// An ELF header and a program header, as far as they matter here.
#[allow(dead_code, reason = "the layout is ELF's, most of it of no use here")]
#[repr(C)]
struct Header {
    ident: [u8; 16],
    kind: u16,
    machine: u16,
    version: u32,
    entry: u64,
    table: u64,
    sections: u64,
    flags: u32,
    size: u16,
    entry_size: u16,
    entries: u16,
}

#[allow(dead_code, reason = "as above")]
#[repr(C)]
struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    physical: u64,
    file_bytes: u64,
    bytes: u64,
    align: u64,
}

const PT_TLS: u32 = 7;

/// Looks for the template in the headers at `header`.
///
/// # Safety
/// A whole ELF header is there, and the table it names is mapped behind it.
unsafe fn find(header: *const Header) -> Option<Template> {
    // SAFETY: by the caller.
    let (table, entries) = unsafe { ((*header).table as usize, (*header).entries) };
    // SAFETY: by the caller the table is there.
    let segments = unsafe {
        core::slice::from_raw_parts(header.byte_add(table).cast::<Segment>(), entries.into())
    };
    let found = segments.iter().find(|segment| segment.kind == PT_TLS)?;
    Some(Template {
        image: found.address as usize,
        image_bytes: found.file_bytes as usize,
        bytes: found.bytes as usize,
        align: (found.align as usize).max(1),
    })
}

/// This program's template, if it has thread-local data.
#[cfg(target_os = "none")]
pub(crate) fn template() -> Option<Template> {
    unsafe extern "C" {
        /// Where the linker put the program's own headers.
        static __ehdr_start: Header;
    }
    // SAFETY: the first segment begins with the file's headers.
    unsafe { find(&raw const __ehdr_start) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_lies_as_the_linker_counts() {
        // As core_elf's layout: 8 bytes at 0x2008 with alignment 32 end 16 short of a multiple.
        let template = Template { image: 0x2008, image_bytes: 8, bytes: 8, align: 32 };
        assert_eq!(template.below(0x9000), Some(Place { data: 0x8fc0 - 24, pointer: 0x8fc0 }));
        for bytes in (1..300).chain([4095, 4097]) {
            for shift in 0..13 {
                for image in [0x2000, 0x2001, 0x2010, 0x2fff] {
                    let template = Template { image, image_bytes: 1, bytes, align: 1 << shift };
                    let place = template.below(0x10_0038).unwrap();
                    assert_eq!(place.start() % template.align, image % template.align);
                    assert_eq!(place.pointer % template.align.max(64), 0);
                    assert!(place.start() + bytes <= place.pointer);
                    assert!(place.pointer - place.start() - bytes < template.align);
                    assert!(place.pointer + CONTROL_BYTES <= 0x10_0038);
                }
            }
        }
        assert_eq!(template.below(63), None);
        assert_eq!(template.below(70), None);
    }

    #[test]
    fn the_template_is_found_among_the_headers() {
        #[repr(C)]
        struct File {
            header: Header,
            segments: [Segment; 2],
        }
        let segment = |kind, align| Segment {
            kind,
            flags: 4,
            offset: 0,
            address: 0x4010,
            physical: 0,
            file_bytes: 4,
            bytes: 20,
            align,
        };
        let file = |entries| File {
            header: Header {
                ident: [0; 16],
                kind: 2,
                machine: 62,
                version: 1,
                entry: 0,
                table: core::mem::offset_of!(File, segments) as u64,
                sections: 0,
                flags: 0,
                size: 64,
                entry_size: 56,
                entries,
            },
            segments: [segment(1, 4096), segment(PT_TLS, 0)],
        };
        let expected = Template { image: 0x4010, image_bytes: 4, bytes: 20, align: 1 };
        let (whole, cut) = (file(2), file(1));
        // SAFETY: the table is behind the header.
        unsafe {
            assert_eq!(find(&raw const whole.header), Some(expected));
            assert_eq!(find(&raw const cut.header), None);
        }
    }
}
