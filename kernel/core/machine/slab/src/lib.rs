//! Size classes of the kernel heap, and which slots of a page are taken.
//!
//! A small allocation is a slot in a 4 KiB page of equal slots; the first bytes of the page are
//! its header. Larger ones are whole frames. Nothing here touches the pages.
#![no_std]

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;
/// Bytes at the start of a page that hold its header. Slots follow, so this is also the largest
/// alignment a slot can have.
pub const HEADER_BYTES: usize = 64;
/// The sizes slots come in: what divides the page's rest well, with 64-byte multiples among them.
const SIZES: [usize; 15] =
    [16, 32, 48, 64, 96, 128, 192, 256, 320, 448, 576, 672, 1008, 1344, LARGEST];
/// The last of them.
const LARGEST: usize = 2016;
/// What all sizes are multiples of.
const GRAIN: usize = 16;
/// The first class that holds so many grains, by their number.
const FIRST: [u8; LARGEST / GRAIN + 1] = first_by_grains();
/// How many classes there are.
pub const CLASSES: usize = SIZES.len();
/// The most slots a page has.
const MAX_SLOTS: usize = (PAGE_BYTES - HEADER_BYTES) / 16;
const WORDS: usize = MAX_SLOTS.div_ceil(64);

#[allow(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler, which refuses one that is out of range"
)]
const fn first_by_grains() -> [u8; LARGEST / GRAIN + 1] {
    let mut first = [0; LARGEST / GRAIN + 1];
    let (mut grains, mut class) = (0, 0);
    while grains < first.len() {
        if SIZES[class] < grains * GRAIN {
            class += 1;
        }
        first[grains] = class as u8;
        grains += 1;
    }
    first
}

/// A size class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Class(u8);

impl Class {
    /// The smallest class whose slots hold `size` bytes aligned to `align`; `None` if that takes
    /// whole frames.
    pub fn for_layout(size: usize, align: usize) -> Option<Class> {
        if align == 0 || align > HEADER_BYTES {
            return None;
        }
        let first = *FIRST.get(size.div_ceil(GRAIN))?;
        if align <= GRAIN && GRAIN.is_multiple_of(align) {
            return Some(Class(first));
        }
        let fits =
            |class: &u8| SIZES.get(usize::from(*class)).is_some_and(|s| s.is_multiple_of(align));
        (first..CLASSES as u8).find(fits).map(Class)
    }

    /// Bytes of a slot.
    pub fn slot_bytes(self) -> usize {
        SIZES.get(self.index()).copied().unwrap_or(PAGE_BYTES)
    }

    /// Slots in a page.
    pub fn slots(self) -> usize {
        (PAGE_BYTES - HEADER_BYTES) / self.slot_bytes()
    }

    /// Its number, below [`CLASSES`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Where a slot starts in its page.
    pub fn offset(self, slot: usize) -> usize {
        HEADER_BYTES + slot * self.slot_bytes()
    }

    /// The slot that starts at an offset of its page, if one does.
    pub fn slot_at(self, offset: usize) -> Option<usize> {
        let rest = offset.checked_sub(HEADER_BYTES)?;
        let slot = rest / self.slot_bytes();
        (rest.is_multiple_of(self.slot_bytes()) && slot < self.slots()).then_some(slot)
    }
}

/// Which slots of a page are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Occupancy {
    taken: [u64; WORDS],
    used: u16,
    slots: u16,
}

impl Occupancy {
    /// A page of `class` with every slot free.
    pub fn new(class: Class) -> Self {
        Self { taken: [0; WORDS], used: 0, slots: class.slots() as u16 }
    }

    /// Takes the lowest free slot; `None` when the page is full.
    pub fn take(&mut self) -> Option<usize> {
        if self.is_full() {
            return None;
        }
        let (index, word) = self.taken.iter_mut().enumerate().find(|(_, w)| **w != u64::MAX)?;
        let bit = word.trailing_ones() as usize;
        let slot = index * 64 + bit;
        if slot >= usize::from(self.slots) {
            return None;
        }
        *word |= 1 << bit;
        self.used += 1;
        Some(slot)
    }

    /// Gives a slot back; `false`, and nothing changed, if it was not taken.
    #[must_use]
    pub fn give_back(&mut self, slot: usize) -> bool {
        let Some(word) = self.taken.get_mut(slot / 64) else { return false };
        let mask = 1 << (slot % 64);
        if *word & mask == 0 {
            return false;
        }
        *word &= !mask;
        self.used -= 1;
        true
    }

    /// Whether every slot is taken.
    pub const fn is_full(&self) -> bool {
        self.used >= self.slots
    }

    /// Whether none is.
    pub const fn is_empty(&self) -> bool {
        self.used == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::collections::BTreeSet;

    #[test]
    fn a_class_holds_what_it_is_asked_for() {
        for size in 1..3000 {
            for align in [1, 2, 4, 8, 16, 32, 64, 128, 4096] {
                let Some(class) = Class::for_layout(size, align) else {
                    assert!(size > 1344 || align > 64, "size {size} align {align} has no class");
                    continue;
                };
                assert!(class.slot_bytes() >= size);
                for slot in 0..class.slots() {
                    let offset = class.offset(slot);
                    assert_eq!(offset % align, 0);
                    assert!(offset >= HEADER_BYTES && offset + class.slot_bytes() <= PAGE_BYTES);
                    assert_eq!(class.slot_at(offset), Some(slot));
                    assert_eq!(class.slot_at(offset + 1), None);
                }
                assert_eq!(class.slot_at(class.offset(class.slots())), None);
                assert_eq!(class.slot_at(0), None);
            }
        }
    }

    #[test]
    fn a_class_is_the_smallest_that_fits() {
        for size in 0..3000 {
            for align in [1, 2, 4, 8, 16, 32, 64] {
                let slowly = SIZES.iter().position(|s| *s >= size && s.is_multiple_of(align));
                let found = Class::for_layout(size, align).map(Class::index);
                assert_eq!(found, slowly, "size {size} align {align}");
            }
        }
    }

    #[test]
    fn classes_waste_little() {
        for index in 0..CLASSES {
            let class = Class(index as u8);
            let rest = PAGE_BYTES - HEADER_BYTES - class.slots() * class.slot_bytes();
            assert!(rest < 256, "{} bytes left over in class {}", rest, class.slot_bytes());
        }
    }

    #[test]
    fn slots_are_handed_out_once() {
        for index in 0..CLASSES {
            let class = Class(index as u8);
            let mut page = Occupancy::new(class);
            let mut model = BTreeSet::new();
            let mut state = 3u64;
            for _ in 0..3000 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                if state >> 40 & 3 != 0 {
                    match page.take() {
                        Some(slot) => assert!(slot < class.slots() && model.insert(slot)),
                        None => assert_eq!(model.len(), class.slots()),
                    }
                } else {
                    let slot = (state >> 33) as usize % (class.slots() + 3);
                    assert_eq!(page.give_back(slot), model.remove(&slot));
                }
                assert_eq!(page.is_empty(), model.is_empty());
                assert_eq!(page.is_full(), model.len() == class.slots());
            }
        }
    }
}
