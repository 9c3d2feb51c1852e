//! Everything after the last firmware call: memory map, page tables, stacks, responses.

use arrayvec::ArrayVec;

use super::{NAME, Prepared, VERSION};
use crate::acpi::Processor;
use crate::entry::{CR4, CR4_LA57, GDT, hhdm_base};
use crate::files::Media;
use crate::memmap::{Kind, Region, direct_map_ranges, normalise};
use crate::memory::{ALLOCATION_LIMIT, Frames, Memory, PAGE, page_down, page_up};
use crate::mp::{self, MpLayout};
use crate::paging::{PageTables, Rights};
use crate::protocol::Feature;
use crate::refusal::Refusal;
use crate::respond::{Answers, Heap, Space, file_record};
use crate::smbios::Smbios;

/// A mode of a framebuffer, 32-bit or 24-bit RGB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VideoMode {
    /// Bytes per line.
    pub pitch: u64,
    /// Pixels per line.
    pub width: u64,
    /// Lines.
    pub height: u64,
    /// Bits per pixel.
    pub bpp: u16,
    /// Size and shift of red, green and blue, in that order.
    pub masks: [u8; 6],
}

/// A framebuffer.
#[derive(Clone, Copy, Debug)]
pub struct Screen<'a> {
    /// Physical address.
    pub base: u64,
    /// Its mode.
    pub mode: VideoMode,
    /// The display's EDID, if the firmware has it.
    pub edid: &'a [u8],
    /// Every mode the firmware offers.
    pub modes: &'a [VideoMode],
}

impl Screen<'_> {
    /// Its memory.
    pub fn region(&self) -> Region {
        let length = self.mode.pitch.saturating_mul(self.mode.height);
        Region { base: self.base, length, kind: Kind::Framebuffer }
    }
}

/// The EFI memory map as the firmware gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EfiMemoryMap {
    /// Physical address of the descriptors.
    pub base: u64,
    /// Bytes of all of them.
    pub size: u64,
    /// Bytes of one.
    pub descriptor_size: u64,
    /// Their version.
    pub version: u64,
}

/// Microseconds since the time stamp counter was zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Performance {
    /// Reset.
    pub reset_us: u64,
    /// Start of the loader.
    pub init_us: u64,
    /// Handover.
    pub exec_us: u64,
}

/// What a front end knows about its machine. `None` leaves the request unanswered.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The firmware's memory map.
    pub firmware_map: &'a [Region],
    /// Pages with firmware tables, and what the front end itself took or found taken.
    pub overlays: [&'a [Region]; 2],
    /// 0 BIOS, 2 64-bit UEFI.
    pub firmware_type: u64,
    /// ACPI's root pointer.
    pub rsdp: Option<u64>,
    /// SMBIOS entry points.
    pub smbios: Smbios,
    /// EFI system table.
    pub efi_system_table: Option<u64>,
    /// EFI memory map.
    pub efi_memory_map: Option<EfiMemoryMap>,
    /// Framebuffers.
    pub screens: &'a [Screen<'a>],
    /// Seconds since 1970.
    pub date: Option<i64>,
    /// Time stamps.
    pub performance: Option<Performance>,
    /// Time stamp counter frequency.
    pub tsc_hz: Option<u64>,
    /// Enabled processors, with the one we run on first.
    pub processors: &'a [Processor],
    /// Whether the local APICs are in x2APIC mode.
    pub x2apic: bool,
    /// The boot volume.
    pub media: Media,
    /// Everything up to here is mapped one to one while processors switch page tables.
    pub identity_top: u64,
}

