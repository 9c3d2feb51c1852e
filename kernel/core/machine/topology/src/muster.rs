//! The muster: which of a machine's CPUs the kernel uses.
//!
//! The boot CPU is always one of them. Of the others each is used that can be reached by interrupt, in
//! the order they are listed, until the limit is reached. What is left out is counted by reason, so that
//! it can be said.

use core::fmt;

/// APIC ids below this one can be addressed through memory; the last of eight bits means everybody
/// (Intel SDM vol. 3, 10.6.2.1).
const XAPIC_IDS: u32 = 255;

/// What becomes of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Enlist {
    /// The kernel uses it.
    Use,
    /// There are as many as the kernel can use without it.
    OverLimit,
    /// Its local APIC cannot be addressed.
    OutOfReach,
}

/// The CPUs so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Muster {
    limit: usize,
    has_wide_ids: bool,
    used: usize,
    over_limit: usize,
    out_of_reach: usize,
}

impl Muster {
    /// The boot CPU alone, of at most `limit`; `has_wide_ids` says that APIC ids of 32 bits can be
    /// addressed, which takes the x2APIC.
    pub fn new(limit: usize, has_wide_ids: bool) -> Muster {
        Muster { limit: limit.max(1), has_wide_ids, used: 1, over_limit: 0, out_of_reach: 0 }
    }

    /// Decides about the next CPU of the list, which is not the boot CPU.
    pub fn consider(&mut self, apic_id: u32) -> Enlist {
        if !self.has_wide_ids && apic_id >= XAPIC_IDS {
            self.out_of_reach += 1;
            return Enlist::OutOfReach;
        }
        if self.used == self.limit {
            self.over_limit += 1;
            return Enlist::OverLimit;
        }
        self.used += 1;
        Enlist::Use
    }

    /// How many are used.
    pub const fn used(&self) -> usize {
        self.used
    }

    /// How many are there and not used.
    pub const fn left_out(&self) -> usize {
        self.over_limit + self.out_of_reach
    }
}

/// A sentence about those that are left out; nothing if there is none.
impl fmt::Display for Muster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut join = "";
        if self.over_limit > 0 {
            write!(f, "{} CPUs beyond the limit of {} are not used", self.over_limit, self.limit)?;
            join = "; ";
        }
        if self.out_of_reach > 0 {
            let count = self.out_of_reach;
            write!(f, "{join}{count} CPUs are not used: their APIC ids take an x2APIC")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::string::ToString;
    use std::vec::Vec;

    /// The ids that are used of a list behind boot CPU 0.
    fn used(
        limit: usize,
        has_wide_ids: bool,
        ids: impl Iterator<Item = u32>,
    ) -> (Vec<u32>, Muster) {
        let mut muster = Muster::new(limit, has_wide_ids);
        let used = ids.filter(|&id| muster.consider(id) == Enlist::Use).collect();
        (used, muster)
    }

    #[test]
    fn every_count_of_cpus_stops_at_the_limit() {
        for limit in [1, 2, 4, 128] {
            for cpus in [1, 2, 3, 127, 128, 129, 130, 200] {
                let (ids, muster) = used(limit, true, 1..cpus);
                let expected = limit.min(cpus as usize);
                assert_eq!((muster.used(), ids.len() + 1), (expected, expected));
                assert_eq!(muster.left_out(), cpus as usize - expected);
                assert!(ids.iter().copied().eq(1..expected as u32), "the first are used: {ids:?}");
                assert_eq!(muster.to_string().is_empty(), muster.left_out() == 0);
            }
        }
    }

    #[test]
    fn the_boot_cpu_is_used_whatever_the_limit() {
        assert_eq!(used(0, true, 1..4).1.used(), 1);
    }

    #[test]
    fn an_id_that_cannot_be_addressed_takes_no_place() {
        let (ids, muster) = used(3, false, [254, 255, 300, 7, 8].into_iter());
        assert_eq!((ids, muster.left_out()), (std::vec![254, 7], 3));
        assert_eq!(
            muster.to_string(),
            "1 CPUs beyond the limit of 3 are not used; 2 CPUs are not used: their APIC ids take an x2APIC"
        );
        assert_eq!(used(5, true, [254, 255, 300].into_iter()).0, [254, 255, 300]);
    }
}
