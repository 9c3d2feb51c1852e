//! The addresses a thread may start with.

use crate::is_lower_half;

/// What a stack pointer at the first instruction is a multiple of.
pub const STACK_ALIGN: u64 = 16;

/// What is wrong with a start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadStart {
    /// The entry is no user address.
    Entry,
    /// The stack's top is no user address, or not a multiple of 16.
    Stack,
    /// The FS base is no user address.
    FsBase,
}

/// Whether a thread may start at `entry` on `stack_top` with `fs_base`. The CPU faults in the kernel
/// on addresses that are not canonical, so they are refused; whether anything is mapped there shows
/// when the thread runs.
pub const fn check_start(entry: u64, stack_top: u64, fs_base: u64) -> Result<(), BadStart> {
    if !is_lower_half(entry) {
        return Err(BadStart::Entry);
    }
    if !is_lower_half(stack_top) || !stack_top.is_multiple_of(STACK_ALIGN) {
        return Err(BadStart::Stack);
    }
    if !is_lower_half(fs_base) {
        return Err(BadStart::FsBase);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last address of the lower half, and those that are no user's.
    const LAST: u64 = 0x7fff_ffff_ffff;
    const BAD: [u64; 5] =
        [0x8000_0000_0000, 1 << 63, 0xffff_7fff_ffff_ffff, 0xffff_8000_0000_0000, u64::MAX];

    #[test]
    fn any_user_address_will_do_mapped_or_not() {
        for entry in [0, 1, 0x40_0000, LAST] {
            for stack_top in [0, 16, 0x7fff_0000, LAST - 15] {
                for fs_base in [0, 1, LAST] {
                    assert_eq!(check_start(entry, stack_top, fs_base), Ok(()));
                }
            }
        }
    }

    #[test]
    fn each_address_is_refused_by_its_name() {
        for bad in BAD {
            assert_eq!(check_start(bad, 16, 0), Err(BadStart::Entry), "{bad:#x}");
            assert_eq!(check_start(0, bad & !15, 0), Err(BadStart::Stack), "{bad:#x}");
            assert_eq!(check_start(0, 16, bad), Err(BadStart::FsBase), "{bad:#x}");
        }
        for low in 1..16 {
            assert_eq!(check_start(0, 0x1000 + low, 0), Err(BadStart::Stack), "{low}");
        }
    }
}