/// What is left to do: start processors, switch, jump.
#[derive(Clone, Copy, Debug)]
pub struct Handover {
    /// Root of the kernel's page tables.
    pub root: u64,
    /// Root with the same upper half and a one-to-one lower half.
    pub switch_root: u64,
    /// CR4 for entry.
    pub cr4: u64,
    /// Base of the direct map.
    pub hhdm: u64,
    /// Virtual address of the kernel's first instruction.
    pub entry: u64,
    /// Physical end of the first processor's stack; each further processor's follows.
    pub stack_top: u64,
    /// Bytes of a stack.
    pub stack_size: u64,
    /// Physical address of the GDT.
    pub gdt: u64,
    /// Physical page below 1 MiB for the switch code.
    pub trampoline: u64,
    /// The MP response.
    pub mp: Option<MpLayout>,
    /// Address and entries of the memory map in the kernel's form, for inspection.
    pub memory_map: (u64, u64),
}

/// Lays everything out. `map` is room for the memory map.
///
/// After an error the kernel's request slots are as they were in its file.
pub fn finish(
    prepared: &Prepared,
    facts: &Facts<'_>,
    memory: &mut impl Memory,
    frames: &mut Frames,
    map: &mut [Region],
) -> Result<Handover, Refusal> {
    let count = memory_map(facts, frames.taken(), map)?;
    let normalised = map.get(..count).unwrap_or(&[]);

    let mut top = 0;
    direct_map_ranges(normalised, |_, end, _| {
        top = end;
        Ok::<_, Refusal>(())
    })?;
    let hhdm = hhdm_base(prepared.levels, prepared.random_hhdm, top);
    let mut space = Space { memory, frames, hhdm };
    // The page below 1 MiB is scarce: it is taken first.
    const BELOW_1_MIB: u64 = 0xa_0000;
    let trampoline = space.pages(1, BELOW_1_MIB)?;
    let tables = map_kernel(&mut space, prepared, normalised)?;
    let switch_root = tables.with_identity(
        space.memory,
        space.frames,
        facts.identity_top.max(ALLOCATION_LIMIT),
    )?;

    let processors: &[Processor] = match (prepared.mp_flags, facts.processors) {
        (Some(_), all) => all,
        (None, [first, ..]) => core::slice::from_ref(first),
        (None, []) => &[],
    };
    let stacks = processors.len().max(1) as u64;
    let stack_base = space.pages(stacks * prepared.stack_size / PAGE, ALLOCATION_LIMIT)?;
    let mut heap = Heap::default();
    let gdt = heap.words(&mut space, &GDT)?;
    let mut answers = Answers::default();
    simple_answers(&mut space, &mut heap, prepared, facts, &mut answers)?;
    file_answers(&mut space, &mut heap, prepared, facts, &mut answers)?;
    screen_answer(&mut space, &mut heap, prepared, facts, &mut answers)?;
    let mut mp = None;
    if let (Some(_), Some(first)) = (prepared.mp_flags, processors.first()) {
        let layout = mp::build(&mut space, &mut heap, processors, first.apic_id, facts.x2apic)?;
        answers.add(Feature::Mp, layout.response);
        mp = Some(layout);
    }
    // Last, because it says what was taken. Room for the list itself is taken before: the
    // final list has at most this many entries.
    let room = count as u64 + 2 * space.frames.taken().len() as u64 + 8;
    let list = heap.take(&mut space, room * (24 + 8), 8)?;
    let response = heap.take(&mut space, 24, 8)?;
    let count = memory_map(facts, space.frames.taken(), map)? as u64;
    if count > room {
        return Err(Refusal::MapTooLong { limit: room as usize });
    }
    for (index, region) in (0u64..).zip(map.iter().take(count as usize)) {
        let entry = list + room * 8 + index * 24;
        space.put(entry, &[region.base, region.length, region.kind as u64])?;
        space.put(list + index * 8, &[space.virt(entry)])?;
    }
    space.put(response, &[0, count, space.virt(list)])?;
    answers.add(Feature::MemoryMap, response);

    let size = prepared.image.size();
    let image = space.bytes(prepared.block, size)?;
    answers.hand_over(image, &prepared.requests, hhdm);
    Ok(Handover {
        root: tables.root(),
        switch_root,
        cr4: if prepared.levels == 5 { CR4 | CR4_LA57 } else { CR4 },
        hhdm,
        entry: prepared.entry,
        stack_top: stack_base + prepared.stack_size,
        stack_size: prepared.stack_size,
        gdt,
        trampoline,
        mp,
        memory_map: (list + room * 8, count),
    })
}

