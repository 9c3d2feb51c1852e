//! The ACPI tables: which CPUs, timers and buses the firmware describes.
//!
//! Tables are found and checked by `core_firmware` and interpreted by the `acpi` crate's types.
//! A table is read only where the memory map has firmware memory (invariant FW-1).
//!
//! Decided in ADR 22.

use crate::boot::{Handover, MemoryKind};
use crate::irq::Override;
use crate::paging;
use crate::power::Power;
use acpi::sdt::Signature;
use acpi::sdt::fadt::Fadt;
use acpi::sdt::hpet::HpetTable;
use acpi::sdt::madt::{Madt, MadtEntry};
use acpi::sdt::mcfg::Mcfg;
use core::pin::Pin;
use core_address::PhysAddr;
use core_firmware::power::{self, BadS5, NoPowerOff, PowerOff, Reset, SleepTypes};
use core_firmware::{HEADER_BYTES, RSDP_BYTES, Unsound};

/// A CPU's line in the interrupt table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FirmwareCpu {
    /// Its local APIC's id.
    pub apic_id: u32,
    /// Whether it may be used; otherwise it could only be plugged in later.
    pub is_enabled: bool,
}

/// A PCI configuration space in memory (ECAM).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PciSegment {
    /// Where it lies.
    pub base: PhysAddr,
    /// Segment group.
    pub segment: u16,
    /// First and last bus.
    pub buses: (u8, u8),
}

/// The tables, found and sound.
pub struct FirmwareTables<'a> {
    handover: &'a Handover,
    root: &'a [u8],
    is_wide: bool,
}

fn in_firmware_memory(handover: &Handover, start: u64, bytes: u64) -> bool {
    let Some(end) = start.checked_add(bytes) else { return false };
    handover.memory().any(|region| {
        let firmware = matches!(
            region.kind,
            MemoryKind::AcpiReclaimable | MemoryKind::AcpiNvs | MemoryKind::ReservedMapped
        );
        firmware && region.base <= start && end <= region.base.saturating_add(region.bytes)
    })
}

fn bytes_at(handover: &Handover, address: u64, count: usize) -> Result<&[u8], Unsound> {
    let start = PhysAddr::new(address).ok_or(Unsound::NotInFirmwareMemory)?;
    if !in_firmware_memory(handover, address, count as u64) {
        return Err(Unsound::NotInFirmwareMemory);
    }
    // SAFETY: firmware memory is in the direct map and nobody writes it (invariant FW-1).
    Ok(unsafe { core::slice::from_raw_parts(paging::direct(start), count) })
}

fn table_at(handover: &Handover, address: u64) -> Result<&[u8], Unsound> {
    let header = bytes_at(handover, address, HEADER_BYTES)?;
    let table = bytes_at(handover, address, core_firmware::stated_length(header)?)?;
    core_firmware::check(table)?;
    Ok(table)
}

impl<'a> FirmwareTables<'a> {
    /// Finds the tables; `None` if the loader found none.
    pub fn find(handover: &'a Handover) -> Option<Result<Self, Unsound>> {
        let rsdp = handover.rsdp()?.as_u64();
        let find = || {
            let root = core_firmware::root(bytes_at(handover, rsdp, RSDP_BYTES)?)?;
            let table = table_at(handover, root.address)?;
            Ok(Self { handover, root: table, is_wide: root.is_wide })
        };
        Some(find())
    }

    /// Every table's signature, or what is wrong with it.
    pub fn each(&self) -> impl Iterator<Item = Result<[u8; 4], Unsound>> {
        core_firmware::entries(self.root, self.is_wide).map(|address| {
            table_at(self.handover, address)
                .and_then(|t| core_firmware::signature(t).ok_or(Unsound::Length))
        })
    }

