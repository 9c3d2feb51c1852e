//! The UEFI loader: boots the tree on its own volume by the Limine protocol.
//!
//! Up to `exit_boot_services` the firmware helps, and a refusal is printed through its
//! console; after it the machine is ours, and a refusal is drawn. In both cases it goes to
//! the first serial port as well.
#![no_std]
#![no_main]

mod graphics;
mod tables;
mod volume;

use core::convert::Infallible;
use core::fmt::Write;

use abi_report::{EXIT_PORT, Exit};
use graphics::Display;
use loader_core::boot::{EfiMemoryMap, Facts, Prepared, Screen, finish, prepare};
use loader_core::config;
use loader_core::files::{Media, Platform};
use loader_core::memmap::{NO_REGION, Region, normalise};
use loader_core::memory::{ALLOCATION_LIMIT, Frames, Memory};
use loader_core::refusal::{Name, Refusal};
use loader_machine::console::{Both, Pixels, Serial};
use loader_machine::cpu::{Features, halt, timestamp};
use loader_machine::{Identity, depart};
use tables::Tables;
use uefi::boot::{self, MemoryType};
use uefi::mem::memory_map::{MemoryMap, MemoryMapOwned};
use uefi::proto::loaded_image::LoadedImage;
use uefi::{Status, entry, system};
use volume::Volume;
use x86_64::instructions::{interrupts, port::Port};

/// What is known before the firmware leaves.
struct Ready {
    prepared: Prepared,
    tables: Tables,
    display: Option<Display>,
    claims: arrayvec::ArrayVec<Region, 256>,
    media: Media,
    date: Option<i64>,
    identity_top: u64,
}

#[entry]
fn main() -> Status {
    let started = timestamp();
    let features = Features::detect();
    // The firmware would reset a machine that shows a message for five minutes.
    let _ = boot::set_watchdog_timer(0, 0x1_0000, None);
    let top = boot::memory_map(MemoryType::LOADER_DATA)
        .map_or(ALLOCATION_LIMIT, |map| tables::top_of_memory(&map));
    // SAFETY: firmware maps all memory one to one (UEFI 2.10, 2.3.4); only tables the
    // firmware names and memory allocated for the purpose are asked for.
    let mut memory = unsafe { Identity::new(top) };
    let mut wants_exit = false;
    let ready = match get_ready(&mut memory, features, &mut wants_exit) {
        Ok(ready) => ready,
        Err(refusal) => {
            // One after the other: firmware often mirrors its console to the serial port.
            say(&mut Serial::new(), &refusal);
            system::with_stdout(|console| say(console, &refusal));
            end(wants_exit)
        }
    };
    // SAFETY: no protocol is open any more: `get_ready` dropped them all.
    let map = unsafe { boot::exit_boot_services(Some(MemoryType::LOADER_DATA)) };
    interrupts::disable();
    let refusal = match leave(&mut memory, &ready, &map, features, started) {
        Ok(never) => match never {},
        Err(refusal) => refusal,
    };
    let mut serial = Serial::new();
    match &ready.display {
        Some(display) => {
            // SAFETY: the framebuffer is below the top of what firmware maps one to one, and
            // firmware no longer draws.
            let mut pixels = unsafe { Pixels::new(display.base, display.mode) };
            say(&mut Both(&mut serial, &mut pixels), &refusal);
        }
        None => say(&mut serial, &refusal),
    }
    end(wants_exit)
}

fn say(out: &mut impl Write, refusal: &Refusal) {
    let _ = write!(out, "\r\ncapOS loader: cannot boot: {refusal}\r\n");
}

/// Stops; under a test's QEMU, whose exit device the command line announces, ends it.
fn end(wants_exit: bool) -> ! {
    if wants_exit {
        // SAFETY: the command line says that QEMU's exit device is there.
        unsafe { Port::<u8>::new(EXIT_PORT).write(Exit::Panic as u8) };
    }
    halt()
}

