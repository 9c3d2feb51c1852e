//! The direct-boot stub: a PVH kernel for `qemu -kernel` that boots the tree in its initrd
//! by the Limine protocol, as the UEFI loader boots the same tree from a volume.
//!
//! It is what tests and benchmarks start through: no firmware setup, no disks, a few
//! milliseconds. Firmware type is BIOS; there is no framebuffer.
#![no_std]
#![no_main]

mod start;
mod start_info;
mod volume;

use core::convert::Infallible;
use core::fmt::Write;

use abi_report::{EXIT_PORT, Exit};
use loader_core::acpi::{self, Extents};
use loader_core::boot::{Facts, Handover, finish, prepare};
use loader_core::files::Media;
use loader_core::memmap::{Kind, NO_REGION, Region, normalise, whole_pages};
use loader_core::memory::{ALLOCATION_LIMIT, Frames, Memory};
use loader_core::refusal::{Name, Refusal};
use loader_core::smbios::{self, Smbios};
use loader_core::{config, ustar};
use loader_machine::console::{Both, Serial, TextScreen};
use loader_machine::cpu::{Features, halt, timestamp};
use loader_machine::switch::Parameters;
use loader_machine::{Identity, clock, depart};
use start_info::StartInfo;
use volume::Volume;
use x86_64::instructions::port::Port;

/// Room for the memory map.
const MAP_ENTRIES: usize = 512;

/// Entered from [`start`] with the start information's address.
extern "sysv64" fn main(start_info: u64) -> ! {
    let started = timestamp();
    // SAFETY: the start code mapped the first 4 GiB one to one; the loader's own objects
    // lie in its image, which the memory map claims and nothing asks for.
    let mut memory = unsafe { Identity::new(ALLOCATION_LIMIT) };
    // The start information lies in memory that may be handed out later: it is copied first.
    let info = StartInfo::read(&memory, start_info);
    let append = info.as_ref().ok().and_then(|info| own_text(&memory, info.command_line).ok());
    let booted = info.and_then(|info| boot(&mut memory, &info, append.as_deref(), started));
    let refusal = match booted {
        Ok(never) => match never {},
        Err(refusal) => refusal,
    };
    let mut serial = Serial::new();
    // SAFETY: the video window lies below 4 GiB.
    let mut screen = unsafe { TextScreen::new() };
    let _ = writeln!(Both(&mut serial, &mut screen), "\ncapOS loader: cannot boot: {refusal}");
    if append.is_some_and(|line| line.split(' ').any(|word| word == "exit=debug")) {
        // SAFETY: the command line says that QEMU's exit device is there.
        unsafe { Port::<u8>::new(EXIT_PORT).write(Exit::Panic as u8) };
    }
    halt()
}

/// A copy that outlives the borrow of memory.
fn own_text(memory: &Identity, (base, length): (u64, u64)) -> Result<Text, Refusal> {
    let mut text = Text::new();
    let bytes = memory.view(base, length).unwrap_or(&[]);
    let line = core::str::from_utf8(bytes).map_err(|_| Refusal::String(Name::new("-append")))?;
    text.try_push_str(line).map_err(|_| Refusal::String(Name::new(line)))?;
    Ok(text)
}

type Text = arrayvec::ArrayString<2048>;

/// The configuration file, apart from the memory it was found in.
fn config_file(memory: &Identity, bundle: (u64, u64)) -> Result<&'static [u8], Refusal> {
    let (base, length) = bundle;
    let archive = memory.view(base, length).ok_or(Refusal::Unreachable { base, length })?;
    let path = "/limine.conf";
    let member = ustar::find(archive, path)?.ok_or(Refusal::NotFound(Name::new(path)))?;
    let file = (base as usize + member.offset) as *const u8;
    // SAFETY: inside the bundle, which is mapped, claimed in the memory map and only read
    // until the kernel runs.
    Ok(unsafe { core::slice::from_raw_parts(file, member.size) })
}

/// Pages with ACPI and SMBIOS tables.
fn firmware_tables(memory: &Identity, rsdp: Option<u64>, smbios: Smbios) -> Extents {
    let mut tables = Extents::new();
    if let Some(rsdp) = rsdp {
        acpi::extents(memory, rsdp, &mut tables);
    }
    smbios::extents(memory, smbios, &mut tables);
    tables
}

fn boot(
    memory: &mut Identity,
    info: &StartInfo,
    append: Option<&str>,
    started: u64,
) -> Result<Infallible, Refusal> {
    let append = append.ok_or(Refusal::String(Name::new("-append")))?;
    let features = Features::detect();
    let rsdp = info.rsdp.or_else(|| acpi::legacy_search(memory));
    let smbios = smbios::legacy_search(memory);
    let tables = firmware_tables(memory, rsdp, smbios);
    let (own_base, own_length) = start::own_memory();
    let claims = [
        whole_pages(own_base, own_length, Kind::BootloaderReclaimable),
        whole_pages(info.bundle.0, info.bundle.1, Kind::BootloaderReclaimable),
    ];
    let mut map: [Region; MAP_ENTRIES] = [NO_REGION; MAP_ENTRIES];
    let count = normalise(&info.map, &[&claims, &tables], &mut map)?;
    let mut frames = Frames::new(map.get(..count).unwrap_or(&[]));

    let entry = config::parse(config_file(memory, info.bundle)?)?;
    let mut volume = Volume { memory, frames: &mut frames, features, bundle: info.bundle };
    let prepared = prepare(&mut volume, &entry, append, features.la57, features.no_execute)?;

    // SAFETY: QEMU's firmware does nothing any more, and everything QEMU's tables name lies
    // below 4 GiB.
    let quiet = unsafe { depart::quiet(memory, rsdp, &prepared, features)? };
    let (tsc_hz, performance) = depart::times(&prepared, &features, started);
    let facts = Facts {
        firmware_map: &info.map,
        overlays: [&tables, &claims],
        firmware_type: 0,
        rsdp,
        smbios,
        efi_system_table: None,
        efi_memory_map: None,
        screens: &[],
        date: clock::cmos_seconds(),
        performance,
        tsc_hz,
        processors: &quiet.processors,
        x2apic: quiet.x2apic,
        media: Media::default(),
        identity_top: ALLOCATION_LIMIT,
    };
    let handover = finish(&prepared, &facts, memory, &mut frames, &mut map)?;
    plant_memory_type(memory, &handover);
    // SAFETY: the handover was made with this list; the stub lies below 4 GiB.
    unsafe { depart::depart(handover, &quiet, memory, &mut frames, plant_control_register) }
}

/// In the stub that plants it: reclaimable entries of the map claim to be usable.
fn plant_memory_type(memory: &mut Identity, handover: &Handover) {
    if !cfg!(plant_memory_type) {
        return;
    }
    let (list, count) = handover.memory_map;
    for entry in (0..count).map(|index| list + index * 24 + 16) {
        if let Some(kind) = memory.bytes(entry, 8)
            && kind.first() == Some(&(Kind::BootloaderReclaimable as u8))
        {
            kind.fill(0);
        }
    }
}

/// In the stub that plants it: the kernel is entered with CR4.OSFXSR set.
fn plant_control_register(parameters: &mut Parameters) {
    if cfg!(plant_control_register) {
        const OSFXSR: u64 = 1 << 9;
        parameters.cr4 |= OSFXSR;
    }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let _ = writeln!(Serial::new(), "\ncapOS loader: {info}");
    halt()
}
