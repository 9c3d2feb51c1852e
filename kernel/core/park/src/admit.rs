//! Admission of PARK and UNPARK: a park space in the slot, an aligned word.

/// What the slot holds that an operation names as its park space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// A park space.
    ParkSpace,
    /// A capability of another interface.
    Another,
    /// Nothing, or nothing any more.
    Nothing,
}

/// Why an operation neither parks nor wakes anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAdmitted {
    /// There is no capability in the slot.
    NoSpace,
    /// The capability there is not a park space.
    NotASpace,
    /// The word would not be aligned.
    Misaligned,
}

/// Whether an operation on the word at `address` may go on. Whether the word can be read is found
/// out when it is.
#[inline(always)]
pub const fn admit(named: Named, address: u64) -> Result<(), NotAdmitted> {
    match named {
        Named::Nothing => Err(NotAdmitted::NoSpace),
        Named::Another => Err(NotAdmitted::NotASpace),
        Named::ParkSpace if address.is_multiple_of(4) => Ok(()),
        Named::ParkSpace => Err(NotAdmitted::Misaligned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_aligned_word_of_a_space_is_admitted() {
        for address in [0, 1, 2, 3, 4, 0x7fff_ffff_fffc, u64::MAX] {
            let by_space = match address % 4 {
                0 => Ok(()),
                _ => Err(NotAdmitted::Misaligned),
            };
            assert_eq!(admit(Named::ParkSpace, address), by_space, "{address:#x}");
            assert_eq!(admit(Named::Another, address), Err(NotAdmitted::NotASpace));
            assert_eq!(admit(Named::Nothing, address), Err(NotAdmitted::NoSpace));
        }
    }
}
