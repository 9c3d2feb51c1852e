//! The protocol's numbers: markers, identifiers, sizes. Base revision 6, x86-64.
//!
//! Decided in ADR 11.

/// The base revision this loader speaks, and the only one.
pub const BASE_REVISION: u64 = 6;

/// Opens the request area.
pub const START_MARKER: [u64; 4] =
    [0xf6b8_f4b3_9de7_d1ae, 0xfab9_1a69_40fc_b9cf, 0x785c_6ed0_15d3_e316, 0x181e_920a_7852_b9d9];

/// Closes the request area.
pub const END_MARKER: [u64; 2] = [0xadc0_e053_1bb1_0d03, 0x9572_709f_3176_4c62];

/// First two words of the base revision tag; the third is the revision wanted.
pub const BASE_TAG: [u64; 2] = [0xf956_2b2d_5c95_a6c8, 0x6a7b_3849_4453_6bdc];

/// First two words of every request.
pub const REQUEST: [u64; 2] = [0xc7b1_dd30_df4c_8b88, 0x0a82_e883_a194_f07b];

/// Bytes of a request up to its own members: identifier, revision, response.
pub const REQUEST_HEADER: usize = 48;

/// Offset of the response pointer in a request.
pub const RESPONSE_OFFSET: usize = 40;

macro_rules! features {
    ($($(#[$doc:meta])* $name:ident = $first:literal, $second:literal, $extra:literal;)*) => {
        /// What a kernel can ask for, as far as this loader knows it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Feature { $($(#[$doc])* $name),* }

        impl Feature {
            /// Every feature, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Third and fourth word of the identifier.
            pub const fn id(self) -> [u64; 2] {
                match self { $(Self::$name => [$first, $second]),* }
            }

            /// The feature with these words.
            pub fn from_id(id: [u64; 2]) -> Option<Self> {
                Self::ALL.iter().copied().find(|feature| feature.id() == id)
            }

            /// Bytes of request members of revision 0 that follow the header.
            pub const fn members(self) -> usize {
                match self { $(Self::$name => $extra),* }
            }

            /// Its name, for messages.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),* }
            }
        }
    };
}

features! {
    /// Name and version of the loader.
    BootloaderInfo = 0xf550_38d8_e2a1_202f, 0x2794_26fc_f5f5_9740, 0;
    /// The command line.
    Cmdline = 0x4b16_1536_e598_651e, 0xb390_ad4a_2f1f_303a, 0;
    /// BIOS or UEFI.
    FirmwareType = 0x8c2f_75d9_0bef_28a8, 0x7045_a468_8eac_00c3, 0;
    /// Size of every stack.
    StackSize = 0x224e_f046_0a8e_8926, 0xe1cb_0fc2_5f46_ea3d, 8;
    /// Offset of the direct map.
    Hhdm = 0x48dc_f1cb_8ad2_b852, 0x6398_4e95_9a98_244b, 0;
    /// 4 or 5 levels.
    PagingMode = 0x95c1_a0ed_ab09_44cb, 0xa4e5_cb38_42f7_488a, 8;
    /// Framebuffers.
    Framebuffer = 0x9d58_27dc_d881_dd75, 0xa314_8604_f6fa_b11b, 0;
    /// The other processors.
    Mp = 0x95a6_7b81_9a1b_857e, 0xa0b6_1b72_3b6a_73e0, 8;
    /// The memory map.
    MemoryMap = 0x67cf_3d9d_378a_806f, 0xe304_acdf_c50c_3c62, 0;
    /// Another entry point.
    EntryPoint = 0x13d8_6c03_5a1c_d3e1, 0x2b0c_aa89_d8f3_026a, 8;
    /// The executable's file.
    ExecutableFile = 0xad97_e90e_83f1_ed67, 0x31eb_5d1c_5ff2_3b69, 0;
    /// Where the executable is.
    ExecutableAddress = 0x71ba_7686_3cc5_5f63, 0xb264_4a48_c516_a487, 0;
    /// Modules.
    Modules = 0x3e7e_2797_02be_32af, 0xca1c_4f3b_d128_0cee, 0;
    /// ACPI's root pointer.
    Rsdp = 0xc5e7_7b6b_397e_7b43, 0x2763_7845_accd_cf3c, 0;
    /// SMBIOS entry points.
    Smbios = 0x9e90_46f1_1e09_5391, 0xaa4a_520f_efbd_e5ee, 0;
    /// The EFI system table.
    EfiSystemTable = 0x5ceb_a516_3eaa_f6d6, 0x0a69_8161_0cf6_5fcc, 0;
    /// The EFI memory map.
    EfiMemoryMap = 0x7df6_2a43_1d68_72d5, 0xa4fc_dfb3_e573_06c8, 0;
    /// The date at boot.
    Date = 0x5027_46e1_84c0_88aa, 0xfbc5_ec83_e632_7893, 0;
    /// How long boot took.
    Performance = 0x6b50_ad9b_f36d_13ad, 0xdc4c_7e88_fc75_9e17, 0;
    /// The time stamp counter's frequency.
    TscFrequency = 0x10f2_ee1d_87d1_95e4, 0xf747_a2b7_8f6d_db31, 0;
    /// Leave the IOMMU on.
    KeepIommu = 0x8eba_abe5_1f49_0179, 0x2aa8_6a59_ffb4_ab0f, 0;
}

/// The protocol's smallest stack.
pub const MIN_STACK: u64 = 64 << 10;
