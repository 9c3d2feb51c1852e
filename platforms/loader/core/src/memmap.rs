//! The memory map the kernel is given, made from the firmware's and from what the loader took.
//!
//! Firmware maps overlap, are unsorted, share pages and have holes. [`normalise`] makes one
//! that is sorted, free of overlaps, and whose usable and reclaimable entries cover whole
//! pages of nothing else. In doubt memory is not usable.

use crate::memory::{page_down, page_up};
use crate::refusal::Refusal;

/// What a range of physical memory is, with the protocol's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u64)]
pub enum Kind {
    /// Free.
    Usable = 0,
    /// Not memory for the kernel, and not in the direct map.
    Reserved = 1,
    /// ACPI tables; free once they were read.
    AcpiReclaimable = 2,
    /// ACPI's own; never free.
    AcpiNvs = 3,
    /// Broken.
    Bad = 4,
    /// The loader's: responses, page tables, stacks. Free once the kernel has its own.
    BootloaderReclaimable = 5,
    /// The executable and the modules.
    ExecutableAndModules = 6,
    /// A framebuffer.
    Framebuffer = 7,
    /// Reserved, and in the direct map: firmware tables and runtime services.
    ReservedMapped = 8,
}

impl Kind {
    /// Whether the direct map contains it.
    pub const fn is_mapped(self) -> bool {
        !matches!(self, Self::Reserved | Self::Bad)
    }

    /// Whether entries of this kind must be whole pages that overlap nothing.
    const fn is_paged(self) -> bool {
        matches!(self, Self::Usable | Self::BootloaderReclaimable)
    }

    /// Where two firmware entries overlap, the one with the higher rank is believed.
    const fn rank(self) -> u8 {
        match self {
            Self::Usable => 0,
            Self::BootloaderReclaimable => 1,
            Self::ExecutableAndModules => 2,
            Self::AcpiReclaimable => 3,
            Self::AcpiNvs => 4,
            Self::ReservedMapped => 5,
            Self::Reserved => 6,
            Self::Framebuffer => 7,
            Self::Bad => 8,
        }
    }
}

/// A range of physical memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First byte.
    pub base: u64,
    /// Bytes.
    pub length: u64,
    /// What it is.
    pub kind: Kind,
}

impl Region {
    /// The byte after the last; a range that would wrap ends at the top.
    pub const fn end(&self) -> u64 {
        self.base.saturating_add(self.length)
    }

    fn contains(&self, address: u64) -> bool {
        self.base <= address && address < self.end()
    }
}

