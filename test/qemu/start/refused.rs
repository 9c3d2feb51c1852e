//! What cannot be started stops the boot with a sentence. The word `case=` says what is wrong.
#![no_std]
#![no_main]

use core::fmt::{self, Write};
use kernel_sys::fatal::{Cause, Fatal};
use kernel_sys::{Machine, start};
use spin::Once;
use test_kernel::{Env, expect_end};
use test_kit::{Outcome, Suite, T, Test};

kernel_sys::kernel_main!(main);

static MACHINE: Once<&'static Machine> = Once::new();

const SUITE: Suite<Env> = Suite::new(&[Test::new("start.refused", refused)]);

fn main(machine: &'static Machine) -> ! {
    MACHINE.call_once(|| machine);
    test_kernel::run(machine, &SUITE)
}

/// The first part of a text.
struct Text {
    bytes: [u8; 400],
    used: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if let Some(place) = self.bytes.get_mut(self.used) {
                *place = byte;
                self.used += 1;
            }
        }
        Ok(())
    }
}

/// What the report must say, by case.
fn words(case: &str) -> Option<[&'static str; 2]> {
    Some(match case {
        "cut" | "noise" => ["cannot boot on this machine", "manifest.bin: "],
        "module" => ["manifest.bin: ", "start.elf"],
        "elf" => ["cannot boot on this machine", "process start: "],
        "frames" => ["process start: no frames left: unmap memory, or raise frames (", " wanted, "],
        "guards" => ["process start: guards from 0x", "the first is not at a multiple of 4096"],
        "kind" => ["process start: a note \"capOS\" of type 7", "expected 1 (guards)"],
        "length" => ["process start: program header ", "a note reaches past the end"],
        _ => return None,
    })
}

fn judge(fatal: &Fatal<'_>) -> Result<(), &'static str> {
    let Cause::Panic(info) = fatal.cause else { return Err("the boot ended by a fault") };
    let mut text = Text { bytes: [0; 400], used: 0 };
    let _ = write!(text, "{}", info.message());
    let said = core::str::from_utf8(&text.bytes[..text.used]).unwrap_or_default();
    let case = MACHINE.get().and_then(|machine| machine.words().value("case"));
    match case.and_then(words) {
        Some(words) if words.iter().all(|word| said.contains(word)) => Ok(()),
        Some(_) => Err("the report does not say what is wrong; see the console"),
        None => Err("no such case"),
    }
}

fn refused(t: &mut T<'_, Env>) -> Outcome {
    expect_end(t, judge, || {
        if let Some(machine) = MACHINE.get() {
            let _ = start::run(machine);
        }
    })
}
