//! The little of ACPI a loader needs: where the tables lie, and what the MADT says.
//!
//! Addresses and lengths come from firmware and are believed only as far as they can be
//! reached; a table that cannot be read is left out. ACPI 6.5, 5.2.
//!
//! Decided in ADR 12.

use arrayvec::ArrayVec;

use crate::memmap::{Kind, Region, whole_pages};
use crate::memory::{Memory, get_u16, get_u32, get_u64};

/// The most processors started.
pub const MAX_PROCESSORS: usize = 1024;

/// The most I/O APICs and NMI lines kept.
const MAX_LINES: usize = 64;

/// Runs of pages with firmware tables.
pub type Extents = ArrayVec<Region, 64>;

/// Longest table believed.
const MAX_TABLE: u32 = 16 << 20;

/// A processor of the MADT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor {
    /// ACPI processor UID.
    pub uid: u32,
    /// Local APIC id.
    pub apic_id: u32,
}

/// A local interrupt pin that is wired to NMI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NmiLine {
    /// The processor, or `None` for all of them.
    pub uid: Option<u32>,
    /// LINT0 or LINT1.
    pub pin: u8,
    /// Polarity and trigger mode, MPS INTI flags.
    pub flags: u16,
}

/// What the MADT says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Madt {
    /// Physical address of the local APICs' registers.
    pub local_apic: u64,
    /// Enabled processors.
    pub processors: ArrayVec<Processor, MAX_PROCESSORS>,
    /// Register addresses of the I/O APICs.
    pub io_apics: ArrayVec<u32, MAX_LINES>,
    /// NMI pins.
    pub nmi_lines: ArrayVec<NmiLine, MAX_LINES>,
    /// Whether something did not fit.
    pub overflow: bool,
}

/// Adds the pages of a table, merging with a neighbour.
pub fn add_extent(extents: &mut Extents, base: u64, length: u64) {
    if length == 0 {
        return;
    }
    let new = whole_pages(base, length, Kind::ReservedMapped);
    for old in extents.iter_mut() {
        if new.base <= old.end() && old.base <= new.end() {
            let end = old.end().max(new.end());
            old.base = old.base.min(new.base);
            old.length = end - old.base;
            return;
        }
    }
    // A machine with more scattered tables than this keeps the first ones mapped.
    let _ = extents.try_push(new);
}

fn table(memory: &impl Memory, base: u64) -> Option<&[u8]> {
    if base == 0 {
        return None;
    }
    let length = get_u32(memory.view(base, 8)?, 4)?;
    if !(8..=MAX_TABLE).contains(&length) {
        return None;
    }
    memory.view(base, u64::from(length))
}

/// Calls `visit(address, bytes)` for every table the root points to, the root table first.
fn each_table<M: Memory>(memory: &M, rsdp: u64, mut visit: impl FnMut(u64, &[u8])) -> Option<()> {
    let root = memory.view(rsdp, 20)?;
    if root.get(..8)? != b"RSD PTR " {
        return None;
    }
    let revision = *root.get(15)?;
    let rsdt = u64::from(get_u32(root, 16)?);
    let xsdt = if revision >= 2 { get_u64(memory.view(rsdp, 36)?, 24)? } else { 0 };
    let (root_table, width) = if xsdt != 0 { (xsdt, 8) } else { (rsdt, 4) };
    let list = table(memory, root_table)?;
    visit(root_table, list);
    for at in (36..list.len()).step_by(width) {
        let address = if width == 8 { get_u64(list, at) } else { get_u32(list, at).map(u64::from) };
        let Some(address) = address else { break };
        if let Some(bytes) = table(memory, address) {
            visit(address, bytes);
        }
    }
    Some(())
}

/// Searches the BIOS area for the root pointer. ACPI 6.5, 5.2.5.1.
pub fn legacy_search(memory: &impl Memory) -> Option<u64> {
    const BASE: u64 = 0xe_0000;
    let area = memory.view(BASE, 0x2_0000)?;
    let sums_to_zero = |bytes: &[u8]| bytes.iter().fold(0u8, |sum, b| sum.wrapping_add(*b)) == 0;
    (0..area.len())
        .step_by(16)
        .find(|&at| {
            let root = area.get(at..at + 20).unwrap_or(&[]);
            root.starts_with(b"RSD PTR ") && sums_to_zero(root)
        })
        .map(|at| BASE + at as u64)
}

