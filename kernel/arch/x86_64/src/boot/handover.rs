//! What the loader handed over, behind types of our own.
//!
//! The answers lie in memory that the kernel takes back later. [`Handover`] is the right to read
//! them: there is one, everything read through it borrows from it, and whoever takes the memory
//! back consumes it (invariant BOOT-1). The kernel's file and the modules lie in memory that is
//! never taken back, so their bytes outlive it.

use super::requests as asked;
use crate::cpu::PerCpu;
use crate::paging;
use core::sync::atomic::{AtomicBool, Ordering};
use core_address::{FrameRange, PhysAddr};
use limine::framebuffer::FRAMEBUFFER_RGB;
use limine::memmap;
use limine::mp::MpInfo;

/// The right to read what the loader left in its memory.
pub struct Handover {
    _only_here: (),
}

/// A request without which there is no kernel to run.
#[derive(Clone, Copy, Debug)]
pub struct MissingAnswer(pub &'static str);

/// What a range of physical memory is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryKind {
    /// Free.
    Usable,
    /// Firmware's or a device's.
    Reserved,
    /// ACPI tables, usable once they were read.
    AcpiReclaimable,
    /// Memory the firmware keeps over sleep.
    AcpiNvs,
    /// Broken.
    Bad,
    /// The loader's: answers, page tables, stacks. Free once nothing of it is used.
    LoaderReclaimable,
    /// The kernel's image, its file and the modules.
    KernelAndModules,
    /// A frame buffer.
    Framebuffer,
    /// Reserved, but mapped: firmware tables and runtime services.
    ReservedMapped,
}

/// A range of physical memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryRegion {
    /// First byte.
    pub base: u64,
    /// Size.
    pub bytes: u64,
    /// What it is for.
    pub kind: MemoryKind,
}

impl MemoryRegion {
    /// The frames it touches.
    pub fn frames_around(&self) -> Option<FrameRange> {
        FrameRange::around(self.base, self.bytes)
    }

    /// The frames wholly inside it.
    pub fn frames_inside(&self) -> Option<FrameRange> {
        FrameRange::inside(self.base, self.bytes)
    }
}

/// A file the loader put beside the kernel.
#[derive(Clone, Copy, Debug)]
pub struct BootModule<'a> {
    /// Its path on the boot medium.
    pub path: &'a str,
    /// The text given with it.
    pub string: &'a str,
    /// Its bytes, which stay.
    pub data: &'static [u8],
}

/// A linear frame buffer with 32-bit pixels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FramebufferInfo {
    pub(crate) address: u64,
    /// Pixels per line.
    pub width: usize,
    /// Lines.
    pub height: usize,
    /// Bytes from one line to the next.
    pub pitch: usize,
    pub(crate) shifts: [u8; 3],
}

/// A CPU the loader has started and parked, or the one we run on.
pub struct CpuStart<'a> {
    info: &'a MpInfo,
    /// Whether it is the CPU this code runs on.
    pub is_boot_cpu: bool,
}

impl CpuStart<'_> {
    /// Its local APIC's id.
    pub fn apic_id(&self) -> u32 {
        self.info.lapic_id
    }

    /// Sends it into the kernel, with `block` as its per-CPU block. Not for the boot CPU.
    pub fn release(&self, block: &'static PerCpu) {
        if !self.is_boot_cpu {
            self.info.bootstrap(crate::cpu::other_cpu_entry, core::ptr::from_ref(block) as u64);
        }
    }

    /// Sends it out of the loader's memory to halt for good: the kernel does not use it. Not for the
    /// boot CPU.
    pub fn retire(&self) {
        if !self.is_boot_cpu {
            self.info.bootstrap(crate::cpu::retired_cpu_entry, 0);
        }
    }

    /// Takes a CPU that has retired ([`cpu::retired_count`](crate::cpu::retired_count)) out of the
    /// machine: it executes nothing from then on, whatever interrupts it.
    pub fn reset(&self) {
        if !self.is_boot_cpu {
            crate::apic::send_init(self.apic_id());
        }
    }
}

impl Handover {
    /// The handover, once, if what the kernel cannot do without was answered.
    pub(super) fn take() -> Result<Handover, MissingAnswer> {
        static TAKEN: AtomicBool = AtomicBool::new(false);
        let direct_map = asked::DIRECT_MAP.response().ok_or(MissingAnswer("direct map"))?;
        asked::MEMORY.response().ok_or(MissingAnswer("memory map"))?;
        asked::KERNEL_ADDRESS.response().ok_or(MissingAnswer("executable address"))?;
        if TAKEN.swap(true, Ordering::Relaxed) {
            return Err(MissingAnswer("second"));
        }
        paging::set_direct_map(direct_map.offset);
        Ok(Handover { _only_here: () })
    }

    /// The loader's name and version.
    pub fn loader(&self) -> (&str, &str) {
        asked::LOADER.response().map_or(("unknown loader", ""), |r| (r.name(), r.version()))
    }

