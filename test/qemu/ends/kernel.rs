//! A kernel that counts what is left when every process of its manifest has ended: accounts, and page frames.
//!
//! The kernel keeps what it uses again: kernel stacks, records and other objects of its heap, and the tables that map
//! those stacks. Everything else is where it was before the first process was made.
#![no_std]
#![no_main]

use abi_report::{Encoder, Exit, Record, Sink};
use core::sync::atomic::{AtomicU64, Ordering};
use kernel_arch::{console, println, stop};
use kernel_mm::stack::{KernelStack, STACK_PAGES};
use kernel_mm::{frames, heap, room};
use kernel_sys::{Machine, fatal, shutdown, start};
use spin::Mutex;

kernel_sys::kernel_main!(main);

/// Processes of the manifest: see `BUILD.bazel`.
const PROCESSES: u64 = 64;
/// Threads of the kernel's own, which are made with the first process.
const WORKERS: u64 = 2;
/// Kernel stacks that one page table maps: each has a slot of 64 pages.
const STACKS_PER_TABLE: u64 = 512 / 64;
/// Page tables that map records, which are in three rooms far apart, and tables above these.
const RECORD_TABLES: u64 = 6;
/// The page that every process reads the time from, made with the first.
const TIME_PAGE: u64 = 1;

/// Frames behind records before the first process.
static RECORDS_BEFORE: AtomicU64 = AtomicU64::new(0);

const IDS: [&str; 3] = ["ends.processes", "ends.accounts", "ends.frames"];

static ENCODER: Mutex<Option<Encoder>> = Mutex::new(None);
static ENDED: AtomicU64 = AtomicU64::new(0);
/// Frames in use outside the heap before the first process.
static BEFORE: AtomicU64 = AtomicU64::new(0);

struct Records;

impl Sink for Records {
    fn write(&mut self, byte: u8) {
        console::send_records(&[byte]);
    }
}

/// Frames in use outside the heap.
fn in_use() -> u64 {
    let counts = frames::counts();
    counts.managed - counts.free - heap::usage().frames
}

fn main(machine: &'static Machine) -> ! {
    let mut encoder = Encoder::new();
    for (index, id) in (0..).zip(IDS) {
        encoder.send(&mut Records, &Record::Plan { index, total: IDS.len() as u32, id });
    }
    *ENCODER.lock() = Some(encoder);
    RECORDS_BEFORE.store(room::frames(), Ordering::Relaxed);
    BEFORE.store(in_use(), Ordering::Relaxed);
    shutdown::watch(ended);
    let _ = start::run(machine);
    panic!("there is no manifest")
}

/// A process has ended, and nothing is left of it. In the reaper.
fn ended(_: &str, _: i64) {
    if ENDED.fetch_add(1, Ordering::Relaxed) + 1 == PROCESSES {
        judge();
    }
}

fn judge() -> ! {
    shutdown::finish_output();
    let _ = stop::claim();
    let _ = stop::stop_others();
    let (closed, not_zero) = shutdown::accounts();
    let stacks = KernelStack::spare_count() + WORKERS;
    let records = room::frames() - RECORDS_BEFORE.load(Ordering::Relaxed);
    let kept = stacks * STACK_PAGES + records + TIME_PAGE;
    let left = in_use() - BEFORE.load(Ordering::Relaxed);
    // Of the tables that map the stacks, the first may have been there.
    let least = kept + stacks.div_ceil(STACKS_PER_TABLE) - 1;
    println!(
        "accounts {closed}, not zero {not_zero}; frames left {left}, for {stacks} stacks and {records} of records {least}"
    );
    let verdicts =
        [closed == PROCESSES, not_zero == 0, (least..=least + RECORD_TABLES).contains(&left)];
    let mut encoder = ENCODER.lock().take().unwrap_or_default();
    let mut failed = 0;
    for (id, is_right) in IDS.into_iter().zip(verdicts) {
        encoder.send(&mut Records, &Record::Run { id });
        if is_right {
            encoder.send(&mut Records, &Record::Ok { id });
        } else {
            failed += 1;
            let (line, file, message) = (line!(), file!(), "see the last line of the console");
            encoder.send(&mut Records, &Record::Fail { id, line, file, message });
        }
    }
    let passed = IDS.len() as u32 - failed;
    encoder.send(&mut Records, &Record::Done { passed, failed, skipped: 0 });
    fatal::leave(if failed == 0 { Exit::Pass } else { Exit::Fail })
}