/// The most framebuffers; more are not reported.
const MAX_SCREENS: usize = 4;

/// The memory map with everything the loader put over the firmware's.
fn memory_map(facts: &Facts<'_>, taken: &[Region], out: &mut [Region]) -> Result<usize, Refusal> {
    let screens: ArrayVec<Region, MAX_SCREENS> =
        facts.screens.iter().map(Screen::region).take(MAX_SCREENS).collect();
    let [tables, claims] = facts.overlays;
    normalise(facts.firmware_map, &[claims, taken, tables, &screens], out)
}

/// Page tables with the direct map and the executable.
fn map_kernel(
    space: &mut Space<'_, impl Memory>,
    prepared: &Prepared,
    map: &[Region],
) -> Result<PageTables, Refusal> {
    let tables = PageTables::new(space.memory, space.frames, prepared.levels)?;
    let hhdm = space.hhdm;
    direct_map_ranges(map, |base, end, is_framebuffer| {
        let rights = if is_framebuffer { Rights::FRAMEBUFFER } else { Rights::ALL };
        tables.map(space.memory, space.frames, hhdm + base, base, end - base, rights)
    })?;
    for segment in &prepared.image.segments {
        let start = page_down(segment.vaddr);
        let end = page_up(segment.vaddr + segment.memory_size);
        let rights =
            Rights { write: segment.writable, execute: segment.executable, write_combining: false };
        let virt = start.wrapping_add(prepared.slide);
        let phys = prepared.block + (start - prepared.image.start);
        tables.map(space.memory, space.frames, virt, phys, end - start, rights)?;
    }
    Ok(tables)
}

/// Responses of a few words.
fn simple_answers(
    space: &mut Space<'_, impl Memory>,
    heap: &mut Heap,
    prepared: &Prepared,
    facts: &Facts<'_>,
    answers: &mut Answers,
) -> Result<(), Refusal> {
    let mut answer = |space: &mut Space<'_, _>, feature, words: &[u64]| -> Result<(), Refusal> {
        if prepared.wants(feature) {
            answers.add(feature, heap.words(space, words)?);
        }
        Ok(())
    };
    answer(space, Feature::FirmwareType, &[0, facts.firmware_type])?;
    answer(space, Feature::StackSize, &[0])?;
    answer(space, Feature::EntryPoint, &[0])?;
    answer(space, Feature::KeepIommu, &[0])?;
    answer(space, Feature::Hhdm, &[0, space.hhdm])?;
    answer(space, Feature::PagingMode, &[0, u64::from(prepared.levels) - 4])?;
    answer(space, Feature::ExecutableAddress, &[0, prepared.block, prepared.base()])?;
    if let Some(rsdp) = facts.rsdp {
        answer(space, Feature::Rsdp, &[0, space.virt(rsdp)])?;
    }
    if facts.smbios != Smbios::default() {
        let virt = |entry: Option<u64>| entry.map_or(0, |entry| space.virt(entry));
        let words = [0, virt(facts.smbios.entry32), virt(facts.smbios.entry64)];
        answer(space, Feature::Smbios, &words)?;
    }
    if let Some(table) = facts.efi_system_table {
        answer(space, Feature::EfiSystemTable, &[0, space.virt(table)])?;
    }
    if let Some(map) = facts.efi_memory_map {
        let words = [0, space.virt(map.base), map.size, map.descriptor_size, map.version];
        answer(space, Feature::EfiMemoryMap, &words)?;
    }
    if let Some(date) = facts.date {
        answer(space, Feature::Date, &[0, date as u64])?;
    }
    if let Some(p) = facts.performance {
        answer(space, Feature::Performance, &[0, p.reset_us, p.init_us, p.exec_us])?;
    }
    if let Some(hz) = facts.tsc_hz {
        answer(space, Feature::TscFrequency, &[0, hz])?;
    }
    Ok(())
}

