//! A kernel whose tests are processes: each must end with the exit code its name says.
//!
//! A process called `faults.divide=-256` is the test `faults.divide`, which passes if the process
//! ends with -256. Processes without `=` are helpers: how they end is not judged. The run ends when
//! every test has, so "everything else goes on" is part of each verdict. Records are sent then, in
//! the manifest's order; the plan is sent before anything starts, so that a run that never ends is
//! missing outcomes.
//!
//! Decided in ADR 145.
#![no_std]
#![no_main]

use abi_report::{Encoder, Exit, Record, Sink};
use core::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use core_manifest::{Manifest, Name};
use kernel_arch::{console, println, stop};
use kernel_sys::{Machine, fatal, loader, shutdown, start};
use spin::{Mutex, Once};

kernel_sys::kernel_main!(main);

/// The most tests of one boot, as many as a manifest has processes.
const MOST: usize = 64;

static NAMES: Once<[Name; MOST]> = Once::new();
static CODES: [AtomicI64; MOST] = [const { AtomicI64::new(0) }; MOST];
static ENDED: [AtomicU32; MOST] = [const { AtomicU32::new(0) }; MOST];
static ENCODER: Mutex<Option<Encoder>> = Mutex::new(None);

struct Records;

impl Sink for Records {
    fn write(&mut self, byte: u8) {
        console::send_records(&[byte]);
    }
}

/// Id and expected code of a test; `None` for a helper.
fn test(name: &str) -> Option<(&str, i64)> {
    let (id, code) = name.split_once('=')?;
    Some((id, code.parse().ok()?))
}

fn names(machine: &'static Machine) -> Option<[Name; MOST]> {
    let bytes = machine.module(loader::MANIFEST_MODULE)?.data;
    let manifest = Manifest::check(bytes, |_| true).ok()?;
    let mut names = [Name::new(""); MOST];
    let tests = manifest.processes().ok()?.filter_map(|process| {
        let name = process.ok()?.name;
        test(name).map(|_| Name::new(name))
    });
    for (place, name) in names.iter_mut().zip(tests) {
        *place = name;
    }
    Some(names)
}

fn main(machine: &'static Machine) -> ! {
    let Some(names) = names(machine) else {
        panic!("this kernel needs a manifest whose processes are tests")
    };
    let names = NAMES.call_once(|| names);
    let mut encoder = Encoder::new();
    let tests = names.iter().filter_map(|name| test(name.as_str()));
    let total = tests.clone().count() as u32;
    for (index, (id, _)) in (0..).zip(tests) {
        encoder.send(&mut Records, &Record::Plan { index, total, id });
    }
    *ENCODER.lock() = Some(encoder);
    shutdown::watch(ended);
    let _ = start::run(machine);
    panic!("there is no manifest")
}

/// A process has ended. One CPU at a time comes here: it takes processes apart.
fn ended(name: &str, code: i64) {
    let Some(names) = NAMES.get() else { return };
    if let Some(at) = names.iter().position(|known| known.as_str() == name) {
        CODES[at].store(code, Ordering::Relaxed);
        ENDED[at].fetch_add(1, Ordering::Relaxed);
    }
    let mut outstanding = names
        .iter()
        .zip(&ENDED)
        .filter(|(n, e)| !n.as_str().is_empty() && e.load(Ordering::Relaxed) == 0);
    if outstanding.next().is_none() {
        judge(names);
    }
}

fn judge(names: &[Name; MOST]) -> ! {
    shutdown::finish_output();
    let _ = stop::claim();
    let _ = stop::stop_others();
    let mut encoder = ENCODER.lock().take().unwrap_or_default();
    let (mut passed, mut failed) = (0, 0);
    for (at, (id, expected)) in names.iter().filter_map(|name| test(name.as_str())).enumerate() {
        let (code, times) = (CODES[at].load(Ordering::Relaxed), ENDED[at].load(Ordering::Relaxed));
        encoder.send(&mut Records, &Record::Run { id });
        if (code, times) == (expected, 1) {
            passed += 1;
            encoder.send(&mut Records, &Record::Ok { id });
        } else {
            failed += 1;
            println!("{id}: ended {times} times, last with {code}; expected once with {expected}");
            let message = "the process ended otherwise than its name says; see the console";
            let (line, file) = (line!(), file!());
            encoder.send(&mut Records, &Record::Fail { id, line, file, message });
        }
    }
    encoder.send(&mut Records, &Record::Done { passed, failed, skipped: 0 });
    fatal::leave(if failed == 0 { Exit::Pass } else { Exit::Fail })
}
