//! Which physical memory the direct map holds, and with which rights.
//!
//! Memory is mapped writable and never executable; the kernel's own code and constants are
//! mapped read-only there too, or the direct map would be a way around W^X. Device memory is not
//! in the direct map at all: it is mapped where it is used.

use crate::entry::{Access, Caching, Rights};
use core_address::FrameRange;

/// What a range of physical memory is, as far as the direct map cares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryKind {
    /// Memory: usable, given back by the loader, the kernel and its modules, firmware tables.
    Memory,
    /// A frame buffer.
    Framebuffer,
    /// Anything else: not mapped.
    Hidden,
}

/// Calls `each` for every range of the direct map, in ascending order and without overlap.
///
/// `regions` are sorted by their start, as the boot protocol promises; where two share a page
/// the first one has it. Frames in `read_only` are mapped without write access. The first error
/// of `each` ends the walk.
pub fn direct_map<E>(
    regions: impl Iterator<Item = (FrameRange, MemoryKind)>,
    read_only: FrameRange,
    mut each: impl FnMut(FrameRange, Rights) -> Result<(), E>,
) -> Result<(), E> {
    let mut pending: Option<(FrameRange, MemoryKind)> = None;
    for (range, kind) in regions {
        if kind == MemoryKind::Hidden || range.is_empty() {
            continue;
        }
        let Some((last, last_kind)) = pending else {
            pending = Some((range, kind));
            continue;
        };
        let start = range.start().max(last.end());
        let Some(rest) = FrameRange::new(start, range.end()) else { continue };
        // Neighbours of one kind become one range, so that large pages can span them.
        if rest.start() == last.end() && kind == last_kind {
            pending = FrameRange::new(last.start(), rest.end()).map(|joined| (joined, kind));
        } else {
            emit(last, last_kind, read_only, &mut each)?;
            pending = Some((rest, kind));
        }
    }
    match pending {
        Some((range, kind)) => emit(range, kind, read_only, &mut each),
        None => Ok(()),
    }
}

fn emit<E>(
    range: FrameRange,
    kind: MemoryKind,
    read_only: FrameRange,
    each: &mut impl FnMut(FrameRange, Rights) -> Result<(), E>,
) -> Result<(), E> {
    let caching = match kind {
        MemoryKind::Framebuffer => Caching::WriteCombining,
        MemoryKind::Memory | MemoryKind::Hidden => Caching::WriteBack,
    };
    let writable = Rights { caching, ..Rights::kernel(Access::Write) };
    let (below, above) = range.without(read_only);
    let inside = range.intersection(read_only);
    let constant = Rights { caching, ..Rights::kernel(Access::Read) };
    for (part, rights) in [(below, writable), (inside, constant), (above, writable)] {
        if !part.is_empty() {
            each(part, rights)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use core_address::Frame;
    use std::vec::Vec;

    fn range(a: u64, b: u64) -> FrameRange {
        FrameRange::new(Frame::new(a).unwrap(), Frame::new(b).unwrap()).unwrap()
    }

    fn plan(
        regions: &[(FrameRange, MemoryKind)],
        read_only: FrameRange,
    ) -> Vec<(u64, u64, Rights)> {
        let mut out = Vec::new();
        direct_map(regions.iter().copied(), read_only, |r, rights| {
            out.push((r.start().number(), r.end().number(), rights));
            Ok::<(), ()>(())
        })
        .unwrap();
        out
    }

    #[test]
    fn neighbours_join_and_holes_stay_holes() {
        use MemoryKind::*;
        let regions = [
            (range(0, 10), Memory),
            (range(10, 20), Memory),
            (range(20, 30), Hidden),
            (range(30, 40), Memory),
            (range(39, 45), Framebuffer),
        ];
        let write = Rights::kernel(Access::Write);
        let screen = Rights { caching: Caching::WriteCombining, ..write };
        assert_eq!(
            plan(&regions, range(0, 0)),
            [(0, 20, write), (30, 40, write), (40, 45, screen)]
        );
    }

    #[test]
    fn the_kernel_image_is_read_only() {
        let write = Rights::kernel(Access::Write);
        let read = Rights::kernel(Access::Read);
        assert_eq!(
            plan(&[(range(0, 100), MemoryKind::Memory)], range(40, 50)),
            [(0, 40, write), (40, 50, read), (50, 100, write)]
        );
    }

    #[test]
    fn a_region_swallowed_by_the_one_before_is_dropped() {
        let write = Rights::kernel(Access::Write);
        let regions =
            [(range(0, 50), MemoryKind::Memory), (range(10, 20), MemoryKind::Framebuffer)];
        assert_eq!(plan(&regions, range(0, 0)), [(0, 50, write)]);
    }

    #[test]
    fn an_error_ends_the_walk() {
        let regions = [(range(0, 1), MemoryKind::Memory), (range(5, 6), MemoryKind::Memory)];
        let mut calls = 0;
        let result = direct_map(regions.into_iter(), range(0, 0), |_, _| {
            calls += 1;
            Err("full")
        });
        assert_eq!((result, calls), (Err("full"), 1));
    }
}