    /// The first sound table with a signature.
    fn table(&self, signature: Signature) -> Option<&'a [u8]> {
        core_firmware::entries(self.root, self.is_wide)
            .filter_map(|address| table_at(self.handover, address).ok())
            .find(|t| t.starts_with(signature.as_str().as_bytes()))
    }

    /// The CPUs of the interrupt table, in its order. Local APIC and local x2APIC entries.
    pub fn cpus(&self) -> impl Iterator<Item = FirmwareCpu> {
        let madt = self.table(Signature::MADT).map(|bytes| {
            // SAFETY: the table is checked to hold the packed header and whole records of at
            // least their kind's length, and stays where it is.
            unsafe { Pin::new_unchecked(&*bytes.as_ptr().cast::<Madt>()) }
        });
        madt.into_iter().flat_map(|madt| madt.entries()).filter_map(|entry| match entry {
            MadtEntry::LocalApic(e) => {
                Some(FirmwareCpu { apic_id: e.apic_id.into(), is_enabled: e.flags & 1 == 1 })
            }
            MadtEntry::LocalX2Apic(e) => {
                Some(FirmwareCpu { apic_id: e.x2apic_id, is_enabled: e.flags & 1 == 1 })
            }
            _ => None,
        })
    }

    fn madt(&self) -> impl Iterator<Item = MadtEntry<'a>> {
        let madt = self.table(Signature::MADT).map(|bytes| {
            // SAFETY: as in `cpus`.
            unsafe { Pin::new_unchecked(&*bytes.as_ptr().cast::<Madt>()) }
        });
        madt.into_iter().flat_map(|madt| madt.entries())
    }

    /// The I/O APICs of the interrupt table: where their registers lie, and their first line.
    pub fn io_apics(&self) -> impl Iterator<Item = (PhysAddr, u32)> {
        self.madt().filter_map(|entry| match entry {
            MadtEntry::IoApic(e) => {
                Some((PhysAddr::new(e.io_apic_address.into())?, e.global_system_interrupt_base))
            }
            _ => None,
        })
    }

    /// The legacy interrupts that are not wired as usual.
    pub fn overrides(&self) -> impl Iterator<Item = Override> {
        self.madt().filter_map(|entry| match entry {
            // Bus 0 is ISA, the only one there is (ACPI 6.5, 5.2.12.5).
            MadtEntry::InterruptSourceOverride(e) if e.bus == 0 => {
                Some(Override::from_flags(e.irq, e.global_system_interrupt, e.flags))
            }
            _ => None,
        })
    }

    /// Where the HPET's registers lie.
    pub fn hpet(&self) -> Option<PhysAddr> {
        let bytes = self.table(Signature::HPET)?;
        // SAFETY: checked to be as long as the packed table.
        let table = unsafe { bytes.as_ptr().cast::<HpetTable>().read_unaligned() };
        let base = table.base_address;
        // Address space 0 is memory (ACPI 6.5, 5.2.3.2).
        (base.address_space == 0).then_some(base.address).and_then(PhysAddr::new)
    }

    /// The power management timer's port, if the machine has one.
    pub fn pm_timer_port(&self) -> Option<u16> {
        let bytes = self.table(Signature::FADT)?;
        // SAFETY: the field lies in the first 116 bytes, which the table has; the rest of the
        // structure is not touched.
        let port = unsafe {
            (&raw const (*bytes.as_ptr().cast::<Fadt>()).pm_timer_block).read_unaligned()
        };
        u16::try_from(port).ok().filter(|p| *p != 0)
    }

    /// The clock chip's register for the century, if the machine has one.
    pub fn century_register(&self) -> Option<u8> {
        power::century_register(self.table(Signature::FADT)?)
    }

    /// How the machine is switched off and reset.
    pub fn power(&self) -> Power {
        let fadt = self.table(Signature::FADT);
        let off = fadt
            .ok_or(NoPowerOff::NoTable)
            .and_then(|fadt| PowerOff::of(fadt, self.sleep_types(fadt)));
        Power { off, reset: fadt.and_then(Reset::of) }
    }

    /// `_S5` of the first table of byte code that has one: the DSDT, then the SSDTs.
    fn sleep_types(&self, fadt: &[u8]) -> Result<SleepTypes, BadS5> {
        let dsdt = power::dsdt_address(fadt).and_then(|at| table_at(self.handover, at).ok());
        let ssdts = core_firmware::entries(self.root, self.is_wide)
            .filter_map(|address| table_at(self.handover, address).ok())
            .filter(|table| table.starts_with(b"SSDT"));
        dsdt.filter(|table| table.starts_with(b"DSDT"))
            .into_iter()
            .chain(ssdts)
            .map(power::sleep_types)
            .find(|types| *types != Err(BadS5::Missing))
            .unwrap_or(Err(BadS5::Missing))
    }

    /// The PCI configuration spaces.
    pub fn pci_segments(&self) -> impl Iterator<Item = PciSegment> {
        let entries = self.table(Signature::MCFG).map_or(&[][..], |bytes| {
            // SAFETY: checked to hold the packed header; entries are counted by the table's length.
            unsafe { &*bytes.as_ptr().cast::<Mcfg>() }.entries()
        });
        entries.iter().filter_map(|e| {
            Some(PciSegment {
                base: PhysAddr::new(e.base_address)?,
                segment: e.pci_segment_group,
                buses: (e.bus_number_start, e.bus_number_end),
            })
        })
    }
}
