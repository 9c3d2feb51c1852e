//! The answers that are values, strings and files.

use crate::memory::{byte, hhdm, kind_of_direct, text, word};
use crate::report::yes;
use crate::requests::*;
use crate::say;

/// Prints every answer's contents.
pub fn lines() {
    if let Some(response) = BOOTLOADER_INFO.response() {
        say!("bootloader-info {} {}", text(word(response + 8)), text(word(response + 16)));
    }
    if let Some(response) = CMDLINE.response() {
        say!("cmdline `{}`", text(word(response + 8)));
    }
    if let (Some(line), Some(file)) = (CMDLINE.response(), EXECUTABLE_FILE.response()) {
        let same = word(line + 8) == word(word(file + 8) + 32);
        say!("cmdline is-file-string {}", yes(same));
    }
    value("firmware-type", &FIRMWARE_TYPE);
    value("paging-mode", &PAGING_MODE);
    if let Some(offset) = hhdm() {
        say!("hhdm {offset:#x}");
    }
    if let Some(response) = EXECUTABLE_FILE.response() {
        let file = word(response + 8);
        file_lines("executable-file", file);
        say!("executable-file is-elf {}", yes(word(word(file + 8)) as u32 == 0x464c_457f));
    }
    modules();
    firmware_tables();
    if let Some(response) = DATE.response() {
        // The tests start the clock at noon of 2024-01-01.
        say!("date day {}", word(response + 8) / 86_400);
    }
    if let Some(response) = PERFORMANCE.response() {
        let (reset, init, exec) = (word(response + 8), word(response + 16), word(response + 24));
        say!("performance ordered {}", yes(reset <= init && init <= exec));
    }
    framebuffer();
}

fn value(name: &str, request: &Request) {
    if let Some(response) = request.response() {
        say!("{name} {}", word(response + 8));
    }
}

fn file_lines(name: &str, file: u64) {
    say!(
        "{name} revision {} path {} string `{}`",
        word(file),
        text(word(file + 24)),
        text(word(file + 32))
    );
    say!(
        "{name} aligned {} kind {}",
        yes(word(file + 8).is_multiple_of(4096)),
        kind_of_direct(word(file + 8))
    );
    let media = word(file + 40);
    say!("{name} media {} unused {} tftp {}", media as u32, media >> 32, word(file + 48));
    let place = word(file + 56);
    say!("{name} partition {} mbr {}", place as u32, place >> 32);
    let uuid = |offset: u64| word(file + offset) != 0 || word(file + offset + 8) != 0;
    say!("{name} uuids {} {} {}", yes(uuid(64)), yes(uuid(80)), yes(uuid(96)));
}

fn modules() {
    let Some(response) = MODULES.response() else { return };
    let (count, list) = (word(response + 8), word(response + 16));
    say!("modules count {count}");
    for index in 0..count {
        let file = word(list + index * 8);
        file_lines("module", file);
        let (base, size) = (word(file + 8), word(file + 16));
        // FNV-1a over the contents.
        let sum = (0..size).fold(0xcbf2_9ce4_8422_2325u64, |sum, at| {
            (sum ^ u64::from(byte(base + at))).wrapping_mul(0x0100_0000_01b3)
        });
        say!("module size {size} sum {sum:#018x}");
    }
}

fn starts(address: u64, anchor: &[u8]) -> bool {
    (0u64..).zip(anchor).all(|(at, expected)| byte(address + at) == *expected)
}

