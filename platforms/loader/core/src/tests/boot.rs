//! The whole boot on a machine of bytes: every request alone and together, and errors that
//! leave nothing half-written.

use std::string::ToString;
use std::vec;
use std::vec::Vec;
use test_property::prelude::*;

use super::kernel::{DATA, UNTOUCHED, kernel, kernel_with, request, words};
use super::ram::{Machine, firmware_map};
use crate::acpi::Processor;
use crate::boot::{
    EfiMemoryMap, Facts, Handover, Performance, Prepared, Screen, VideoMode, finish, prepare,
};
use crate::config::parse;
use crate::entry::HHDM_4_LEVEL;
use crate::files::Media;
use crate::image::{HIGHER_HALF, ImageError};
use crate::memmap::{Kind, NO_REGION, Region};
use crate::paging::translate;
use crate::protocol::{Feature, RESPONSE_OFFSET};
use crate::refusal::Refusal;
use crate::requests::RequestError;
use crate::smbios::Smbios;

const CONFIG: &str = "/capOS\npath: boot():/boot/kernel.elf\ncmdline: a=1\n\
    module_path: boot():/boot/one\nmodule_string: first\n";

fn machine(kernel: &[u8]) -> Machine {
    Machine::new()
        .with("/boot/kernel.elf", kernel)
        .with("/boot/one", b"one")
        .with("/boot/two", &[2; 5000])
}

fn prepared(machine: &mut Machine, config: &str) -> Result<Prepared, Refusal> {
    prepare(machine, &parse(config.as_bytes()).unwrap(), "b=2", true, true)
}

const MODE: VideoMode =
    VideoMode { pitch: 4096, width: 1024, height: 16, bpp: 32, masks: [8, 16, 8, 8, 8, 0] };

