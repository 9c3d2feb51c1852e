//! Thread-local data: the template in the file and the block every thread has of it.
//!
//! x86-64 uses the layout the TLS document calls variant II: the data ends where the thread
//! pointer (FS base) points, and the word there is the thread pointer itself.
//!
//! ```text
//! base                    data                                   thread pointer
//!  | padding to alignment |  image, then zeros, then padding      | self, room for the runtime |
//! ```

use crate::{FileBytes, limits};

/// Bytes from the thread pointer on: the self pointer, and what the runtime keeps beside it.
pub const CONTROL_BYTES: u64 = 64;

/// The template of thread-local data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tls {
    /// What the block begins with.
    pub image: FileBytes,
    /// Bytes of data, zero fill after the image included.
    pub memory_size: u64,
    /// A power of two, at most [`limits::TLS_ALIGN`].
    pub align: u64,
    /// Where the linker thinks the template is: the data has this address modulo `align`.
    pub address: u64,
}

/// Where the parts of one thread's block are, from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsLayout {
    /// Bytes of the block.
    pub size: u64,
    /// What the block's address is a multiple of.
    pub align: u64,
    /// Where the image goes; everything around it is zero.
    pub image: u64,
    /// Where FS base points. The word there holds its own address.
    pub thread_pointer: u64,
}

impl Tls {
    /// The block for this template.
    ///
    /// The distance from data to thread pointer is the linker's: it compiled it into every
    /// access.
    pub const fn layout(&self) -> TlsLayout {
        // What parse() accepts is far from overflow; fields that were filled by hand give a
        // block that is at least as large.
        let memory_size =
            if self.memory_size < limits::TLS_BYTES { self.memory_size } else { limits::TLS_BYTES };
        let align = if self.align.is_power_of_two() && self.align <= limits::TLS_ALIGN {
            self.align
        } else {
            limits::TLS_ALIGN
        };
        let distance =
            memory_size + (self.address.wrapping_add(memory_size).wrapping_neg() & (align - 1));
        let block_align = if align < CONTROL_BYTES { CONTROL_BYTES } else { align };
        let thread_pointer = distance.next_multiple_of(block_align);
        TlsLayout {
            size: thread_pointer + CONTROL_BYTES,
            align: block_align,
            image: thread_pointer - distance,
            thread_pointer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(memory_size: u64, align: u64, address: u64) -> TlsLayout {
        Tls { image: FileBytes::NONE, memory_size, align, address }.layout()
    }

    #[test]
    fn data_ends_at_the_thread_pointer() {
        // lld: an access at offset o of the template compiles to tp - distance + o.
        assert_eq!(
            layout(8, 8, 0x2000),
            TlsLayout { size: 128, align: 64, image: 56, thread_pointer: 64 }
        );
        assert_eq!(
            layout(12, 8, 0x2000),
            TlsLayout { size: 128, align: 64, image: 48, thread_pointer: 64 }
        );
        assert_eq!(
            layout(65, 64, 0x2000),
            TlsLayout { size: 192, align: 64, image: 0, thread_pointer: 128 }
        );
        assert_eq!(
            layout(5, 4096, 0x4000),
            TlsLayout { size: 4160, align: 4096, image: 0, thread_pointer: 4096 }
        );
    }

    #[test]
    fn a_template_that_begins_between_multiples_of_its_alignment_keeps_its_remainder() {
        // 8 bytes at 0x2008 with alignment 32: the data ends at 0x2010, 16 short of a multiple.
        assert_eq!(
            layout(8, 32, 0x2008),
            TlsLayout { size: 128, align: 64, image: 64 - 24, thread_pointer: 64 }
        );
    }

    #[test]
    fn every_layout_is_sound() {
        for memory_size in (1..300).chain([4095, 4096, 4097, limits::TLS_BYTES]) {
            for shift in 0..13 {
                for address in [0x2000, 0x2001, 0x2010, 0x2fff] {
                    let align = 1 << shift;
                    let l = layout(memory_size, align, address);
                    assert!(l.image + memory_size <= l.thread_pointer, "the data fits");
                    assert!(
                        l.thread_pointer - l.image - memory_size < align,
                        "no more than padding"
                    );
                    assert_eq!(l.image % align, address % align, "the linker's remainder");
                    assert_eq!(l.thread_pointer % l.align, 0);
                    assert_eq!(l.size, l.thread_pointer + CONTROL_BYTES);
                }
            }
        }
    }
}
