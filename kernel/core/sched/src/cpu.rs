//! CPUs by number, and sets of them.

/// CPUs a set can name.
pub const MAX_CPUS: usize = 128;

/// A CPU, numbered from 0 in the order of discovery; below [`MAX_CPUS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuId(u8);

impl CpuId {
    /// The CPU of that number, if there can be one.
    pub const fn new(number: usize) -> Option<Self> {
        if number < MAX_CPUS { Some(Self(number as u8)) } else { None }
    }

    /// The number, as a position in a table of all CPUs.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CpuSet(u128);

impl CpuSet {
    /// No CPU.
    pub const EMPTY: Self = Self(0);
    /// Every CPU there can be.
    pub const ALL: Self = Self(u128::MAX);

    /// The first `count` CPUs.
    pub const fn first_n(count: usize) -> Self {
        if count >= MAX_CPUS { Self::ALL } else { Self((1 << count) - 1) }
    }

    /// Only `cpu`.
    pub const fn only(cpu: CpuId) -> Self {
        Self(1 << cpu.0)
    }

    /// The set whose bit `n` is CPU `n`.
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// Bit `n` is CPU `n`.
    pub const fn to_bits(self) -> u128 {
        self.0
    }

    /// Whether `cpu` is in it.
    #[inline]
    pub const fn contains(self, cpu: CpuId) -> bool {
        self.0 & 1 << cpu.0 != 0
    }

    /// Whether no CPU is in it.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// With `cpu`.
    pub const fn with(self, cpu: CpuId) -> Self {
        Self(self.0 | 1 << cpu.0)
    }

    /// Without `cpu`.
    pub const fn without(self, cpu: CpuId) -> Self {
        Self(self.0 & !(1 << cpu.0))
    }

    /// What is in both.
    #[inline]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What is here and not in `other`.
    #[inline]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// How many CPUs are in the set.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The CPU with the lowest number.
    #[inline]
    pub const fn first(self) -> Option<CpuId> {
        if self.0 == 0 { None } else { Some(CpuId(self.0.trailing_zeros() as u8)) }
    }

    /// The lowest above `cpu`, or else the lowest of all: the next one going round.
    #[inline]
    pub const fn next_round(self, cpu: CpuId) -> Option<CpuId> {
        let above = Self(self.0 & !((1u128 << cpu.0 << 1).wrapping_sub(1)));
        // For the last CPU the shift leaves zero, and zero less one is every bit.
        match above.first() {
            Some(next) => Some(next),
            None => self.first(),
        }
    }

    /// The CPUs, lowest first.
    pub fn iter(self) -> impl Iterator<Item = CpuId> {
        let mut rest = self;
        core::iter::from_fn(move || {
            let cpu = rest.first()?;
            rest = rest.without(cpu);
            Some(cpu)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cpu_goes_in_and_out() {
        let mut set = CpuSet::EMPTY;
        for n in 0..MAX_CPUS {
            let cpu = CpuId::new(n).unwrap();
            assert!(!set.contains(cpu));
            set = set.with(cpu);
            assert!(set.contains(cpu) && set.len() == n + 1);
            assert_eq!(set, CpuSet::first_n(n + 1));
            assert_eq!(set.next_round(cpu), CpuId::new(0));
            assert_eq!(CpuSet::ALL.next_round(cpu), CpuId::new((n + 1) % MAX_CPUS));
        }
        assert_eq!(CpuId::new(MAX_CPUS), None);
        assert_eq!(set, CpuSet::ALL);
        assert_eq!(set.iter().count(), MAX_CPUS);
        assert_eq!(set.minus(CpuSet::first_n(127)).first(), CpuId::new(127));
        assert_eq!(CpuSet::EMPTY.next_round(CpuId::new(127).unwrap()), None);
    }
}