fn with_facts<R>(screens: bool, run: impl FnOnce(&Facts<'_>) -> R) -> R {
    let map = firmware_map();
    let processors = [0, 1, 5].map(|id| Processor { uid: id + 10, apic_id: id });
    let screen = [Screen { base: 0xc000_0800, mode: MODE, edid: &[1, 2, 3], modes: &[MODE] }];
    run(&Facts {
        firmware_map: &map,
        overlays: [&[], &[]],
        firmware_type: 2,
        rsdp: Some(0x1f0_0100),
        smbios: Smbios { entry32: Some(0xf_5000), entry64: None },
        efi_system_table: Some(0x1f4_0000),
        efi_memory_map: Some(EfiMemoryMap {
            base: 0x5000,
            size: 96,
            descriptor_size: 48,
            version: 1,
        }),
        screens: if screens { &screen } else { &[] },
        date: Some(1_704_067_200),
        performance: Some(Performance { reset_us: 0, init_us: 5, exec_us: 9 }),
        tsc_hz: Some(1_000_000_000),
        processors: &processors,
        x2apic: false,
        media: Media { partition: 2, ..Media::default() },
        identity_top: 0,
    })
}

fn boot(machine: &mut Machine, config: &str) -> Result<(Prepared, Handover), Refusal> {
    let prepared = prepared(machine, config)?;
    let mut map = vec![NO_REGION; 128];
    let handover = with_facts(true, |facts| {
        finish(&prepared, facts, &mut machine.ram, &mut machine.frames, &mut map)
    })?;
    Ok((prepared, handover))
}

/// A request as it must be made for the feature.
fn ask(feature: Feature) -> Vec<u8> {
    let members: &[u64] = match feature {
        Feature::StackSize => &[100 << 10],
        Feature::PagingMode => &[0, 1, 0],
        Feature::Mp => &[0],
        Feature::EntryPoint => &[HIGHER_HALF + 0x20],
        Feature::Modules => &[0, 0],
        _ => &[],
    };
    let revision = u64::from(matches!(feature, Feature::PagingMode | Feature::Modules));
    request(feature, revision, members)
}

fn response(machine: &Machine, prepared: &Prepared, feature: Feature) -> Option<u64> {
    let slot = prepared.requests.get(feature)?;
    let value = machine.ram.word(prepared.block + (slot.offset + RESPONSE_OFFSET) as u64);
    (value != UNTOUCHED).then(|| value - HHDM_4_LEVEL)
}

/// Checks the contents of one response.
fn check_response(machine: &Machine, prepared: &Prepared, feature: Feature, at: u64) {
    let ram = &machine.ram;
    let word = |index: u64| ram.word(at + index * 8);
    let phys = |index: u64| word(index) - HHDM_4_LEVEL;
    let revision = match feature {
        Feature::Framebuffer => 1,
        Feature::Modules => 2,
        _ => 0,
    };
    assert_eq!(word(0), revision, "{feature:?}");
    match feature {
        Feature::BootloaderInfo => assert_eq!(ram.text(phys(1)), "capOS loader"),
        Feature::Cmdline => assert_eq!(ram.text(phys(1)), "a=1 b=2"),
        Feature::FirmwareType => assert_eq!(word(1), 2),
        Feature::Hhdm => assert_eq!(word(1), HHDM_4_LEVEL),
        Feature::PagingMode => assert_eq!(word(1), 0),
        Feature::ExecutableAddress => assert_eq!((word(1), word(2)), (prepared.block, HIGHER_HALF)),
        Feature::Rsdp => assert_eq!(phys(1), 0x1f0_0100),
        Feature::Smbios => assert_eq!((phys(1), word(2)), (0xf_5000, 0)),
        Feature::EfiSystemTable => assert_eq!(phys(1), 0x1f4_0000),
        Feature::EfiMemoryMap => {
            assert_eq!((phys(1), word(2), word(3), word(4)), (0x5000, 96, 48, 1))
        }
        Feature::Date => assert_eq!(word(1), 1_704_067_200),
        Feature::Performance => assert_eq!((word(1), word(2), word(3)), (0, 5, 9)),
        Feature::TscFrequency => assert_eq!(word(1), 1_000_000_000),
        Feature::ExecutableFile => {
            let file = phys(1);
            assert_eq!(ram.text(ram.word(file + 24) - HHDM_4_LEVEL), "/boot/kernel.elf");
            assert_eq!(ram.text(ram.word(file + 32) - HHDM_4_LEVEL), "a=1 b=2");
            assert_eq!(ram.word(file + 56), 2);
            let data = ram.word(file + 8) - HHDM_4_LEVEL;
            assert_eq!(data % 4096, 0);
            assert_eq!(ram.0[data as usize..][..4], *b"\x7fELF");
        }
        Feature::Modules => {
            assert_eq!(word(1), 1);
            let file = ram.word(phys(2)) - HHDM_4_LEVEL;
            assert_eq!(ram.text(ram.word(file + 24) - HHDM_4_LEVEL), "/boot/one");
            assert_eq!(ram.text(ram.word(file + 32) - HHDM_4_LEVEL), "first");
            assert_eq!(ram.word(file + 16), 3);
            assert_eq!(ram.word(file + 40), 0, "media type and the unused word after it");
        }
        Feature::Framebuffer => {
            assert_eq!(word(1), 1);
            let screen = ram.word(phys(2)) - HHDM_4_LEVEL;
            assert_eq!(ram.word(screen), HHDM_4_LEVEL + 0xc000_0800);
            assert_eq!([8, 16, 24].map(|at| ram.word(screen + at)), [1024, 16, 4096]);
            let tail = &ram.0[screen as usize + 32..][..9];
            assert_eq!(tail, [32, 0, 1, 8, 16, 8, 8, 8, 0]);
            assert_eq!(ram.word(screen + 48), 3);
            assert_eq!(ram.word(screen + 64), 1);
            let mode = ram.word(ram.word(screen + 72) - HHDM_4_LEVEL) - HHDM_4_LEVEL;
            assert_eq!([0, 8, 16].map(|at| ram.word(mode + at)), [4096, 1024, 16]);
        }
        Feature::Mp => {
            assert_eq!((word(1), word(2)), (0, 3));
            for (index, (uid, id)) in [(10, 0), (11, 1), (15, 5)].into_iter().enumerate() {
                let record = ram.word(phys(3) + index as u64 * 8) - HHDM_4_LEVEL;
                assert_eq!(ram.word(record), uid | id << 32);
                assert_eq!([8, 16, 24].map(|at| ram.word(record + at)), [0; 3]);
            }
        }
        Feature::MemoryMap => {
            let count = word(1);
            let entries = (0..count).map(|index| ram.word(phys(2) + index * 8) - HHDM_4_LEVEL);
            let entries: Vec<[u64; 3]> =
                entries.map(|entry| [0, 8, 16].map(|at| ram.word(entry + at))).collect();
            for pair in entries.windows(2) {
                assert!(pair[0][0] + pair[0][1] <= pair[1][0], "{entries:x?}");
            }
            let kind = |address: u64| {
                entries.iter().find(|e| e[0] <= address && address < e[0] + e[1]).map(|e| e[2])
            };
            assert_eq!(kind(prepared.block), Some(6));
            assert_eq!(kind(at), Some(5));
            assert_eq!(kind(0x1f0_0000), Some(2));
            assert_eq!(kind(0x2000), Some(0));
            assert_eq!(kind(0xc000_0800), Some(7));
        }
        Feature::StackSize | Feature::EntryPoint | Feature::KeepIommu => {}
    }
}

#[test]
fn each_request_alone() {
    for feature in Feature::ALL.iter().copied() {
        let mut machine = machine(&kernel(&[ask(feature)]));
        let (prepared, handover) = boot(&mut machine, CONFIG).unwrap();
        let at = response(&machine, &prepared, feature).unwrap_or_else(|| panic!("{feature:?}"));
        check_response(&machine, &prepared, feature, at);
        let entry = if feature == Feature::EntryPoint { 0x20 } else { 0x10 };
        assert_eq!(handover.entry, HIGHER_HALF + entry);
        assert_eq!(handover.mp.is_some(), feature == Feature::Mp);
        let stack = if feature == Feature::StackSize { 100 << 10 } else { 64 << 10 };
        assert_eq!(handover.stack_size, stack);
    }
}

#[test]
fn all_requests_together() {
    let all: Vec<Vec<u8>> = Feature::ALL.iter().copied().map(ask).collect();
    let mut machine = machine(&kernel(&all));
    let (prepared, handover) = boot(&mut machine, CONFIG).unwrap();
    for feature in Feature::ALL.iter().copied() {
        let at = response(&machine, &prepared, feature).unwrap();
        check_response(&machine, &prepared, feature, at);
    }
    let tag = prepared.block + prepared.requests.base_tag as u64;
    assert_eq!((machine.ram.word(tag + 8), machine.ram.word(tag + 16)), (6, 0));
    assert!(handover.trampoline < 0xa_0000 && handover.trampoline > 0);
    assert!(handover.stack_top + 2 * handover.stack_size <= 1 << 32);
    // The command line is one string in both places.
    let line = machine.ram.word(response(&machine, &prepared, Feature::Cmdline).unwrap() + 8);
    let file =
        machine.ram.word(response(&machine, &prepared, Feature::ExecutableFile).unwrap() + 8);
    assert_eq!(line, machine.ram.word(file - HHDM_4_LEVEL + 32));
}

#[test]
fn page_tables_show_segments_and_the_direct_map_only() {
    let mut machine = machine(&kernel(&[]));
    let (prepared, handover) = boot(&mut machine, CONFIG).unwrap();
    let at = |virt| translate(&machine.ram, handover.root, 4, virt);
    let rights = |virt| at(virt).map(|t| (t.rights.write, t.rights.execute));
    assert_eq!(rights(HIGHER_HALF), Some((false, true)));
    assert_eq!(rights(HIGHER_HALF + 0x1000), Some((false, false)));
    assert_eq!(rights(HIGHER_HALF + DATA), Some((true, false)));
    assert_eq!(rights(HIGHER_HALF + prepared.image.size()), None);
    assert_eq!(at(HIGHER_HALF + 5).unwrap().phys, prepared.block + 5);
    assert_eq!(rights(HHDM_4_LEVEL + 0x2000), Some((true, true)));
    assert_eq!(at(HHDM_4_LEVEL + 0xf_5000), None, "reserved");
    assert_eq!(at(HHDM_4_LEVEL + 0xa_0000), None, "hole");
    assert!(at(HHDM_4_LEVEL + 0xc000_0000).unwrap().rights.write_combining, "screen");
    assert!(at(0x2000).is_none(), "lower half");
    assert_eq!(translate(&machine.ram, handover.switch_root, 4, 0x2000).unwrap().phys, 0x2000);
}

#[test]
fn what_the_machine_lacks_is_left_untouched() {
    let mut machine = machine(&kernel(&[ask(Feature::Framebuffer), ask(Feature::Date)]));
    let prepared = prepared(&mut machine, CONFIG).unwrap();
    let mut map = vec![NO_REGION; 128];
    with_facts(false, |facts| {
        let facts = Facts { date: None, ..*facts };
        finish(&prepared, &facts, &mut machine.ram, &mut machine.frames, &mut map).unwrap();
    });
    assert_eq!(response(&machine, &prepared, Feature::Framebuffer), None);
    assert_eq!(response(&machine, &prepared, Feature::Date), None);
}

#[test]
fn no_modules_no_answer() {
    let mut machine = machine(&kernel(&[ask(Feature::Modules)]));
    let (prepared, _) = boot(&mut machine, "/a\npath: boot():/boot/kernel.elf\n").unwrap();
    assert_eq!(response(&machine, &prepared, Feature::Modules), None);
}

/// A kernel with internal modules: request, list, descriptors and strings in its data.
fn with_internal(flags: u64, name: &str) -> Vec<u8> {
    // Data: markers and tag are 56 bytes, the request 64, the end marker 16; then ours.
    let here = HIGHER_HALF + DATA + 56 + 64;
    let list = here;
    let descriptor = here + 8;
    let text = here + 32;
    let modules = request(Feature::Modules, 1, &[1, list]);
    let mut own = words(&[descriptor, text, text + name.len() as u64 + 1, flags]);
    own.extend(name.as_bytes());
    own.extend(b"\0hello\0");
    own.resize(own.len().next_multiple_of(8), 0);
    kernel(&[modules, own])
}

#[test]
fn internal_modules_come_first_and_are_relative() {
    for (name, path) in
        [("two", "/boot/two"), ("../boot/./two", "/boot/two"), ("/boot/two", "/boot/two")]
    {
        let mut machine = machine(&with_internal(1, name));
        let (prepared, _) = boot(&mut machine, CONFIG).unwrap();
        assert_eq!(prepared.modules.len(), 2);
        assert_eq!(machine.ram.text(prepared.modules[0].path), path);
        assert_eq!(machine.ram.text(prepared.modules[0].string), "hello");
        assert_eq!(prepared.modules[0].data.size, 5000);
    }
}

#[test]
fn internal_modules_that_are_missing_or_compressed() {
    let mut absent = machine(&with_internal(0, "absent"));
    assert_eq!(boot(&mut absent, CONFIG).unwrap().0.modules.len(), 1);
    let error = boot(&mut machine(&with_internal(1, "absent")), CONFIG).unwrap_err();
    assert_eq!(error.to_string(), "/boot/absent is not on the boot volume");
    let error = boot(&mut machine(&with_internal(2, "two")), CONFIG).unwrap_err();
    assert_eq!(error, Refusal::Request(RequestError::Compressed));
    let outside = kernel(&[request(Feature::Modules, 1, &[1, 0x1000])]);
    let error = boot(&mut machine(&outside), CONFIG).unwrap_err();
    assert_eq!(error, Refusal::Request(RequestError::InternalModule(0x1000)));
}

#[test]
fn hashes_are_checked() {
    use blake2::{Blake2b512, Digest};
    let good = kernel(&[]);
    let hash: std::string::String =
        Blake2b512::digest(&good).iter().map(|b| std::format!("{b:02x}")).collect();
    let config = std::format!("/a\npath: boot():/boot/kernel.elf#{hash}\n");
    assert!(boot(&mut machine(&good), &config).is_ok());
    let mut changed = good.clone();
    *changed.last_mut().unwrap() ^= 1;
    let error = boot(&mut machine(&changed), &config).unwrap_err();
    assert!(matches!(error, Refusal::HashDiffers(_)));
}

#[test]
fn refusals_with_reasons() {
    let cases: [(Vec<u8>, &str, &str); 7] = [
        (b"MZ".to_vec(), CONFIG, "not a well-formed"),
        (kernel_with(3, &[]), CONFIG, "base revision 3 is wanted; this loader speaks 6"),
        (kernel(&[request(Feature::EntryPoint, 0, &[5])]), CONFIG, "entry point 0x5"),
        (kernel(&[request(Feature::StackSize, 0, &[1 << 40])]), CONFIG, "a stack of"),
        (kernel(&[request(Feature::StackSize, 0, &[512 << 20])]), CONFIG, "contiguous memory"),
        (
            kernel(&[]),
            "/a\npath: boot():/boot/missing\n",
            "/boot/missing is not on the boot volume",
        ),
        (
            kernel(&[ask(Feature::Modules)]),
            "/a\npath: boot():/boot/kernel.elf\nmodule_path: boot():/no\n",
            "/no is not on the boot volume",
        ),
    ];
    for (kernel, config, message) in cases {
        let error = boot(&mut machine(&kernel), config).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let mut machine = machine(&kernel(&[]));
    let entry = parse(CONFIG.as_bytes()).unwrap();
    let error = prepare(&mut machine, &entry, "", true, false).map(|_| ()).unwrap_err();
    assert_eq!(error, Refusal::Request(RequestError::NoExecuteMissing));
    assert!(matches!(Refusal::from(ImageError::NotElf), Refusal::Image(_)));
}

#[test]
fn a_string_with_a_zero_byte_is_refused() {
    let error =
        boot(&mut machine(&kernel(&[])), "/a\npath: boot():/boot/kernel.elf\ncmdline: a\0b\n");
    assert!(matches!(error.map(|_| ()), Err(Refusal::String(_))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// However little memory there is, an error leaves the request slots as they were, and a
    /// success has written them all.
    #[test]
    fn nothing_is_half_written(pages in 0u64..400) {
        let all: Vec<Vec<u8>> = Feature::ALL.iter().copied().map(ask).collect();
        let mut machine = machine(&kernel(&all));
        let prepared = prepared(&mut machine, CONFIG).unwrap();
        let block = prepared.block as usize..(prepared.block + prepared.image.size()) as usize;
        let before = machine.ram.0[block.clone()].to_vec();
        let mut frames = crate::memory::Frames::new(&[
            Region { base: 0x1000, length: 0x1000, kind: Kind::Usable },
            Region { base: 0x20_0000, length: pages * 4096, kind: Kind::Usable },
        ]);
        let mut map = vec![NO_REGION; 128];
        let result = with_facts(true, |facts| {
            finish(&prepared, facts, &mut machine.ram, &mut frames, &mut map)
        });
        match result {
            Err(_) => prop_assert_eq!(&machine.ram.0[block], &before),
            Ok(_) => for feature in Feature::ALL.iter().copied() {
                prop_assert!(response(&machine, &prepared, feature).is_some());
            }
        }
    }

    #[test]
    fn odd_firmware_maps_boot_or_are_refused(base in 0u64..0x200, length in 0u64..0x200, kind in 1u64..5, room in 1usize..40) {
        let mut machine = machine(&kernel(&[ask(Feature::MemoryMap)]));
        let prepared = prepared(&mut machine, CONFIG).unwrap();
        let kind = [Kind::Reserved, Kind::AcpiReclaimable, Kind::AcpiNvs, Kind::Bad][kind as usize - 1];
        let mut firmware = firmware_map();
        firmware.push(Region { base: base * 0x777, length: length * 0x333, kind });
        let mut map = vec![NO_REGION; room];
        let result = with_facts(true, |facts| {
            let facts = Facts { firmware_map: &firmware, ..*facts };
            finish(&prepared, &facts, &mut machine.ram, &mut machine.frames, &mut map)
        });
        if let Ok(handover) = result {
            prop_assert!(handover.memory_map.1 as usize <= room);
        } else {
            prop_assert_eq!(response(&machine, &prepared, Feature::MemoryMap), None);
        }
    }
}
