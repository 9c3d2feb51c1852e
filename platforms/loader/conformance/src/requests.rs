//! Every request of the protocol, written out by hand: this kernel is the loader's judge and
//! shares no code with it.

use core::cell::UnsafeCell;

/// What a response pointer holds before the loader saw it: an unanswered request must keep it.
pub const UNTOUCHED: u64 = 0x5a5a_5a5a_5a5a_5a5a;

/// A request with its own members.
#[repr(C)]
pub struct Request<M = [u64; 3]> {
    id: [u64; 4],
    revision: u64,
    response: UnsafeCell<u64>,
    members: M,
}

// SAFETY: only the loader writes, before any code of this kernel runs.
unsafe impl<M> Sync for Request<M> {}

const REQUEST: [u64; 2] = [0xc7b1_dd30_df4c_8b88, 0x0a82_e883_a194_f07b];

impl<M> Request<M> {
    const fn new(id: [u64; 2], revision: u64, members: M) -> Self {
        let id = [REQUEST[0], REQUEST[1], id[0], id[1]];
        Self { id, revision, response: UnsafeCell::new(UNTOUCHED), members }
    }
}

impl Request {
    /// A member, as a test may have changed it.
    pub fn member(&self, index: usize) -> u64 {
        // SAFETY: in this kernel's image; volatile because the compiler saw no writer.
        let members = unsafe { (&raw const self.members).read_volatile() };
        members.get(index).copied().unwrap_or(0)
    }
}

/// A request of any kind.
pub trait Answer {
    /// The response's address, if the loader gave one.
    fn response(&self) -> Option<u64>;
    /// Whether it is still in the image: a test may have blanked it.
    fn is_asked(&self) -> bool;
}

impl<M> Answer for Request<M> {
    fn response(&self) -> Option<u64> {
        // SAFETY: in this kernel's image; volatile because the compiler saw no writer.
        let value = unsafe { self.response.get().read_volatile() };
        (value != UNTOUCHED).then_some(value)
    }

    fn is_asked(&self) -> bool {
        // SAFETY: as in `response`.
        let first = unsafe { (&raw const self.id).cast::<u64>().read_volatile() };
        first == REQUEST[0]
    }
}

/// A kernel-internal module.
#[repr(C)]
pub struct InternalModule {
    path: *const u8,
    string: *const u8,
    flags: u64,
}

// SAFETY: constants.
unsafe impl Sync for InternalModule {}