/// Everything that needs the firmware.
fn get_ready(
    memory: &mut Identity,
    features: Features,
    wants_exit: &mut bool,
) -> Result<Ready, Refusal> {
    let mut volume = Volume::open(memory, features)?;
    let file = volume.load("/limine.conf")?;
    let text = volume.view(file.base, file.size).unwrap_or(&[]);
    // SAFETY: the file stays where it was loaded until the kernel runs; nothing writes it.
    let text: &'static [u8] = unsafe { core::slice::from_raw_parts(text.as_ptr(), text.len()) };
    // The configuration is the loader's memory, not a module's.
    volume.claims.clear();
    let entry = config::parse(text)?;
    *wants_exit = entry.cmdline.split(' ').any(|word| word == "exit=debug");
    let prepared = prepare(&mut volume, &entry, "", features.la57, features.no_execute)?;
    let tables = Tables::find(volume.memory());
    let own = boot::open_protocol_exclusive::<LoadedImage>(boot::image_handle())
        .map_err(|_| Refusal::Firmware(Name::new("the loader's own image is unknown")))?;
    let (base, length) = own.info();
    let here = core::ptr::from_ref(&own) as u64;
    let identity_top = (base as u64).saturating_add(length).max(here + (1 << 20));
    Ok(Ready {
        prepared,
        tables,
        display: graphics::set_up(entry.resolution),
        claims: volume.claims.clone(),
        media: volume.media(),
        date: tables::unix_seconds(),
        identity_top,
    })
}

/// Everything after it.
fn leave(
    memory: &mut Identity,
    ready: &Ready,
    efi_map: &MemoryMapOwned,
    features: Features,
    started: u64,
) -> Result<Infallible, Refusal> {
    let regions = tables::memory_regions(efi_map)?;
    let mut map: [Region; tables::MAP_ENTRIES] = [NO_REGION; tables::MAP_ENTRIES];
    let overlays: [&[Region]; 2] = [&ready.tables.extents, &ready.claims];
    let count = normalise(&regions, &overlays, &mut map)?;
    let mut frames = Frames::new(map.get(..count).unwrap_or(&[]));
    let prepared = &ready.prepared;
    // SAFETY: boot services are gone and interrupts off; firmware's tables still map the
    // windows its ACPI tables name.
    let quiet = unsafe { depart::quiet(memory, ready.tables.rsdp, prepared, features)? };
    let (tsc_hz, performance) = depart::times(prepared, &features, started);
    let screen = ready.display.as_ref().map(|display| Screen {
        base: display.base,
        mode: display.mode,
        edid: &display.edid,
        modes: &display.modes,
    });
    let meta = efi_map.meta();
    const EFI_64_BIT: u64 = 2;
    let facts = Facts {
        firmware_map: &regions,
        overlays,
        firmware_type: EFI_64_BIT,
        rsdp: ready.tables.rsdp,
        smbios: ready.tables.smbios,
        efi_system_table: ready.tables.system_table,
        efi_memory_map: Some(EfiMemoryMap {
            base: efi_map.buffer().as_ptr() as u64,
            size: meta.map_size as u64,
            descriptor_size: meta.desc_size as u64,
            version: u64::from(meta.desc_version),
        }),
        screens: screen.as_slice(),
        date: ready.date,
        performance,
        tsc_hz,
        processors: &quiet.processors,
        x2apic: quiet.x2apic,
        media: ready.media,
        identity_top: ready.identity_top,
    };
    let handover = finish(prepared, &facts, memory, &mut frames, &mut map)?;
    // SAFETY: the handover was made with this list, and its switch tables reach beyond the
    // loader's image and stack.
    unsafe { depart::depart(handover, &quiet, memory, &mut frames, |_| {}) }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let _ = writeln!(Serial::new(), "\ncapOS loader: {info}");
    halt()
}
