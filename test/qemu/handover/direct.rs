//! The handover of the direct-boot stub.

mod common;

use abi_report::Exit;
use common::*;
use std::fs;

fn bundle() -> Vec<u8> {
    fs::read(input("BUNDLE")).unwrap()
}

#[test]
fn everything() {
    let outcome = boot_direct("everything", "STUB", &bundle(), 2);
    check("everything", &outcome, &expected("everything.txt", "everything", From::Direct));
}

#[test]
fn each_request_alone() {
    for (name, _) in REQUESTS {
        let mut bundle = bundle();
        leave_alone(&mut bundle, name);
        let outcome = boot_direct(name, "STUB", &bundle, 2);
        check(name, &outcome, &expected_alone(name, From::Direct));
    }
}

#[test]
fn many_processors() {
    let outcome = boot_direct("many", "STUB", &bundle(), 8);
    assert_eq!(outcome.status, Some(Exit::Pass.qemu_status()), "{}", outcome.console);
    assert!(outcome.lines.contains(&"mp flags 0 first 0 count 8".to_string()));
    for id in 1..8 {
        let line = format!("processor {id} local-apic spurious 0x1ff priority 0 masked yes");
        assert!(outcome.lines.contains(&line), "processor {id}");
    }
}

#[test]
fn five_levels() {
    let mut bundle = bundle();
    for member in 0..2 {
        set_member(&mut bundle, "paging-mode", member, 1);
    }
    let outcome = boot_direct("five", "STUB", &bundle, 2);
    let expected = with_five_levels(expected("everything.txt", "everything", From::Direct));
    check("five", &outcome, &expected);
}

#[test]
fn x2apic_when_asked_for() {
    let mut bundle = bundle();
    set_member(&mut bundle, "mp", 0, 1);
    let outcome = boot_direct("x2apic", "STUB", &bundle, 2);
    let mut expected = expected("everything.txt", "everything", From::Direct);
    changed(&mut expected, "mp flags 0", "mp flags 1");
    check("x2apic", &outcome, &expected);
}

#[test]
fn larger_stack() {
    let mut bundle = bundle();
    set_member(&mut bundle, "stack-size", 0, 1 << 20);
    let outcome = boot_direct("stack", "STUB", &bundle, 2);
    check("stack", &outcome, &expected("everything.txt", "everything", From::Direct));
}

#[test]
fn planted_control_register_is_seen() {
    let outcome = boot_direct("wrong-cr4", "STUB_WRONG_CONTROL_REGISTER", &bundle(), 2);
    let report = difference(&outcome, &expected("everything.txt", "everything", From::Direct));
    assert_eq!(report.len(), 1, "{report:?}");
    assert!(report[0].contains("cr4 0x220"), "{report:?}");
}

#[test]
fn planted_memory_type_is_seen() {
    let outcome = boot_direct("wrong-type", "STUB_WRONG_MEMORY_TYPE", &bundle(), 2);
    let report = difference(&outcome, &expected("everything.txt", "everything", From::Direct));
    assert!(report.iter().any(|line| line.contains("kind stack 0")), "{report:?}");
}

/// Refused boots: what is changed, and what the console must say.
#[test]
fn refusals_are_readable() {
    let mut newer = bundle();
    set_base_revision(&mut newer, 7);
    let mut twice = bundle();
    let (from, to) = (request(&twice, "rsdp")[0], request(&twice, "smbios")[0]);
    for word in 2..4 {
        let id = twice[from + word * 8..from + word * 8 + 8].try_into().unwrap();
        put(&mut twice, to + word * 8, u64::from_le_bytes(id));
    }
    let mut too_deep = bundle();
    for member in 0..3 {
        set_member(&mut too_deep, "paging-mode", member, 2);
    }
    let mut entry = bundle();
    set_member(&mut entry, "entry-point", 0, 0xffff_ffff_8fff_0000);
    let mut damaged = bundle();
    damaged[0] ^= 1;
    let cases: [(&str, Vec<u8>, &str); 5] = [
        ("newer", newer, "base revision 7 is wanted; this loader speaks 6"),
        ("twice", twice, "is there twice"),
        ("deep", too_deep, "6-level paging is wanted"),
        ("entry", entry, "entry point 0xffffffff8fff0000 lies in no executable segment"),
        ("damaged", damaged, "boot bundle: wrong header checksum"),
    ];
    for (name, bundle, message) in cases {
        let outcome = boot_direct(name, "STUB", &bundle, 1);
        assert!(outcome.console.contains(message), "{name}: {}", outcome.console);
        assert!(outcome.console.contains("capOS loader: cannot boot: "), "{name}");
        assert_eq!(outcome.status, Some(Exit::Panic.qemu_status()), "{name}");
        assert!(outcome.lines.is_empty(), "{name}: the kernel ran");
    }
}
