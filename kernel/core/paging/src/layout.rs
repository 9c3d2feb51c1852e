//! Where the kernel's windows lie in the upper half.
//!
//! The direct map starts where the loader put it (a loader may randomise it) and the image at
//! the top 2 GiB; both keep their addresses when the kernel's own tables take over. Between them,
//! at fixed places, lie the windows the kernel fills itself, one root entry (512 GiB) each.

use core_address::{Frame, PAGE_SIZE, VirtAddr};

/// Bytes one root entry spans.
const ROOT_ENTRY_BYTES: u64 = 1 << 39;

/// A range of virtual addresses with one purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// First byte.
    pub start: u64,
    /// Size.
    pub bytes: u64,
}

/// Device registers, mapped one by one.
pub const DEVICES: Window = Window { start: 0xffff_fe00_0000_0000, bytes: ROOT_ENTRY_BYTES };
/// Kernel stacks, each with an unmapped guard below it.
pub const STACKS: Window = Window { start: 0xffff_fe80_0000_0000, bytes: ROOT_ENTRY_BYTES };
/// Tables that grow, with frames behind what is used of them.
pub const RECORDS: Window = Window { start: 0xffff_ff00_0000_0000, bytes: ROOT_ENTRY_BYTES };
/// The kernel's image: the last 2 GiB, as its code model wants.
pub const IMAGE: Window = Window { start: 0xffff_ffff_8000_0000, bytes: 0x8000_0000 };

/// The root entries the kernel fills at boot, beside those of the direct map.
pub const WINDOWS: [Window; 4] = [DEVICES, STACKS, RECORDS, IMAGE];

impl Window {
    /// Whether an address lies inside.
    pub const fn contains(self, address: u64) -> bool {
        address >= self.start && address - self.start < self.bytes
    }
}

/// Checks the loader's choice: an offset in the upper half, a multiple of 1 GiB (so that large
/// pages line up), with `end` frames of physical memory fitting below the kernel's windows.
pub fn direct_map_fits(offset: u64, end: Frame) -> bool {
    let first_window = DEVICES.start;
    let bytes = end.number() * PAGE_SIZE;
    VirtAddr::new(offset).is_some_and(VirtAddr::is_upper_half)
        && offset.is_multiple_of(1 << 30)
        && offset < first_window
        && first_window - offset >= bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_do_not_overlap_and_lie_on_root_entries() {
        for (i, a) in WINDOWS.iter().enumerate() {
            for b in WINDOWS.iter().skip(i + 1) {
                assert!(a.start + (a.bytes - 1) < b.start);
            }
        }
        assert_eq!(DEVICES.start % ROOT_ENTRY_BYTES, 0);
        assert_eq!(STACKS.start % ROOT_ENTRY_BYTES, 0);
        assert_eq!(RECORDS.start % ROOT_ENTRY_BYTES, 0);
        assert!(IMAGE.contains(u64::MAX) && !IMAGE.contains(IMAGE.start - 1));
    }

    #[test]
    fn a_direct_map_that_would_reach_the_windows_is_refused() {
        let gib = 1u64 << 30;
        let frames = |bytes: u64| Frame::new(bytes / PAGE_SIZE).unwrap();
        assert!(direct_map_fits(0xffff_8000_0000_0000, frames(64 * gib)));
        assert!(direct_map_fits(DEVICES.start - gib, frames(gib)));
        assert!(!direct_map_fits(DEVICES.start - gib, frames(2 * gib)));
        assert!(!direct_map_fits(DEVICES.start, frames(gib)));
        assert!(!direct_map_fits(0xffff_8000_0020_0000, frames(gib)));
        assert!(!direct_map_fits(0x4000_0000, frames(gib)));
    }
}