/// What the loader lays over the firmware's map; later rules in [`overlay`].
type Overlays<'a> = &'a [&'a [Region]];

/// The kind of the bytes from `at` to the next boundary, or `None` for a hole.
fn kind_at(firmware: &[Region], overlays: Overlays<'_>, at: u64) -> Option<Kind> {
    let found = firmware
        .iter()
        .filter(|region| region.contains(at))
        .map(|region| region.kind)
        .max_by_key(|kind| kind.rank());
    let mut kind = found;
    for region in overlays.iter().copied().flatten() {
        if region.contains(at) {
            kind = overlay(kind, region.kind);
        } else if region.kind == Kind::Framebuffer
            && page_down(region.base) <= at
            && at < page_up(region.end())
            && matches!(kind, Some(Kind::Usable | Kind::Reserved | Kind::BootloaderReclaimable))
        {
            // The rest of a framebuffer's page would get the framebuffer's cache type.
            kind = None;
        }
    }
    kind
}

/// What `over` makes of memory the firmware calls `under`.
fn overlay(under: Option<Kind>, over: Kind) -> Option<Kind> {
    match (under, over) {
        (Some(Kind::Bad), _) => Some(Kind::Bad),
        // Tables that already lie where the kernel can see them stay what they are.
        (Some(Kind::AcpiReclaimable | Kind::AcpiNvs | Kind::Framebuffer), Kind::ReservedMapped) => {
            under
        }
        // The loader only took pages that were free.
        (
            Some(Kind::Usable | Kind::BootloaderReclaimable),
            Kind::BootloaderReclaimable | Kind::ExecutableAndModules,
        ) => Some(over),
        (_, Kind::BootloaderReclaimable | Kind::ExecutableAndModules) => under,
        _ => Some(over),
    }
}

/// The next address after `at` where something begins or ends.
fn next_boundary(firmware: &[Region], overlays: Overlays<'_>, at: u64) -> Option<u64> {
    let edges = |region: &Region| {
        let (base, end) = (region.base, region.end());
        [base, end, page_down(base), page_up(end)]
    };
    firmware
        .iter()
        .chain(overlays.iter().copied().flatten())
        .filter(|region| region.length > 0)
        .flat_map(edges)
        .filter(|&edge| edge > at)
        .min()
}

/// Writes the normalised map to `out` and gives its length.
///
/// Firmware entries of length 0 are dropped. On error `out` holds nothing of meaning.
pub fn normalise(
    firmware: &[Region],
    overlays: Overlays<'_>,
    out: &mut [Region],
) -> Result<usize, Refusal> {
    let limit = out.len();
    let mut count: usize = 0;
    let mut push = |region: Region| -> Result<(), Refusal> {
        if let Some(last) = count.checked_sub(1).and_then(|last| out.get_mut(last))
            && last.kind == region.kind
            && last.end() == region.base
        {
            last.length += region.length;
            return Ok(());
        }
        *out.get_mut(count).ok_or(Refusal::MapTooLong { limit })? = region;
        count += 1;
        Ok(())
    };
    let mut at = 0;
    loop {
        let next = next_boundary(firmware, overlays, at);
        let Some(next) = next else { break };
        if let Some(kind) = kind_at(firmware, overlays, at) {
            push(Region { base: at, length: next - at, kind })?;
        }
        at = next;
    }
    // Whole pages only: what is left of a partial page at the edge is nobody's.
    let mut kept = 0;
    for index in 0..count {
        let Some(mut region) = out.get(index).copied() else { break };
        if region.kind.is_paged() {
            let (base, end) = (page_up(region.base), page_down(region.end()));
            region.base = base;
            region.length = end.saturating_sub(base);
        }
        if region.length > 0
            && let Some(slot) = out.get_mut(kept)
        {
            *slot = region;
            kept += 1;
        }
    }
    Ok(kept)
}

/// The page-rounded ranges of a normalised map that the direct map contains, in order and
/// merged, with framebuffers apart: calls `visit(base, end, is_framebuffer)`.
pub fn direct_map_ranges<E>(
    map: &[Region],
    mut visit: impl FnMut(u64, u64, bool) -> Result<(), E>,
) -> Result<(), E> {
    let mut run: Option<(u64, u64, bool)> = None;
    for region in map.iter().filter(|region| region.kind.is_mapped()) {
        let framebuffer = region.kind == Kind::Framebuffer;
        let mut base = page_down(region.base);
        let end = page_up(region.end());
        match &mut run {
            Some((_, run_end, run_framebuffer)) if base <= *run_end => {
                if *run_framebuffer == framebuffer {
                    *run_end = end.max(*run_end);
                    continue;
                }
                // A shared page keeps the framebuffer's type: nothing else in it is used.
                if framebuffer {
                    *run_end = base;
                } else {
                    base = *run_end;
                }
            }
            _ => {}
        }
        if let Some((base, end, framebuffer)) = run.replace((base, end.max(base), framebuffer))
            && base < end
        {
            visit(base, end, framebuffer)?;
        }
    }
    match run {
        Some((base, end, framebuffer)) if base < end => visit(base, end, framebuffer),
        _ => Ok(()),
    }
}

/// An empty entry, to make buffers of.
pub const NO_REGION: Region = Region { base: 0, length: 0, kind: Kind::Reserved };

/// The range rounded outwards to pages.
pub const fn whole_pages(base: u64, length: u64, kind: Kind) -> Region {
    let start = page_down(base);
    Region { base: start, length: page_up(base.saturating_add(length)) - start, kind }
}