/// The pages of every ACPI table: RSDP, root table, its targets, FACS and DSDT.
pub fn extents(memory: &impl Memory, rsdp: u64, extents: &mut Extents) {
    add_extent(extents, rsdp, 36);
    let mut pointed: ArrayVec<u64, 4> = ArrayVec::new();
    each_table(memory, rsdp, |address, bytes| {
        add_extent(extents, address, bytes.len() as u64);
        if bytes.get(..4) == Some(b"FACP") {
            let narrow = [36, 40].map(|at| get_u32(bytes, at).map(u64::from));
            let wide = [132, 140].map(|at| get_u64(bytes, at));
            pointed.extend(narrow.into_iter().chain(wide).flatten().take(4));
        }
    });
    for address in pointed {
        if let Some(bytes) = table(memory, address) {
            add_extent(extents, address, bytes.len() as u64);
        }
    }
}

/// Finds a table by signature and gives its address and length.
pub fn find(memory: &impl Memory, rsdp: u64, signature: &[u8; 4]) -> Option<(u64, u64)> {
    let mut found = None;
    each_table(memory, rsdp, |address, bytes| {
        if found.is_none() && bytes.get(..4) == Some(signature) {
            found = Some((address, bytes.len() as u64));
        }
    });
    found
}

impl Madt {
    /// Reads the MADT, if the machine has one.
    pub fn read(memory: &impl Memory, rsdp: u64) -> Option<Self> {
        let (base, length) = find(memory, rsdp, b"APIC")?;
        Some(Self::parse(memory.view(base, length)?))
    }

    /// Reads the bytes of a MADT. Damaged entries end the list.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut madt =
            Self { local_apic: u64::from(get_u32(bytes, 36).unwrap_or(0)), ..Self::default() };
        let mut at = 44;
        while let (Some(&kind), Some(&length)) = (bytes.get(at), bytes.get(at + 1)) {
            let Some(entry) = bytes.get(at..at + usize::from(length)) else { break };
            if length < 2 {
                break;
            }
            madt.entry(kind, entry);
            at += usize::from(length);
        }
        madt
    }

    fn entry(&mut self, kind: u8, entry: &[u8]) {
        let byte = |at: usize| entry.get(at).copied().unwrap_or(0);
        let word = |at: usize| get_u32(entry, at).unwrap_or(0);
        let pushed = match kind {
            // Processor local APIC; flag bit 0: enabled.
            0 if word(4) & 1 == 1 => self.processor(u32::from(byte(2)), u32::from(byte(3))),
            1 => self.io_apics.try_push(word(4)).is_ok(),
            4 => {
                let uid = (byte(2) != 0xff).then(|| u32::from(byte(2)));
                let flags = get_u16(entry, 3).unwrap_or(0);
                self.nmi_lines.try_push(NmiLine { uid, pin: byte(5), flags }).is_ok()
            }
            5 => {
                self.local_apic = get_u64(entry, 4).unwrap_or(self.local_apic);
                true
            }
            9 if word(8) & 1 == 1 => self.processor(word(12), word(4)),
            10 => {
                let uid = (word(4) != u32::MAX).then(|| word(4));
                let flags = get_u16(entry, 2).unwrap_or(0);
                self.nmi_lines.try_push(NmiLine { uid, pin: byte(8), flags }).is_ok()
            }
            _ => true,
        };
        self.overflow |= !pushed;
    }

    /// Adds a processor; firmware may list one both as local APIC and as x2APIC.
    fn processor(&mut self, uid: u32, apic_id: u32) -> bool {
        self.processors.iter().any(|p| p.apic_id == apic_id)
            || self.processors.try_push(Processor { uid, apic_id }).is_ok()
    }
}
