//! The state every processor enters the kernel in: one set of numbers for both front ends.

/// CR0: PE, ET, WP, PG.
pub const CR0: u64 = 1 | 1 << 4 | 1 << 16 | 1 << 31;

/// CR4 with 4 levels: PAE.
pub const CR4: u64 = 1 << 5;

/// CR4.LA57, added with 5 levels.
pub const CR4_LA57: u64 = 1 << 12;

/// EFER before paging is on: LME and NXE; the processor adds LMA.
pub const EFER: u64 = 1 << 8 | 1 << 11;

/// IA32_PAT: 0 WB, 1 WT, 2 UC-, 3 UC, 4 WP, 5 WC, 6 and 7 UC. Intel SDM volume 3, 13.12.
pub const PAT: u64 = 0x0000_0105_0007_0406;

/// Selector of the 64-bit code segment.
pub const CODE: u16 = 0x28;

/// Selector of every data segment.
pub const DATA: u16 = 0x30;

/// Selector of the task state segment, base 0 and limit 0.
pub const TASK: u16 = 0x38;

/// null, 16-bit code and data, 32-bit code and data, 64-bit code and data, and a task state
/// segment of base 0 and limit 0: the task register cannot be loaded with null (Intel SDM
/// volume 2, LTR), and this is how its hidden part becomes zero.
pub const GDT: [u64; 9] = [
    0,
    0x0000_9b00_0000_ffff,
    0x0000_9300_0000_ffff,
    0x00cf_9b00_0000_ffff,
    0x00cf_9300_0000_ffff,
    0x0020_9b00_0000_0000,
    0x0000_9300_0000_0000,
    0x0000_8900_0000_0000,
    0,
];

/// Direct map base with 4 levels.
pub const HHDM_4_LEVEL: u64 = 0xffff_8000_0000_0000;

/// Direct map base with 5 levels.
pub const HHDM_5_LEVEL: u64 = 0xff00_0000_0000_0000;

/// Granule of a random direct map base, so that large pages keep their alignment.
const HHDM_STEP: u64 = 1 << 30;

/// The direct map's base for these levels, slid within a quarter of the upper half if a
/// random number is given; `top` is the end of the highest mapped physical address.
pub fn hhdm_base(levels: u8, random: Option<u64>, top: u64) -> u64 {
    let (base, quarter) =
        if levels == 5 { (HHDM_5_LEVEL, 1u64 << 54) } else { (HHDM_4_LEVEL, 1u64 << 45) };
    let steps = quarter / HHDM_STEP;
    match random {
        Some(random) if top < quarter => base + (random % steps) * HHDM_STEP,
        _ => base,
    }
}
