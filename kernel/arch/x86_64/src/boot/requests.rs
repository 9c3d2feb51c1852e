//! The requests the loader finds in the kernel's image and answers in place.
//!
//! Protocol: Limine, base revision 6. The requests lie in writable data between two markers; the
//! linker script keeps the three sections in this order.

use limine::mp::MP_FLAG_X2APIC;
use limine::paging::PagingMode;
use limine::request::{
    BootloaderInfoRequest, BootloaderPerformanceRequest, ExecutableAddressRequest,
    ExecutableCmdlineRequest, ExecutableFileRequest, FirmwareTypeRequest, FramebufferRequest,
    HhdmRequest, MemmapRequest, ModulesRequest, MpRequest, PagingModeRequest, RsdpRequest,
    StackSizeRequest, TscFrequencyRequest,
};
use limine::{BaseRevision, RequestsEndMarker, RequestsStartMarker};

/// Stack the boot runs on until the kernel has one of its own. Twice the protocol's minimum:
/// checked builds format reports on it.
const BOOT_STACK_BYTES: u64 = 128 * 1024;

#[used]
#[unsafe(link_section = ".limine_requests_start")]
static START: RequestsStartMarker = RequestsStartMarker::new();

#[used]
#[unsafe(link_section = ".limine_requests_end")]
static END: RequestsEndMarker = RequestsEndMarker::new();

macro_rules! requests {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $value:expr;)*) => {
        $(
            $(#[$doc])*
            #[used]
            #[unsafe(link_section = ".limine_requests")]
            pub(super) static $name: $kind = $value;
        )*
    };
}

requests! {
    BASE_REVISION: BaseRevision = BaseRevision::new();
    LOADER: BootloaderInfoRequest = BootloaderInfoRequest::new();
    PERFORMANCE: BootloaderPerformanceRequest = BootloaderPerformanceRequest::new();
    COMMAND_LINE: ExecutableCmdlineRequest = ExecutableCmdlineRequest::new();
    FIRMWARE: FirmwareTypeRequest = FirmwareTypeRequest::new();
    STACK_SIZE: StackSizeRequest = StackSizeRequest::new(BOOT_STACK_BYTES);
    DIRECT_MAP: HhdmRequest = HhdmRequest::new();
    FRAMEBUFFER: FramebufferRequest = FramebufferRequest::new();
    /// Four levels: the kernel's tables have as many.
    PAGING: PagingModeRequest = PagingModeRequest::new_exact(PagingMode::X86_64_4LVL);
    CPUS: MpRequest = MpRequest::new(MP_FLAG_X2APIC);
    MEMORY: MemmapRequest = MemmapRequest::new();
    KERNEL_FILE: ExecutableFileRequest = ExecutableFileRequest::new();
    KERNEL_ADDRESS: ExecutableAddressRequest = ExecutableAddressRequest::new();
    MODULES: ModulesRequest = ModulesRequest::new();
    RSDP: RsdpRequest = RsdpRequest::new();
    TSC: TscFrequencyRequest = TscFrequencyRequest::new();
}
