//! Packages, cores and hardware threads, read from a CPU's APIC id.
//!
//! CPUID says how many low bits of the id number the threads of a core and the logical CPUs of
//! a package (Intel SDM vol. 3, 9.9.3); the rest of the id numbers the package.
//!
//! [`Muster`] decides which of the CPUs that a machine has the kernel uses.
#![no_std]

mod muster;

pub use muster::{Enlist, Muster};

/// How an APIC id is divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shifts {
    /// Low bits that number the threads of a core.
    pub thread_bits: u32,
    /// Low bits that number the logical CPUs of a package (threads and cores together).
    pub package_bits: u32,
}

/// Where a logical CPU sits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Place {
    /// Package.
    pub package: u32,
    /// Core within the package.
    pub core: u32,
    /// Hardware thread within the core.
    pub thread: u32,
}

/// One level of CPUID leaf 0Bh or 1Fh.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level {
    /// Whether it is the level of hardware threads (type 1); other levels lie above.
    pub is_thread: bool,
    /// Bits to shift the id right by to get the next level's number.
    pub shift: u32,
}

impl Shifts {
    /// From the levels of leaf 1Fh or 0Bh, lowest first; `None` if the leaf has none.
    pub fn from_levels(levels: impl Iterator<Item = Level>) -> Option<Shifts> {
        let mut shifts = None;
        for level in levels {
            let so_far: Shifts = shifts.unwrap_or_default();
            shifts = Some(Shifts {
                thread_bits: if level.is_thread { level.shift } else { so_far.thread_bits },
                package_bits: so_far.package_bits.max(level.shift),
            });
        }
        shifts
    }

    /// From the older leaves: logical CPUs per package (1) and cores per package (4 or 8000_0008h).
    pub fn from_counts(logical_per_package: u32, cores_per_package: u32) -> Shifts {
        let bits = |count: u32| count.max(1).next_power_of_two().trailing_zeros();
        let package_bits = bits(logical_per_package.max(cores_per_package));
        Shifts {
            thread_bits: package_bits - bits(cores_per_package).min(package_bits),
            package_bits,
        }
    }

    /// Where the CPU with that id sits.
    pub fn place(self, apic_id: u32) -> Place {
        let low =
            |value: u32, bits: u32| if bits >= 32 { value } else { value & ((1 << bits) - 1) };
        let high = |value: u32, bits: u32| value.checked_shr(bits).unwrap_or(0);
        let core_bits = self.package_bits.saturating_sub(self.thread_bits);
        Place {
            package: high(apic_id, self.package_bits.max(self.thread_bits)),
            core: low(high(apic_id, self.thread_bits), core_bits),
            thread: low(apic_id, self.thread_bits),
        }
    }
}

/// How many packages, cores and threads a set of places has. Quadratic, for a table at boot.
pub fn count(places: &[Place]) -> (usize, usize, usize) {
    let first = |i: usize, same: fn(&Place, &Place) -> bool| {
        places.get(i).is_some_and(|p| !places.iter().take(i).any(|q| same(p, q)))
    };
    let packages = (0..places.len()).filter(|&i| first(i, |p, q| p.package == q.package)).count();
    let cores = (0..places.len())
        .filter(|&i| first(i, |p, q| (p.package, p.core) == (q.package, q.core)))
        .count();
    (packages, cores, places.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_divide_into_places_without_loss() {
        for thread_bits in 0..3 {
            for core_bits in 0..4 {
                let shifts = Shifts { thread_bits, package_bits: thread_bits + core_bits };
                for id in 0..256u32 {
                    let p = shifts.place(id);
                    let back = (p.package << core_bits | p.core) << thread_bits | p.thread;
                    assert_eq!(back, id);
                }
            }
        }
    }

    #[test]
    fn the_leaf_with_levels() {
        let levels = [Level { is_thread: true, shift: 1 }, Level { is_thread: false, shift: 4 }];
        let shifts = Shifts::from_levels(levels.into_iter()).unwrap();
        assert_eq!(shifts, Shifts { thread_bits: 1, package_bits: 4 });
        assert_eq!(shifts.place(0x35), Place { package: 3, core: 2, thread: 1 });
        assert_eq!(Shifts::from_levels([].into_iter()), None);
    }

    #[test]
    fn the_older_leaves() {
        assert_eq!(Shifts::from_counts(8, 4), Shifts { thread_bits: 1, package_bits: 3 });
        assert_eq!(Shifts::from_counts(1, 1), Shifts { thread_bits: 0, package_bits: 0 });
        assert_eq!(Shifts::from_counts(6, 6), Shifts { thread_bits: 0, package_bits: 3 });
        assert_eq!(Shifts::from_counts(0, 0), Shifts::default());
    }

    #[test]
    fn counting() {
        let shifts = Shifts { thread_bits: 1, package_bits: 2 };
        let places: [Place; 8] = core::array::from_fn(|id| shifts.place(id as u32));
        assert_eq!(count(&places), (2, 4, 8));
        assert_eq!(count(&[]), (0, 0, 0));
    }
}