/// Responses with files and strings.
fn file_answers(
    space: &mut Space<'_, impl Memory>,
    heap: &mut Heap,
    prepared: &Prepared,
    facts: &Facts<'_>,
    answers: &mut Answers,
) -> Result<(), Refusal> {
    if prepared.wants(Feature::BootloaderInfo) {
        let name = heap.text(space, NAME)?;
        let version = heap.text(space, VERSION)?;
        let words = [0, space.virt(name), space.virt(version)];
        answers.add(Feature::BootloaderInfo, heap.words(space, &words)?);
    }
    if prepared.wants(Feature::Cmdline) {
        let words = [0, space.virt(prepared.file.string)];
        answers.add(Feature::Cmdline, heap.words(space, &words)?);
    }
    if prepared.wants(Feature::ExecutableFile) {
        let record = file_record(space, heap, &prepared.file, &facts.media)?;
        let words = [0, space.virt(record)];
        answers.add(Feature::ExecutableFile, heap.words(space, &words)?);
    }
    if prepared.wants(Feature::Modules) && !prepared.modules.is_empty() {
        const MODULES_REVISION: u64 = 2;
        let count = prepared.modules.len() as u64;
        let list = heap.take(space, count * 8, 8)?;
        for (index, module) in (0u64..).zip(&prepared.modules) {
            let record = file_record(space, heap, module, &facts.media)?;
            space.put(list + index * 8, &[space.virt(record)])?;
        }
        let words = [MODULES_REVISION, count, space.virt(list)];
        answers.add(Feature::Modules, heap.words(space, &words)?);
    }
    Ok(())
}

/// The words of a mode after width and height: depth, model and masks in protocol order.
fn mode_tail(mode: &VideoMode) -> u64 {
    const RGB: u64 = 1;
    let [red, red_shift, green, green_shift, blue, _] = mode.masks.map(u64::from);
    u64::from(mode.bpp)
        | RGB << 16
        | red << 24
        | red_shift << 32
        | green << 40
        | green_shift << 48
        | blue << 56
}

fn screen_answer(
    space: &mut Space<'_, impl Memory>,
    heap: &mut Heap,
    prepared: &Prepared,
    facts: &Facts<'_>,
    answers: &mut Answers,
) -> Result<(), Refusal> {
    if !prepared.wants(Feature::Framebuffer) || facts.screens.is_empty() {
        return Ok(());
    }
    const FRAMEBUFFER_REVISION: u64 = 1;
    const MODE_SIZE: u64 = 40;
    let count = facts.screens.len() as u64;
    let list = heap.take(space, count * 8, 8)?;
    for (index, screen) in (0u64..).zip(facts.screens) {
        let edid = heap.take(space, screen.edid.len() as u64, 8)?;
        space.bytes(edid, screen.edid.len() as u64)?.copy_from_slice(screen.edid);
        let mode_count = screen.modes.len() as u64;
        let modes = heap.take(space, mode_count * (8 + MODE_SIZE), 8)?;
        for (place, mode) in (0u64..).zip(screen.modes) {
            let at = modes + mode_count * 8 + place * MODE_SIZE;
            let blue_shift = u64::from(mode.masks[5]);
            let words = [mode.pitch, mode.width, mode.height, mode_tail(mode), blue_shift];
            space.put(at, &words)?;
            space.put(modes + place * 8, &[space.virt(at)])?;
        }
        let mode = &screen.mode;
        let edid_virt = if screen.edid.is_empty() { 0 } else { space.virt(edid) };
        let words = [
            space.virt(screen.base),
            mode.width,
            mode.height,
            mode.pitch,
            mode_tail(mode),
            u64::from(mode.masks[5]),
            screen.edid.len() as u64,
            edid_virt,
            mode_count,
            space.virt(modes),
        ];
        let record = heap.words(space, &words)?;
        space.put(list + index * 8, &[space.virt(record)])?;
    }
    let words = [FRAMEBUFFER_REVISION, count, space.virt(list)];
    answers.add(Feature::Framebuffer, heap.words(space, &words)?);
    Ok(())
}
