//! Booting the conformance kernel, changed copies of it, and comparing what it prints.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};

use abi_report::Exit;
use qemu_command::{Lane, Machine, Media, Serial};

/// Where a boot comes from: selects lines of the expected files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    Direct,
    Cd,
    Usb,
}

impl From {
    /// The tags whose lines apply.
    fn tags(self) -> &'static [&'static str] {
        match self {
            From::Direct => &["direct"],
            From::Cd => &["uefi", "cd"],
            From::Usb => &["uefi", "usb"],
        }
    }
}

/// How a run ended.
pub struct Outcome {
    pub status: Option<i32>,
    pub console: String,
    pub lines: Vec<String>,
}

/// A file the build made, named by an environment variable.
pub fn input(variable: &str) -> PathBuf {
    PathBuf::from(std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set")))
}

fn scratch(name: &str) -> PathBuf {
    let folder = PathBuf::from(std::env::var("TEST_TMPDIR").expect("run by bazel"));
    fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

/// Boots and waits for the guest to end QEMU.
fn boot(name: &str, media: Media, cpus: u32) -> Outcome {
    let (console, records) = (scratch(&format!("{name}.console")), scratch(&format!("{name}.out")));
    let mut machine = Machine::new(media);
    let is_direct = matches!(machine.media, Media::Direct { .. });
    machine.lane = if is_direct { Lane::Deterministic } else { Lane::Racing };
    // Said aloud, because the deterministic lane leaves it out for its timer, which no one uses here.
    machine.cpu = "max,+x2apic".into();
    if is_direct {
        // A loader that refuses sees only this part of the command line.
        machine.append = "exit=debug".into();
    } else {
        machine.extra.extend(["-rtc", "base=2024-01-01T12:00:00"].map(String::from));
    }
    machine.cpus = cpus;
    machine.exit_port = true;
    machine.serial = Serial::Files { console: console.clone(), records: records.clone() };
    let status = test_boot::run(&machine);
    let text =
        |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    Outcome {
        status,
        console: text(&console),
        // Firmware uses every serial port as a console until the kernel begins.
        lines: text(&records)
            .lines()
            .skip_while(|line| *line != "begin")
            .skip(1)
            .map(String::from)
            .collect(),
    }
}

/// Boots a (changed) bundle with a stub.
pub fn boot_direct(name: &str, stub: &str, bundle: &[u8], cpus: u32) -> Outcome {
    let path = scratch(&format!("{name}.tar"));
    fs::write(&path, bundle).unwrap();
    let media = Media::Direct { stub: input(stub), bundle: path };
    boot(name, media, cpus)
}

/// Boots a (changed) image.
pub fn boot_uefi(name: &str, image: &[u8], from: From, cpus: u32) -> Outcome {
    let iso = scratch(&format!("{name}.iso"));
    fs::write(&iso, image).unwrap();
    let firmware = PathBuf::from("/usr/share/ovmf/OVMF.fd");
    let media = match from {
        From::Usb => Media::Usb { iso, firmware },
        _ => Media::Cd { iso, firmware },
    };
    boot(name, media, cpus)
}

const REQUEST: [u64; 2] = [0xc7b1_dd30_df4c_8b88, 0x0a82_e883_a194_f07b];
const BASE_TAG: [u64; 2] = [0xf956_2b2d_5c95_a6c8, 0x6a7b_3849_4453_6bdc];

/// Names and third words of the requests' identifiers, in the kernel's order.
pub const REQUESTS: [(&str, u64); 23] = [
    ("bootloader-info", 0xf550_38d8_e2a1_202f),
    ("cmdline", 0x4b16_1536_e598_651e),
    ("firmware-type", 0x8c2f_75d9_0bef_28a8),
    ("stack-size", 0x224e_f046_0a8e_8926),
    ("hhdm", 0x48dc_f1cb_8ad2_b852),
    ("paging-mode", 0x95c1_a0ed_ab09_44cb),
    ("framebuffer", 0x9d58_27dc_d881_dd75),
    ("mp", 0x95a6_7b81_9a1b_857e),
    ("memory-map", 0x67cf_3d9d_378a_806f),
    ("entry-point", 0x13d8_6c03_5a1c_d3e1),
    ("executable-file", 0xad97_e90e_83f1_ed67),
    ("executable-address", 0x71ba_7686_3cc5_5f63),
    ("modules", 0x3e7e_2797_02be_32af),
    ("rsdp", 0xc5e7_7b6b_397e_7b43),
    ("smbios", 0x9e90_46f1_1e09_5391),
    ("efi-system-table", 0x5ceb_a516_3eaa_f6d6),
    ("efi-memory-map", 0x7df6_2a43_1d68_72d5),
    ("date", 0x5027_46e1_84c0_88aa),
    ("performance", 0x6b50_ad9b_f36d_13ad),
    ("tsc-frequency", 0x10f2_ee1d_87d1_95e4),
    ("entropy", 0x65ea_8025_5d56_82c5),
    ("tpm-log", 0x98e0_94fc_7e76_e979),
    ("keep-iommu", 0x8eba_abe5_1f49_0179),
];

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

pub fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn find(bytes: &[u8], first: [u64; 2]) -> Vec<usize> {
    (0..bytes.len().saturating_sub(48))
        .step_by(8)
        .filter(|&at| word(bytes, at) == first[0] && word(bytes, at + 8) == first[1])
        .collect()
}

/// Offsets of a request's copies in an archive or image.
pub fn request(bytes: &[u8], name: &str) -> Vec<usize> {
    let (_, id) = REQUESTS.iter().find(|(other, _)| *other == name).expect("a known request");
    let found: Vec<usize> =
        find(bytes, REQUEST).into_iter().filter(|&at| word(bytes, at + 16) == *id).collect();
    assert!(!found.is_empty(), "{name} is not in the image");
    found
}

/// Sets a request's member.
pub fn set_member(bytes: &mut [u8], name: &str, member: usize, value: u64) {
    for at in request(bytes, name) {
        put(bytes, at + 48 + member * 8, value);
    }
}

/// Sets the wanted base revision.
pub fn set_base_revision(bytes: &mut [u8], revision: u64) {
    let found = find(bytes, BASE_TAG);
    assert!(!found.is_empty(), "no base revision tag in the image");
    for at in found {
        put(bytes, at + 16, revision);
    }
}

/// Blanks every request but one.
pub fn leave_alone(bytes: &mut [u8], name: &str) {
    let kept = request(bytes, name);
    for at in find(bytes, REQUEST) {
        if !kept.contains(&at) {
            put(bytes, at, 0);
            put(bytes, at + 8, 0);
        }
    }
}

/// The expected lines of a section, for one way of booting. A line may begin with the ways
/// it belongs to: `{direct,cd} text`.
pub fn expected(file: &str, section: &str, from: From) -> Vec<String> {
    let path = format!("test/qemu/handover/expected/{file}");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut current = "";
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            current = name;
            continue;
        }
        if current != section {
            continue;
        }
        match line.strip_prefix('{').and_then(|line| line.split_once("} ")) {
            None => lines.push(line.to_string()),
            Some((tags, line)) => {
                if tags.split(',').any(|tag| from.tags().contains(&tag)) {
                    lines.push(line.to_string());
                }
            }
        }
    }
    assert!(!lines.is_empty() || section != "everything", "{path} has no section {section}");
    lines
}