/// A list of them.
#[repr(transparent)]
pub struct InternalModules([&'static InternalModule; 2]);

/// The members of the modules request.
#[repr(C)]
pub struct ModulesMembers {
    count: u64,
    list: &'static InternalModules,
}

const REQUIRED: u64 = 1;

static PRESENT: InternalModule = InternalModule {
    path: c"internal.txt".as_ptr().cast(),
    string: c"internal string".as_ptr().cast(),
    flags: REQUIRED,
};

static ABSENT: InternalModule =
    InternalModule { path: c"absent.txt".as_ptr().cast(), string: c"".as_ptr().cast(), flags: 0 };

static INTERNAL: InternalModules = InternalModules([&PRESENT, &ABSENT]);

#[used]
#[unsafe(link_section = ".requests.start")]
static START: [u64; 4] =
    [0xf6b8_f4b3_9de7_d1ae, 0xfab9_1a69_40fc_b9cf, 0x785c_6ed0_15d3_e316, 0x181e_920a_7852_b9d9];

#[used]
#[unsafe(link_section = ".requests.end")]
static END: [u64; 2] = [0xadc0_e053_1bb1_0d03, 0x9572_709f_3176_4c62];

/// The base revision tag, which the loader changes.
#[repr(transparent)]
pub struct BaseTag(UnsafeCell<[u64; 3]>);

// SAFETY: as for `Request`.
unsafe impl Sync for BaseTag {}

impl BaseTag {
    /// Second and third word: revision used, and 0 if accepted.
    pub fn words(&self) -> (u64, u64) {
        // SAFETY: as for `Request::response`.
        let [_, used, left] = unsafe { self.0.get().read_volatile() };
        (used, left)
    }
}

/// The base revision tag.
#[used]
#[unsafe(link_section = ".requests")]
pub static BASE: BaseTag =
    BaseTag(UnsafeCell::new([0xf956_2b2d_5c95_a6c8, 0x6a7b_3849_4453_6bdc, 6]));

/// The stack size asked for.
const STACK_SIZE: u64 = 128 << 10;

macro_rules! requests {
    ($($name:ident = $first:literal $second:literal, $revision:literal, $members:expr;)*) => {
        $(
            #[used]
            #[unsafe(link_section = ".requests")]
            #[doc = concat!("The ", stringify!($name), " request.")]
            pub static $name: Request = Request::new([$first, $second], $revision, $members);
        )*
    };
}

requests! {
    BOOTLOADER_INFO = 0xf550_38d8_e2a1_202f 0x2794_26fc_f5f5_9740, 0, [0; 3];
    CMDLINE = 0x4b16_1536_e598_651e 0xb390_ad4a_2f1f_303a, 0, [0; 3];
    FIRMWARE_TYPE = 0x8c2f_75d9_0bef_28a8 0x7045_a468_8eac_00c3, 0, [0; 3];
    STACK = 0x224e_f046_0a8e_8926 0xe1cb_0fc2_5f46_ea3d, 0, [STACK_SIZE, 0, 0];
    HHDM = 0x48dc_f1cb_8ad2_b852 0x6398_4e95_9a98_244b, 0, [0; 3];
    PAGING_MODE = 0x95c1_a0ed_ab09_44cb 0xa4e5_cb38_42f7_488a, 1, [0, 0, 0];
    FRAMEBUFFER = 0x9d58_27dc_d881_dd75 0xa314_8604_f6fa_b11b, 0, [0; 3];
    MP = 0x95a6_7b81_9a1b_857e 0xa0b6_1b72_3b6a_73e0, 0, [0; 3];
    MEMORY_MAP = 0x67cf_3d9d_378a_806f 0xe304_acdf_c50c_3c62, 0, [0; 3];
    EXECUTABLE_FILE = 0xad97_e90e_83f1_ed67 0x31eb_5d1c_5ff2_3b69, 0, [0; 3];
    EXECUTABLE_ADDRESS = 0x71ba_7686_3cc5_5f63 0xb264_4a48_c516_a487, 0, [0; 3];
    RSDP = 0xc5e7_7b6b_397e_7b43 0x2763_7845_accd_cf3c, 0, [0; 3];
    SMBIOS = 0x9e90_46f1_1e09_5391 0xaa4a_520f_efbd_e5ee, 0, [0; 3];
    EFI_SYSTEM_TABLE = 0x5ceb_a516_3eaa_f6d6 0x0a69_8161_0cf6_5fcc, 0, [0; 3];
    EFI_MEMORY_MAP = 0x7df6_2a43_1d68_72d5 0xa4fc_dfb3_e573_06c8, 0, [0; 3];
    DATE = 0x5027_46e1_84c0_88aa 0xfbc5_ec83_e632_7893, 0, [0; 3];
    PERFORMANCE = 0x6b50_ad9b_f36d_13ad 0xdc4c_7e88_fc75_9e17, 0, [0; 3];
    TSC_FREQUENCY = 0x10f2_ee1d_87d1_95e4 0xf747_a2b7_8f6d_db31, 0, [0; 3];
    ENTROPY = 0x65ea_8025_5d56_82c5 0x9117_2407_23f4_93eb, 0, [0; 3];
    TPM_LOG = 0x98e0_94fc_7e76_e979 0xee8d_8775_c54e_1d1f, 0, [0; 3];
    KEEP_IOMMU = 0x8eba_abe5_1f49_0179 0x2aa8_6a59_ffb4_ab0f, 0, [0; 3];
}

/// The modules request: how many, and where.
#[used]
#[unsafe(link_section = ".requests")]
pub static MODULES: Request<ModulesMembers> = Request::new(
    [0x3e7e_2797_02be_32af, 0xca1c_4f3b_d128_0cee],
    1,
    ModulesMembers { count: 2, list: &INTERNAL },
);

/// The entry point request.
#[used]
#[unsafe(link_section = ".requests")]
pub static ENTRY_POINT: Request<unsafe extern "C" fn() -> !> = Request::new(
    [0x13d8_6c03_5a1c_d3e1, 0x2b0c_aa89_d8f3_026a],
    0,
    crate::entry::capos_conformance_other_start,
);

/// Every request with its name.
pub static ALL: &[(&str, &(dyn Answer + Sync))] = &[
    ("bootloader-info", &BOOTLOADER_INFO),
    ("cmdline", &CMDLINE),
    ("firmware-type", &FIRMWARE_TYPE),
    ("stack-size", &STACK),
    ("hhdm", &HHDM),
    ("paging-mode", &PAGING_MODE),
    ("framebuffer", &FRAMEBUFFER),
    ("mp", &MP),
    ("memory-map", &MEMORY_MAP),
    ("entry-point", &ENTRY_POINT),
    ("executable-file", &EXECUTABLE_FILE),
    ("executable-address", &EXECUTABLE_ADDRESS),
    ("modules", &MODULES),
    ("rsdp", &RSDP),
    ("smbios", &SMBIOS),
    ("efi-system-table", &EFI_SYSTEM_TABLE),
    ("efi-memory-map", &EFI_MEMORY_MAP),
    ("date", &DATE),
    ("performance", &PERFORMANCE),
    ("tsc-frequency", &TSC_FREQUENCY),
    ("entropy", &ENTROPY),
    ("tpm-log", &TPM_LOG),
    ("keep-iommu", &KEEP_IOMMU),
];
