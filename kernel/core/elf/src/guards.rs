//! Guards: pages below stacks that are not mapped, so that an overflow is a fault and nothing else.
//!
//! A file declares them in notes ([`abi_types::Guards`]); the pages are within a segment and taken out
//! of what is mapped. What is declared is kept with the process, to tell an overflow from any other
//! fault.
//!
//! Decided in ADR 180.

use core::fmt;
use core::ops::Range;

use abi_types::place::{STACK_PAGES, STACK_TOP};
use arrayvec::ArrayVec;
use core_address::PAGE_SIZE;
use core_paging::Access;

use crate::{Error, Segment, limits};

/// Where the first thread's stack has its guard: the page below it is never mapped.
const FIRST_STACK: abi_types::Guards = abi_types::Guards {
    start: STACK_TOP - (STACK_PAGES + 1) * PAGE_SIZE,
    stride: (STACK_PAGES + 1) * PAGE_SIZE,
    count: 1,
};

/// All guards a file declares: sound, by ascending address, no two of them sharing memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guards(ArrayVec<abi_types::Guards, { limits::GUARDS }>);

/// The stack whose guard an address is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// Below the first thread's stack.
    First {
        /// Bytes of that stack, without the guard.
        bytes: u64,
    },
    /// Below one of the stacks a file declares together.
    Declared {
        /// Its number, from 1 on.
        stack: u64,
        /// How many stacks the declaration has.
        count: u64,
        /// Bytes of each of them, without the guard.
        bytes: u64,
    },
}

impl Guards {
    /// The declarations of a file that has none; the first thread's guard is there all the same.
    pub const fn new() -> Self {
        Self(ArrayVec::new_const())
    }

    /// The declarations, as they are in the file's notes, by ascending address.
    pub fn declared(&self) -> &[abi_types::Guards] {
        &self.0
    }

    /// Whether the address is in a guard, declared or below the first thread's stack; of which stack.
    pub fn overflow(&self, address: u64) -> Option<Overflow> {
        if guard_of(&FIRST_STACK, address).is_some() {
            return Some(Overflow::First { bytes: FIRST_STACK.stride - PAGE_SIZE });
        }
        self.0.iter().find_map(|guards| {
            let number = guard_of(guards, address)?;
            let bytes = guards.stride - PAGE_SIZE;
            Some(Overflow::Declared { stack: number + 1, count: guards.count, bytes })
        })
    }

    /// The guards among these addresses, which are a segment's, in ascending order.
    pub(crate) fn pages_in(&self, addresses: Range<u64>) -> impl Iterator<Item = u64> {
        let inside = self.0.iter().filter(move |guards| addresses.contains(&guards.start));
        inside.flat_map(|guards| (0..guards.count).map(|i| guards.start + i * guards.stride))
    }

    /// The address of a guard page by its number, the first thread's first; `None` beyond the last.
    pub fn address(&self, number: u64) -> Option<u64> {
        let mut left = number;
        for guards in core::iter::once(&FIRST_STACK).chain(&self.0) {
            if left < guards.count {
                return Some(guards.start + left * guards.stride);
            }
            left -= guards.count;
        }
        None
    }

    /// How many pages are guards.
    pub(crate) fn pages(&self) -> u64 {
        self.0.iter().map(|guards| guards.count).sum()
    }

    /// Takes a declaration, if it is sound beside those before it and fits the segments.
    pub(crate) fn add(
        &mut self,
        new: abi_types::Guards,
        segments: &[Segment],
    ) -> Result<(), Error> {
        let start = new.start;
        if !start.is_multiple_of(PAGE_SIZE) {
            return Err(Error::GuardAlignment { start });
        }
        if !new.stride.is_multiple_of(PAGE_SIZE) || new.stride < 2 * PAGE_SIZE {
            return Err(Error::GuardStride { start, stride: new.stride });
        }
        if new.count == 0 {
            return Err(Error::NoGuards { start });
        }
        let length = new.stride.checked_mul(new.count);
        let end = length
            .and_then(|length| start.checked_add(length))
            .ok_or(Error::GuardsOutside { start })?;
        let around = segments
            .iter()
            .find(|segment| start >= segment.start && end <= segment.end())
            .filter(|segment| segment.access == Access::Write)
            .ok_or(Error::GuardsOutside { start })?;
        if start < around.start + around.offset + around.bytes.length {
            return Err(Error::GuardsOverBytes { start });
        }
        // By ascending address, so only the neighbours could share memory with it.
        let at = self.0.partition_point(|other| other.start < start);
        let is_over = |other: &abi_types::Guards| other.start < end && start < end_of(other);
        let before = at.checked_sub(1).and_then(|before| self.0.get(before));
        if before.is_some_and(is_over) || self.0.get(at).is_some_and(is_over) {
            return Err(Error::GuardsOverlap { start });
        }
        self.0.try_insert(at, new).map_err(|_| Error::TooManyGuards)
    }
}

