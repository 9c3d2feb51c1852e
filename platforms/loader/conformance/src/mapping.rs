//! The memory map and the page tables, checked against each other.

use crate::entry::State;
use crate::memory::{Leaf, Region, hhdm, kind_of, map, walk, word};
use crate::report::yes;
use crate::requests::{Answer, EXECUTABLE_ADDRESS};
use crate::say;

unsafe extern "C" {
    static kernel_start: u8;
    static kernel_code_end: u8;
    static kernel_constants_end: u8;
    static kernel_end: u8;
}

/// Prints what must hold for the map, the direct map and the executable's mapping.
pub fn lines(state: &State) {
    let levels = if state.cr4 >> 12 & 1 == 1 { 5 } else { 4 };
    memory_map();
    direct_map(state.cr3, levels);
    lower_half(state.cr3);
    executable(state.cr3, levels);
}

fn memory_map() {
    let pairs = || map().zip(map().skip(1));
    say!("map sorted {}", yes(pairs().all(|(a, b)| a.base < b.base)));
    let is_paged = |r: &Region| r.kind == 0 || r.kind == 5;
    let aligned = map().filter(is_paged).all(|r| (r.base | r.length) % 4096 == 0);
    say!("map usable-and-reclaimable aligned {}", yes(aligned));
    let apart = pairs().all(|(a, b)| a.base + a.length <= b.base);
    say!("map overlaps {}", yes(!apart));
    say!("map kinds known {}", yes(map().all(|r| r.kind <= 8)));
    say!("map empty-entries {}", yes(map().any(|r| r.length == 0)));
    let usable: u64 = map().filter(|r| r.kind == 0).map(|r| r.length).sum();
    // The tests give the machine 256 MiB.
    say!("map usable at-least-200-mib {}", yes(usable >= 200 << 20));
}

fn is_mapped_kind(kind: u64) -> bool {
    !matches!(kind, 1 | 4)
}

fn direct_map(root: u64, levels: u32) {
    let Some(base) = hhdm() else { return };
    let mut complete = true;
    let mut rights = true;
    let mut cache = true;
    let mut large = false;
    let mut tables = true;
    for region in map().filter(|r| is_mapped_kind(r.kind)) {
        let mut at = region.base & !4095;
        while at < region.base + region.length {
            let mut see = |table: u64| tables &= kind_of(table) == 5;
            // The tables' own kinds are looked at once per gigabyte: they are few.
            let mut skip = |_: u64| {};
            let visit: &mut dyn FnMut(u64) = if at % (1 << 30) == 0 { &mut see } else { &mut skip };
            let Some(leaf) = walk(root, levels, base + at, visit) else {
                complete = false;
                break;
            };
            complete &= leaf.phys == at;
            rights &= leaf.rights == (true, true, false);
            cache &= leaf.cache == if region.kind == 7 { 5 } else { 0 };
            large |= leaf.size > 4096;
            at += leaf.size - at % leaf.size;
        }
    }
    say!("direct-map complete {} supervisor-rwx {}", yes(complete), yes(rights));
    say!("direct-map cache-types-right {} large-pages {}", yes(cache), yes(large));
    say!("direct-map tables-reclaimable {}", yes(tables));
    let shares_page = |page: u64| {
        map().any(|r| is_mapped_kind(r.kind) && r.base < page + 4096 && page < r.base + r.length)
    };
    let absent = map().filter(|r| !is_mapped_kind(r.kind)).all(|r| {
        let last = r.base + r.length - 1;
        [r.base, r.base + r.length / 2, last].into_iter().all(|address| {
            let page = address & !4095;
            shares_page(page) || walk(root, levels, base + page, &mut |_| {}).is_none()
        })
    });
    say!("direct-map reserved-absent {}", yes(absent));
    let controllers = [0xfee0_0000u64, 0xfec0_0000];
    let missing =
        controllers.into_iter().all(|c| walk(root, levels, base + c, &mut |_| {}).is_none());
    say!("direct-map controllers-absent {}", yes(missing));
}

fn lower_half(root: u64) {
    let Some(base) = hhdm() else { return };
    let empty = (0..256).all(|slot| word(base + (root & !4095) + slot * 8) == 0);
    say!("lower-half empty {}", yes(empty));
}

fn executable(root: u64, levels: u32) {
    let Some(response) = EXECUTABLE_ADDRESS.response() else { return };
    let (phys, virt) = (word(response + 8), word(response + 16));
    let edges = [
        &raw const kernel_start as u64,
        &raw const kernel_code_end as u64,
        &raw const kernel_constants_end as u64,
        &raw const kernel_end as u64,
    ];
    say!("executable base {virt:#x} is-start {}", yes(virt == edges[0]));
    let expected = [(false, true, false), (false, false, false), (true, false, false)];
    for (index, name) in ["code", "constants", "data"].into_iter().enumerate() {
        let (Some(start), Some(end)) = (edges.get(index), edges.get(index + 1)) else { continue };
        let right = (*start..*end).step_by(4096).all(|page| {
            let leaf: Option<Leaf> = walk(root, levels, page, &mut |_| {});
            leaf.is_some_and(|leaf| {
                Some(&leaf.rights) == expected.get(index)
                    && leaf.phys == page - virt + phys
                    && leaf.cache == 0
                    && kind_of(leaf.phys) == 6
            })
        });
        say!("executable {name} mapped-right {}", yes(right));
    }
    let past = walk(root, levels, edges[3], &mut |_| {}).is_none();
    say!("executable ends {}", yes(past));
}
