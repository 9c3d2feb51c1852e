//! Division by a number that changes seldom, without a division instruction.

/// Bits of a normalised divisor.
const DIVISOR_BITS: u32 = 32;
/// Binary point of the factor: one over a normalised divisor, times 2⁶³.
const FACTOR_POINT: u32 = 63;
/// Dividends are below 2 to this: the product with the factor fits in 128 bits.
const DIVIDEND_BITS: u32 = 96;

/// One over a divisor, a little too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reciprocal {
    divisor: u64,
    factor: u32,
    shift: u32,
}

impl Reciprocal {
    /// The reciprocal of `divisor`, which is not zero.
    ///
    /// Newton's iteration x ← x (2 − d x) squares the relative error: the straight line through
    /// the ends errs by 1/17 at most (for d in [½, 1) it is 48/17 − 32/17 d), three steps leave
    /// less than 2⁻³², and what rounding adds is taken off at the end.
    #[inline]
    pub(crate) const fn new(divisor: u64) -> Self {
        let bits = u64::BITS - divisor.leading_zeros();
        // Rounded up, so that the factor is not too large.
        let normal = if bits > DIVISOR_BITS {
            let cut = bits - DIVISOR_BITS;
            let up = (divisor >> cut) + 1;
            if up >> DIVISOR_BITS == 0 { up } else { up - 1 }
        } else {
            divisor << (DIVISOR_BITS - bits)
        };
        let mut x = (48u64 << 31) / 17 - ((((32u64 << 31) / 17) * normal) >> 32);
        let mut round = 0;
        while round < 3 {
            // 2 − d x with its point at bit 63; between 0 and 2.
            let two_minus = (1u64 << 63).wrapping_mul(2).wrapping_sub(normal * x);
            x = ((x as u128 * two_minus as u128) >> 63) as u64;
            round += 1;
        }
        let margin = if bits > DIVISOR_BITS { 16 } else { 8 };
        let factor = if x - margin > u32::MAX as u64 { u32::MAX } else { (x - margin) as u32 };
        Self { divisor, factor, shift: FACTOR_POINT + bits - DIVISOR_BITS }
    }

    /// The divisor it was made of.
    #[inline]
    pub(crate) const fn divisor(&self) -> u64 {
        self.divisor
    }

    /// `dividend / divisor`, rounded down, exactly. Negative dividends count as zero, those of
    /// 2⁹⁶ and more as the greatest below.
    #[inline]
    pub(crate) const fn quotient(&self, dividend: i128) -> u64 {
        if dividend < self.divisor as i128 {
            return 0;
        }
        let mut rest = dividend as u128;
        if rest >> DIVIDEND_BITS != 0 {
            rest = (1 << DIVIDEND_BITS) - 1;
        }
        let divisor = self.divisor as u128;
        let mut quotient = 0u128;
        // Each round gets 27 more bits right or ends; the ordinary dividend takes two.
        while rest >= divisor {
            let estimate = (rest * self.factor as u128) >> self.shift;
            let part = if estimate == 0 { 1 } else { estimate };
            quotient += part;
            rest -= part * divisor;
        }
        if quotient > u64::MAX as u128 { u64::MAX } else { quotient as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_property::prelude::*;

    fn check(divisor: u64, dividend: i128) {
        let exact = (dividend / i128::from(divisor)).min(u64::MAX.into()) as u64;
        assert_eq!(Reciprocal::new(divisor).quotient(dividend), exact, "{dividend} / {divisor}");
    }

    #[test]
    fn every_small_divisor() {
        for divisor in 1..1 << 17 {
            for dividend in [0, 1, divisor - 1, divisor, divisor + 1, 10_000_000 * 1024] {
                check(divisor, dividend.into());
            }
            check(divisor, i128::from(u64::MAX));
            check(divisor, (1 << 96) - 1);
        }
    }

    #[test]
    fn an_estimate_is_never_too_large_and_hardly_too_small() {
        for bits in 0..64 {
            for low in 0..2000u64 {
                let divisor = 1u64 << bits | low % (1 << bits);
                let r = Reciprocal::new(divisor);
                let exact = (1u128 << 95) / u128::from(divisor);
                let got = ((1u128 << 95) * u128::from(r.factor)) >> r.shift;
                assert!(got <= exact, "{divisor}");
                assert!(exact - got <= exact >> 27, "{divisor}: {got} for {exact}");
            }
        }
    }

    proptest! {
        #[test]
        fn any(divisor in 1u64.., dividend in 0i128..1 << 96, narrow in 0u32..96) {
            check(divisor, dividend >> narrow);
            check(divisor >> (narrow % 64) | 1, dividend >> narrow);
        }
    }

    #[test]
    fn nothing_is_divided_below_zero() {
        assert_eq!(Reciprocal::new(7).quotient(-50), 0);
    }
}