/// First address past the last stack. Only for what was accepted: there it does not overflow.
const fn end_of(guards: &abi_types::Guards) -> u64 {
    guards.start + guards.stride * guards.count
}

/// Which of the guards the address is in.
fn guard_of(guards: &abi_types::Guards, address: u64) -> Option<u64> {
    let offset = address.checked_sub(guards.start)?;
    let number = offset.checked_div(guards.stride)?;
    (number < guards.count && offset % guards.stride < PAGE_SIZE).then_some(number)
}

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stack overflow: the address is in the guard below ")?;
        match self {
            Self::First { bytes } => write!(f, "the first thread's stack ({bytes} bytes)"),
            Self::Declared { stack, count, bytes } => {
                write!(f, "stack {stack} of {count} ({bytes} bytes each)")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::string::ToString;

    fn guards() -> Guards {
        let zeros = Segment {
            start: 0x40_0000,
            pages: 0x100,
            access: Access::Write,
            bytes: crate::FileBytes::NONE,
            offset: 0,
        };
        let mut guards = Guards::new();
        for (start, stride, count) in [(0x48_0000, 0x2000, 2), (0x40_1000, 0x9000, 3)] {
            guards.add(abi_types::Guards { start, stride, count }, &[zeros]).unwrap();
        }
        guards
    }

    #[test]
    fn an_address_is_in_the_guard_of_one_stack_or_in_none() {
        let guards = guards();
        let found = |address| guards.overflow(address);
        let of_three = |stack| Some(Overflow::Declared { stack, count: 3, bytes: 0x8000 });
        assert_eq!(found(0x40_0fff), None);
        assert_eq!(found(0x40_1000), of_three(1));
        assert_eq!(found(0x40_1fff), of_three(1));
        assert_eq!(found(0x40_2000), None);
        assert_eq!(found(0x40_9fff), None);
        assert_eq!(found(0x40_a000), of_three(2));
        assert_eq!(found(0x41_3fff), of_three(3));
        // Where a fourth one would be.
        assert_eq!(found(0x41_c000), None);
        let of_two = Overflow::Declared { stack: 2, count: 2, bytes: 0x1000 };
        assert_eq!(found(0x48_2fff), Some(of_two));
        assert_eq!(found(0), None);
        assert_eq!(found(u64::MAX), None);
    }

    #[test]
    fn guard_pages_are_numbered_without_a_gap() {
        let first = STACK_TOP - (STACK_PAGES + 1) * PAGE_SIZE;
        let expected = [first, 0x40_1000, 0x40_a000, 0x41_3000, 0x48_0000, 0x48_2000];
        let guards = guards();
        assert!((0..6).filter_map(|number| guards.address(number)).eq(expected));
        assert_eq!(guards.address(6), None);
        assert_eq!(Guards::new().address(0), Some(first));
        assert_eq!(Guards::new().address(1), None);
    }

    #[test]
    fn the_first_threads_stack_has_its_guard_in_every_process() {
        let first = Some(Overflow::First { bytes: STACK_PAGES * PAGE_SIZE });
        let below = STACK_TOP - STACK_PAGES * PAGE_SIZE;
        for guards in [Guards::new(), guards()] {
            assert_eq!(guards.overflow(below), None);
            assert_eq!(guards.overflow(below - 1), first);
            assert_eq!(guards.overflow(below - PAGE_SIZE), first);
            assert_eq!(guards.overflow(below - PAGE_SIZE - 1), None);
        }
    }

    #[test]
    fn an_overflow_is_told_in_a_sentence() {
        let text = |address| guards().overflow(address).unwrap().to_string();
        assert_eq!(
            text(0x41_3008),
            "stack overflow: the address is in the guard below stack 3 of 3 (32768 bytes each)"
        );
        assert_eq!(
            text(STACK_TOP - STACK_PAGES * PAGE_SIZE - 8),
            "stack overflow: the address is in the guard below the first thread's stack (262144 bytes)"
        );
    }
}
