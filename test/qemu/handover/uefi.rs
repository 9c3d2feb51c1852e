//! The handover of the UEFI loader, from a CD and from a USB disk.

mod common;

use abi_report::Exit;
use common::*;
use std::fs;

fn image() -> Vec<u8> {
    fs::read(input("ISO")).unwrap()
}

#[test]
fn everything_from_cd() {
    let outcome = boot_uefi("cd", &image(), From::Cd, 2);
    check("cd", &outcome, &expected("everything.txt", "everything", From::Cd));
}

#[test]
fn everything_from_usb() {
    let outcome = boot_uefi("usb", &image(), From::Usb, 2);
    check("usb", &outcome, &expected("everything.txt", "everything", From::Usb));
}

/// The loader leaves the firmware's 4-level tables for 5-level ones.
#[test]
fn five_levels() {
    let mut image = image();
    for member in 0..2 {
        set_member(&mut image, "paging-mode", member, 1);
    }
    let outcome = boot_uefi("five", &image, From::Cd, 2);
    check("five", &outcome, &with_five_levels(expected("everything.txt", "everything", From::Cd)));
}

#[test]
fn refusal_is_readable() {
    let mut newer = image();
    set_base_revision(&mut newer, 7);
    let outcome = boot_uefi("newer", &newer, From::Cd, 1);
    let message = "cannot boot: kernel requests: base revision 7 is wanted; this loader speaks 6";
    assert!(outcome.console.contains(message), "{}", outcome.console);
    assert_eq!(outcome.status, Some(Exit::Panic.qemu_status()));
    assert!(outcome.lines.is_empty(), "the kernel ran");
}