fn firmware_tables() {
    if let Some(response) = RSDP.response() {
        let rsdp = word(response + 8);
        let kind = kind_of_direct(rsdp);
        say!(
            "rsdp anchor {} kind-mapped {}",
            yes(starts(rsdp, b"RSD PTR ")),
            yes(kind.holds_tables())
        );
        if let Some(base) = hhdm().filter(|_| MEMORY_MAP.response().is_some()) {
            acpi(base, rsdp);
        }
    }
    if let Some(response) = SMBIOS.response() {
        for (name, at, anchor) in
            [("32", word(response + 8), &b"_SM_"[..]), ("64", word(response + 16), b"_SM3_")]
        {
            if at != 0 {
                say!(
                    "smbios {name} anchor {} kind {}",
                    yes(starts(at, anchor)),
                    kind_of_direct(at)
                );
            }
        }
        if let (Some(base), entry @ 1..) = (hhdm(), word(response + 16)) {
            say!("smbios table kind {}", kind_of_direct(base + word(entry + 16)));
        } else if let Some(base) = hhdm() {
            let table = word(word(response + 8) + 0x18) & 0xffff_ffff;
            say!("smbios table kind {}", kind_of_direct(base + table));
        }
    }
    if let Some(response) = EFI_SYSTEM_TABLE.response() {
        let table = word(response + 8);
        say!(
            "efi-system-table anchor {} kind {}",
            yes(starts(table, b"IBI SYST")),
            kind_of_direct(table)
        );
        if let Some(base) = hhdm() {
            // Vendor string, runtime services and configuration table.
            for offset in [24, 88, 112] {
                say!(
                    "efi-system-table +{offset} kind {}",
                    kind_of_direct(base + word(table + offset))
                );
            }
        }
    }
    if let Some(response) = EFI_MEMORY_MAP.response() {
        let (size, step) = (word(response + 16), word(response + 24));
        let good = step >= 40 && size > 0 && size % step == 0;
        say!(
            "efi-memory-map shape-right {} version {} kind {}",
            yes(good),
            word(response + 32),
            kind_of_direct(word(response + 8))
        );
    }
}

/// Every ACPI table lies where the direct map shows it.
fn acpi(base: u64, rsdp: u64) {
    let (list, width) = if byte(rsdp + 15) >= 2 && word(rsdp + 24) != 0 {
        (word(rsdp + 24), 8)
    } else {
        (word(rsdp + 16) & 0xffff_ffff, 4)
    };
    let is_mapped = |phys: u64| kind_of_direct(base + phys).holds_tables();
    let mut mapped = is_mapped(list);
    if mapped {
        let length = word(base + list + 4) & 0xffff_ffff;
        let mut at = 36;
        while at + width <= length {
            let entry = word(base + list + at);
            let table = if width == 8 { entry } else { entry & 0xffff_ffff };
            mapped &= is_mapped(table);
            if mapped && starts(base + table, b"FACP") {
                let dsdt = word(base + table + 40) & 0xffff_ffff;
                let facs = word(base + table + 36) & 0xffff_ffff;
                mapped &= is_mapped(dsdt) && (facs == 0 || is_mapped(facs));
            }
            at += width;
        }
    }
    say!("acpi tables kind-mapped {}", yes(mapped));
}

fn framebuffer() {
    let Some(response) = FRAMEBUFFER.response() else { return };
    say!("framebuffer count {}", word(response + 8));
    let screen = word(word(response + 16));
    let (width, height, pitch) = (word(screen + 8), word(screen + 16), word(screen + 24));
    say!("framebuffer {width}x{height} pitch-enough {}", yes(pitch >= width * 4));
    let shape = word(screen + 32);
    say!("framebuffer bpp {} model {}", shape & 0xffff, shape >> 16 & 0xff);
    let masks: [u8; 6] = core::array::from_fn(|at| byte(screen + 35 + at as u64));
    say!("framebuffer masks {masks:?}");
    say!("framebuffer kind {}", kind_of_direct(word(screen)));
    say!("framebuffer modes {}", yes(word(screen + 64) > 0));
    // Writable to the last pixel.
    let last = (word(screen) + pitch * height - 4) as *mut u32;
    // SAFETY: inside the framebuffer by its own description.
    let kept = unsafe {
        last.write_volatile(0x00ff_ffff);
        last.read_volatile()
    };
    say!("framebuffer writable {}", yes(kept == 0x00ff_ffff));
}
