//! A mask for an index that somebody else chose.

/// All ones if `index` is below `count`, zero otherwise.
///
/// Computed, not branched on: while the CPU only guesses that an index is in bounds, the mask still makes
/// it zero if it is not. The compiler does not see through it, and so keeps it behind a check as well.
#[inline(always)]
pub fn mask_below(index: usize, count: usize) -> u64 {
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    {
        let mask: u64;
        // SAFETY: arithmetic on registers: the borrow of the comparison, spread over all bits.
        unsafe {
            core::arch::asm!(
                "cmp {index}, {count}",
                "sbb {mask}, {mask}",
                index = in(reg) index,
                count = in(reg) count,
                mask = lateout(reg) mask,
                options(pure, nomem, nostack),
            );
        }
        mask
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
    {
        0_u64.wrapping_sub(u64::from(index < count))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::mask_below;

    #[test]
    fn everything_below_is_kept_and_all_else_becomes_zero() {
        const EDGES: [usize; 9] =
            [0, 1, 2, 63, 64, u32::MAX as usize, 1 << 32, usize::MAX - 1, usize::MAX];
        for index in EDGES {
            for count in EDGES {
                let expected = if index < count { u64::MAX } else { 0 };
                assert_eq!(mask_below(index, count), expected, "{index} {count}");
            }
        }
    }
}