/// The lines in which a run differs: expected ones missing, and ones that are too many.
pub fn difference(outcome: &Outcome, expected: &[String]) -> Vec<String> {
    if outcome.lines == expected {
        return Vec::new();
    }
    let mut report = Vec::new();
    for index in 0..outcome.lines.len().max(expected.len()) {
        let (was, should) = (outcome.lines.get(index), expected.get(index));
        if was != should {
            report.push(format!("line {}: expected {should:?}, was {was:?}", index + 1));
        }
    }
    report
}

/// Fails with the difference unless the run is as expected and ended as a pass.
pub fn check(name: &str, outcome: &Outcome, expected: &[String]) {
    let report = difference(outcome, expected);
    assert!(
        report.is_empty(),
        "{name}: {}\nstatus {:?}\nconsole:\n{}",
        report.iter().take(12).cloned().collect::<Vec<_>>().join("\n"),
        outcome.status,
        outcome.console
    );
    assert_eq!(outcome.status, Some(Exit::Pass.qemu_status()), "{name}: exit status");
}

/// What the kernel prints that asks for one thing only.
pub fn expected_alone(name: &str, from: From) -> Vec<String> {
    let entered = if name == "entry-point" { "request" } else { "file" };
    let mut lines = expected("alone.txt", "head", from);
    lines.insert(1, format!("first entry-from {entered}"));
    lines.extend(expected("alone.txt", name, from));
    lines.push("end".into());
    lines
}

/// Replaces a piece of the lines that have it; there must be one.
pub fn changed(expected: &mut [String], old: &str, new: &str) {
    let mut hits = 0;
    for line in expected.iter_mut().filter(|line| line.contains(old)) {
        *line = line.replace(old, new);
        hits += 1;
    }
    assert!(hits > 0, "no expected line contains {old}");
}

/// The handover with 5 levels. The kernel's window to the controllers is for 4 levels only.
pub fn with_five_levels(mut expected: Vec<String>) -> Vec<String> {
    expected.retain(|line| {
        !line.contains("local-apic") && !line.contains("io-apic") && !line.contains("nmi-pin")
    });
    changed(&mut expected, "cr4 0x20 ", "cr4 0x1020 ");
    changed(&mut expected, "hhdm 0xffff800000000000", "hhdm 0xff00000000000000");
    changed(&mut expected, "paging-mode 0", "paging-mode 1");
    expected
}
