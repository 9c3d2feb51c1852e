//! How large a thread's share of a CPU is, relative to others.

/// A weight between [`Weight::MIN`] and [`Weight::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(u16);

/// The number asked for is not a weight; nothing is clamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightOutOfRange {
    /// What was asked for; a weight lies between 1 and 1024.
    pub asked: u16,
}

impl Weight {
    /// The smallest share.
    pub const MIN: Self = Self(1);
    /// The largest share.
    pub const MAX: Self = Self(1024);
    /// The weight at which virtual time passes as fast as time.
    pub const REFERENCE: Self = Self(64);
    /// What a thread has that nobody gave another weight.
    pub const DEFAULT: Self = Self::REFERENCE;

    /// The weight of that number.
    pub const fn new(number: u16) -> Result<Self, WeightOutOfRange> {
        if number < Self::MIN.0 || number > Self::MAX.0 {
            return Err(WeightOutOfRange { asked: number });
        }
        Ok(Self(number))
    }

    /// The plain number, as programs and manifests give it.
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl Default for Weight {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_a_weight_or_refused() {
        for number in 0..=u16::MAX {
            let weight = Weight::new(number);
            assert_eq!(weight.is_ok(), (1..=1024).contains(&number), "{number}");
            match weight {
                Ok(w) => assert_eq!(w.get(), number),
                Err(e) => assert_eq!(e.asked, number),
            }
        }
        assert_eq!(Weight::default().get(), 64);
    }
}
