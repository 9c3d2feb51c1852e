//! Physical and virtual addresses and frames as types, so that none is taken for another.
//!
//! Arithmetic that can leave the address space returns an `Option`; nothing here panics.
#![no_std]

mod start;

use core::fmt;

pub use start::{BadStart, check_start};

/// Bytes in the smallest page and in a frame.
pub const PAGE_SIZE: u64 = 4096;

/// Bits an x86-64 page-table entry has for a physical address (Intel SDM vol. 3, 4.5: MAXPHYADDR ≤ 52).
pub const PHYS_BITS: u32 = 52;

/// Bits of an address that are free in the lower half; all above them are zero there.
pub const LOWER_HALF_BITS: u32 = 47;

/// Whether an address is canonical and in the lower half: the only kind that code in user mode may
/// be resumed at. SYSRET and IRETQ to any other fault with the kernel's privilege.
pub const fn is_lower_half(address: u64) -> bool {
    address >> LOWER_HALF_BITS == 0
}

/// A physical address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PhysAddr(u64);

/// A canonical virtual address for 48-bit paging: bits 63 to 47 are equal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct VirtAddr(u64);

/// A physical frame by number: its address is the number times [`PAGE_SIZE`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Frame(u64);

/// Frames from `start` up to, not including, `end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FrameRange {
    start: Frame,
    end: Frame,
}

impl PhysAddr {
    /// The address, if a page-table entry can hold it.
    pub const fn new(address: u64) -> Option<Self> {
        if address >> PHYS_BITS == 0 { Some(Self(address)) } else { None }
    }

    /// As a number.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The address `bytes` further up.
    pub fn checked_add(self, bytes: u64) -> Option<Self> {
        Self::new(self.0.checked_add(bytes)?)
    }

    /// The frame that holds the address.
    pub const fn frame(self) -> Frame {
        Frame(self.0 / PAGE_SIZE)
    }

    /// Bytes between the start of the frame and the address.
    pub const fn page_offset(self) -> u64 {
        self.0 % PAGE_SIZE
    }
}

impl VirtAddr {
    /// The address, if it is canonical.
    pub const fn new(address: u64) -> Option<Self> {
        let top = address >> 47;
        if top == 0 || top == 0x1_ffff { Some(Self(address)) } else { None }
    }

    /// As a number.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The address `bytes` further up, if no non-canonical gap lies between.
    pub fn checked_add(self, bytes: u64) -> Option<Self> {
        let sum = Self::new(self.0.checked_add(bytes)?)?;
        (sum.is_upper_half() == self.is_upper_half()).then_some(sum)
    }

    /// Whether it belongs to the kernel's half.
    pub const fn is_upper_half(self) -> bool {
        self.0 >> 63 == 1
    }

    /// Bytes between the start of the page and the address.
    pub const fn page_offset(self) -> u64 {
        self.0 % PAGE_SIZE
    }
}

impl Frame {
    /// The frame with that number, if a page-table entry can hold its address.
    pub const fn new(number: u64) -> Option<Self> {
        if number >> (PHYS_BITS - 12) == 0 { Some(Self(number)) } else { None }
    }

    /// Its number.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Its first byte.
    pub const fn start(self) -> PhysAddr {
        PhysAddr(self.0 * PAGE_SIZE)
    }

    /// The frame `count` further up.
    pub fn checked_add(self, count: u64) -> Option<Self> {
        Self::new(self.0.checked_add(count)?)
    }
}

impl FrameRange {
    /// Frames `start..end`; `None` if the end lies before the start.
    pub fn new(start: Frame, end: Frame) -> Option<Self> {
        (start <= end).then_some(Self { start, end })
    }

    /// The frames that lie wholly inside `bytes` of memory from `base`.
    pub fn inside(base: u64, bytes: u64) -> Option<Self> {
        let start = Frame::new(base.div_ceil(PAGE_SIZE))?;
        let end = Frame::new(base.checked_add(bytes)? / PAGE_SIZE)?;
        Self::new(start, end.max(start))
    }

    /// The frames that `bytes` of memory from `base` touch.
    pub fn around(base: u64, bytes: u64) -> Option<Self> {
        let start = Frame::new(base / PAGE_SIZE)?;
        let end = Frame::new(base.checked_add(bytes)?.div_ceil(PAGE_SIZE))?;
        Self::new(start, end)
    }