    /// What kind of firmware the machine has.
    pub fn firmware(&self) -> &'static str {
        match asked::FIRMWARE.response().map(|r| r.firmware_type) {
            Some(0) => "BIOS",
            Some(1) => "UEFI, 32 bit",
            Some(2) => "UEFI",
            Some(_) => "another kind",
            None => "not told",
        }
    }

    /// The kernel's command line; empty if there is none.
    pub fn command_line(&self) -> &str {
        asked::COMMAND_LINE.response().map_or("", |r| r.cmdline())
    }

    /// Physical and virtual address of the kernel's image.
    pub fn kernel_address(&self) -> (u64, u64) {
        asked::KERNEL_ADDRESS.response().map_or((0, 0), |r| (r.physical_base, r.virtual_base))
    }

    /// The kernel's own file, symbols included.
    pub fn kernel_file(&self) -> Option<&'static [u8]> {
        let response: &'static _ = asked::KERNEL_FILE.response()?;
        Some(response.executable_file().data())
    }

    /// The memory map, sorted by address.
    pub fn memory(&self) -> impl Iterator<Item = MemoryRegion> + Clone {
        let entries = asked::MEMORY.response().map_or(&[][..], |r| r.entries());
        entries.iter().map(|e| MemoryRegion {
            base: e.base,
            bytes: e.length,
            kind: match e.type_ {
                memmap::MEMMAP_USABLE => MemoryKind::Usable,
                memmap::MEMMAP_ACPI_RECLAIMABLE => MemoryKind::AcpiReclaimable,
                memmap::MEMMAP_ACPI_NVS => MemoryKind::AcpiNvs,
                memmap::MEMMAP_BAD_MEMORY => MemoryKind::Bad,
                memmap::MEMMAP_BOOTLOADER_RECLAIMABLE => MemoryKind::LoaderReclaimable,
                memmap::MEMMAP_EXECUTABLE_AND_MODULES => MemoryKind::KernelAndModules,
                memmap::MEMMAP_FRAMEBUFFER => MemoryKind::Framebuffer,
                memmap::MEMMAP_MAPPED_RESERVED => MemoryKind::ReservedMapped,
                _ => MemoryKind::Reserved,
            },
        })
    }

    /// The modules.
    pub fn modules(&self) -> impl Iterator<Item = BootModule<'_>> {
        let modules = asked::MODULES.response().map_or(&[][..], |r| r.modules());
        modules.iter().map(|file| BootModule {
            path: file.path(),
            string: file.cmdline(),
            data: file.data(),
        })
    }

    /// Where the ACPI root pointer lies.
    pub fn rsdp(&self) -> Option<PhysAddr> {
        let address = asked::RSDP.response()?.address as u64;
        PhysAddr::new(address.checked_sub(paging::direct_map_offset())?)
    }

    /// The first frame buffer with 32-bit pixels of eight bits per colour.
    pub fn framebuffer(&self) -> Option<FramebufferInfo> {
        let all = asked::FRAMEBUFFER.response()?.framebuffers();
        let fb = all.iter().find(|f| {
            f.memory_model == FRAMEBUFFER_RGB
                && f.bpp == 32
                && [f.red_mask_size, f.green_mask_size, f.blue_mask_size] == [8, 8, 8]
                && f.width.checked_mul(4).is_some_and(|bytes| bytes <= f.pitch)
                && f.pitch.is_multiple_of(4)
                && (f.address() as usize).is_multiple_of(4)
        })?;
        Some(FramebufferInfo {
            address: fb.address() as u64,
            width: usize::try_from(fb.width).ok()?,
            height: usize::try_from(fb.height).ok()?,
            pitch: usize::try_from(fb.pitch).ok()?,
            shifts: [fb.red_mask_shift, fb.green_mask_shift, fb.blue_mask_shift],
        })
    }

    /// How many frame buffers there are, fit for a console or not.
    pub fn framebuffer_count(&self) -> usize {
        asked::FRAMEBUFFER.response().map_or(0, |r| r.framebuffers().len())
    }

    /// The CPUs, the boot CPU among them; empty if the loader started none.
    pub fn cpus(&self) -> impl Iterator<Item = CpuStart<'_>> {
        let response = asked::CPUS.response();
        let boot_id = response.map(|r| r.bsp_lapic_id);
        response
            .map_or(&[][..], |r| r.cpus())
            .iter()
            .map(move |info| CpuStart { info, is_boot_cpu: Some(info.lapic_id) == boot_id })
    }

    /// The frequency of the time-stamp counter, if the loader measured it.
    pub fn tsc_hz(&self) -> Option<u64> {
        asked::TSC.response().map(|r| r.frequency).filter(|hz| *hz > 0)
    }

    /// Microseconds since reset at which loader and kernel were entered, if the loader knows.
    pub fn microseconds_before(&self) -> Option<(u64, u64)> {
        asked::PERFORMANCE.response().map(|r| (r.init_usec, r.exec_usec))
    }
}
