//! A set of CPUs.

/// CPUs, bit `n` for number `n`; at most 128.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuSet(u128);

impl CpuSet {
    /// So many CPUs can be told apart.
    pub const MAX_CPUS: usize = 128;
    /// None.
    pub const NONE: Self = Self(0);

    /// The CPUs whose bits are set.
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// Bit `n` for CPU `n`.
    pub const fn bits(self) -> u128 {
        self.0
    }

    /// Only CPU `cpu`; none if there can be no such CPU.
    #[inline]
    pub const fn only(cpu: usize) -> Self {
        if cpu < Self::MAX_CPUS { Self(1 << cpu) } else { Self(0) }
    }

    /// With another one.
    #[inline]
    pub const fn with(self, cpu: usize) -> Self {
        Self(self.0 | Self::only(cpu).0)
    }

    /// Without one.
    #[inline]
    pub const fn without(self, cpu: usize) -> Self {
        Self(self.0 & !Self::only(cpu).0)
    }

    /// Whether it has that one.
    #[inline]
    pub const fn contains(self, cpu: usize) -> bool {
        self.0 & Self::only(cpu).0 != 0
    }

    /// Whether there is none.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Their numbers, lowest first; as many steps as there are.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let cpu = left.trailing_zeros();
            // Clears the lowest bit; of none, nothing.
            left &= left.wrapping_sub(1);
            (cpu < u128::BITS).then_some(cpu as usize)
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_cpu_has_its_own_bit() {
        let all = (0..CpuSet::MAX_CPUS).fold(CpuSet::NONE, CpuSet::with);
        assert_eq!(all.bits(), u128::MAX);
        assert!(all.iter().eq(0..CpuSet::MAX_CPUS));
        for cpu in 0..CpuSet::MAX_CPUS {
            assert!(CpuSet::only(cpu).iter().eq([cpu]));
            assert!(!all.without(cpu).contains(cpu) && all.without(cpu).with(cpu) == all);
        }
        for none in [128, 1000, usize::MAX] {
            assert!(CpuSet::only(none).is_empty() && !all.contains(none));
        }
        assert_eq!(CpuSet::NONE.iter().next(), None);
    }
}