    /// First frame.
    pub const fn start(self) -> Frame {
        self.start
    }

    /// The frame after the last.
    pub const fn end(self) -> Frame {
        self.end
    }

    /// How many.
    pub const fn count(self) -> u64 {
        self.end.0 - self.start.0
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.start.0 == self.end.0
    }

    /// Whether a frame is one of them.
    pub fn contains(self, frame: Frame) -> bool {
        self.start <= frame && frame < self.end
    }

    /// The frames that are in both.
    pub fn intersection(self, other: Self) -> Self {
        let start = self.start.max(other.start);
        Self { start, end: self.end.min(other.end).max(start) }
    }

    /// The frames from `first` on.
    pub fn from_frame(self, first: Frame) -> Self {
        let start = self.start.max(first).min(self.end);
        Self { start, end: self.end }
    }

    /// What is left below and above after `hole` is taken out.
    pub fn without(self, hole: Self) -> (Self, Self) {
        let hole = self.intersection(hole);
        if hole.is_empty() {
            return (self, Self { start: self.end, end: self.end });
        }
        (Self { start: self.start, end: hole.start }, Self { start: hole.end, end: self.end })
    }
}

impl fmt::Debug for PhysAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "phys {:#x}", self.0)
    }
}

impl fmt::Debug for VirtAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.0)
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frame {:#x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(a: u64, b: u64) -> FrameRange {
        FrameRange::new(Frame::new(a).unwrap(), Frame::new(b).unwrap()).unwrap()
    }

    #[test]
    fn canonical_addresses_only() {
        for good in [0, 0x7fff_ffff_ffff, 0xffff_8000_0000_0000, u64::MAX] {
            assert!(VirtAddr::new(good).is_some(), "{good:#x}");
        }
        for bad in [0x8000_0000_0000, 0xffff_7fff_ffff_ffff, 1 << 63] {
            assert!(VirtAddr::new(bad).is_none(), "{bad:#x}");
        }
        let last_user = VirtAddr::new(0x7fff_ffff_ffff).unwrap();
        assert_eq!(last_user.checked_add(1), None);
        assert_eq!(last_user.checked_add(0xffff_0000_0000_0001), None);
    }

    #[test]
    fn the_lower_half_ends_where_canonical_addresses_do() {
        for (address, expected) in [
            (0, true),
            (0x7fff_ffff_ffff, true),
            (0x8000_0000_0000, false),
            (0xffff_7fff_ffff_ffff, false),
            (0xffff_8000_0000_0000, false),
            (u64::MAX, false),
        ] {
            assert_eq!(is_lower_half(address), expected, "{address:#x}");
            let canonical = VirtAddr::new(address).is_some_and(|v| !v.is_upper_half());
            assert_eq!(canonical, expected);
        }
    }

    #[test]
    fn ranges_round_the_way_their_name_says() {
        assert_eq!(FrameRange::inside(1, 8191), Some(range(1, 2)));
        assert_eq!(FrameRange::around(1, 8191), Some(range(0, 2)));
        assert_eq!(FrameRange::inside(1, 100).unwrap().count(), 0);
        assert_eq!(FrameRange::inside(u64::MAX - 1, 2), None);
        assert_eq!(FrameRange::around(1 << 52, 1), None);
    }

    #[test]
    fn a_range_from_a_frame_on() {
        let at = |n| range(10, 20).from_frame(Frame::new(n).unwrap());
        assert_eq!((at(0), at(10), at(15)), (range(10, 20), range(10, 20), range(15, 20)));
        assert!(at(20).is_empty() && at(99).is_empty());
    }

    #[test]
    fn a_hole_splits_a_range_without_loss() {
        let all = range(10, 20);
        for a in 0..30 {
            for b in a..30 {
                let (low, high) = all.without(range(a, b));
                for f in 0..30 {
                    let frame = Frame::new(f).unwrap();
                    let expected = (10..20).contains(&f) && !(a..b).contains(&f);
                    assert_eq!(low.contains(frame) || high.contains(frame), expected);
                }
            }
        }
    }
}
