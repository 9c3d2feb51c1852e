//! Programs in memory objects: one that runs, ones that are none, and one that is written while it is loaded.
//!
//! The program is made by hand, byte by byte: it exits with a byte of its data.

use core::sync::atomic::{AtomicBool, Ordering};

use abi_types::{CapSlot, ExceptionKind, Status};
use capos_rt::process::{Child, Command};
use schema::memory_capnp::MemoryAccess;
use schema::process_handle_capnp::ExitReason;
use schema::{frame_allocator, memory_object};
use schema_wire::CallError;
use test_bare::program::work;
use test_bare::raw;
use test_kit::{Outcome, check, check_eq, require_ok, require_some};
use test_wild::at;

use crate::{PROFILE, Run, kind_of};

const PAGE: u64 = 4096;
/// The file: headers and notes, code, data.
const BYTES: u64 = 2 * PAGE + 16;
/// Where it is mapped here.
const FILE: u64 = 0x5200_0000_0000;
/// Where the byte is that it exits with.
const DATA: u64 = 2 * PAGE;

const HEADER: [u8; 24] = [
    0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, // identification
    2, 0, 62, 0, 1, 0, 0, 0, // executable, x86-64, version
];

/// Program headers: type and flags, offset, address, bytes in the file, bytes in memory, alignment.
const SEGMENTS: [[u64; 6]; 4] = [
    [1 | 4 << 32, 0, 0x20_0000, 0x240, 0x240, PAGE],
    [1 | 5 << 32, PAGE, 0x20_1000, 17, 17, PAGE],
    [1 | 6 << 32, DATA, 0x20_3000, 16, 0x3000, PAGE],
    [4 | 4 << 32, 0x200, 0x20_0200, 24, 24, 4],
];

/// The note that says which ABI: bytes of name and number, type, "capOS", 1.
const NOTE: [u8; 24] =
    [6, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, b'c', b'a', b'p', b'O', b'S', 0, 0, 0, 1, 0, 0, 0];

/// `movzx edi, byte [0x203000]; mov eax, exit; syscall; ud2`.
const CODE: [u8; 17] =
    [0x0f, 0xb6, 0x3c, 0x25, 0x00, 0x30, 0x20, 0x00, 0xb8, 1, 0, 0, 0, 0x0f, 0x05, 0x0f, 0x0b];

const fn put(file: &mut [u8; BYTES as usize], at: usize, bytes: &[u8]) {
    let mut number = 0;
    while number < bytes.len() {
        file[at + number] = bytes[number];
        number += 1;
    }
}

const fn image() -> [u8; BYTES as usize] {
    let mut file = [0; BYTES as usize];
    put(&mut file, 0, &HEADER);
    put(&mut file, 24, &0x20_1000_u64.to_le_bytes());
    // The table, no sections, no flags; bytes of the header, of an entry, and how many there are.
    put(&mut file, 32, &64_u64.to_le_bytes());
    put(&mut file, 52, &[64, 0, 56, 0, SEGMENTS.len() as u8, 0]);
    let mut number = 0;
    while number < SEGMENTS.len() {
        let [kind, offset, address, bytes, memory, align] = SEGMENTS[number];
        let words = [kind, offset, address, address, bytes, memory, align];
        let mut word = 0;
        while word < words.len() {
            put(&mut file, 64 + number * 56 + word * 8, &words[word].to_le_bytes());
            word += 1;
        }
        number += 1;
    }
    put(&mut file, 0x200, &NOTE);
    put(&mut file, PAGE as usize, &CODE);
    put(&mut file, DATA as usize, &[42]);
    file
}

/// A sound file.
static IMAGE: [u8; BYTES as usize] = image();

fn word(offset: u64) -> u32 {
    let bytes = IMAGE.get(offset as usize..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// An object with the file, mapped at [`FILE`].
fn make(t: &Run<'_>) -> Result<CapSlot, CallError> {
    let io = t.env.program.io();
    let bytes = BYTES.next_multiple_of(PAGE);
    let made = frame_allocator::Client::new(io.caller(), t.env.frames).create_object(bytes)?;
    let object = CapSlot::new(made.object_index.into(), made.object_generation);
    let mut client = memory_object::Client::new(io.caller(), object);
    client.map(FILE, true, 0, bytes, MemoryAccess::Write)?;
    for offset in (0..BYTES).step_by(4) {
        at::write32(FILE + offset, word(offset));
    }
    Ok(object)
}

/// Unmaps the object and lets go of it.
fn let_go(t: &Run<'_>, object: CapSlot) -> Result<(), CallError> {
    let io = t.env.program.io();
    memory_object::Client::new(io.caller(), object).unmap(FILE, BYTES.next_multiple_of(PAGE))?;
    Ok(io.release(object)?)
}

const COMMAND: Command<'static> =
    Command { profile: PROFILE, ..Command::new("image", "no boot module") };

fn start(t: &Run<'_>, object: CapSlot, bytes: u64) -> Result<Child, CallError> {
    t.env.processes.spawn_image(t.env.program.io(), &COMMAND, object, bytes)
}

/// C8: it runs, twice of one object; what the object becomes later is nothing to it, nor whether it is there.
pub fn runs(t: &mut Run<'_>) -> Outcome {
    // What is kept for a next time, stacks and room in lists, is there after the first.
    run_three(t)?;
    let before = t.env.program.settled_frames();
    run_three(t)?;
    check_eq!(t, t.env.program.settled_frames(), before);
    check_eq!(t, require_some!(t, t.env.machine()).accounts_not_zero, 0);
    Ok(())
}

fn run_three(t: &mut Run<'_>) -> Outcome {
    let io = t.env.program.io();
    let object = require_ok!(t, make(t));
    let first = require_ok!(t, start(t, object, BYTES));
    at::write8(FILE + DATA, 43);
    let second = require_ok!(t, start(t, object, BYTES));
    at::write8(FILE + DATA, 44);
    let third = require_ok!(t, start(t, object, BYTES));
    check!(t, let_go(t, object).is_ok());
    for (child, code) in [(first, 42), (second, 43), (third, 44)] {
        let ended = require_ok!(t, child.wait(io));
        check_eq!(t, (ended.exit_code, ended.reason), (code, ExitReason::Exited));
        check!(t, child.release(io).is_ok());
    }
    Ok(())
}

/// Words of the file, each changed to what no program has, and the sentence it is refused with.
const WRONG: [(u64, u32, &str); 24] = [
    (0, 0x474c_457f, "not an ELF file"),
    (4, 0x0001_0101, "class 1"),
    (4, 0x0001_0202, "data encoding 2"),
    (4, 0x0000_0102, "ELF version 0"),
    (4, 0x0901_0102, "system ABI 9"),
    (16, 2 | 183 << 16, "machine 183"),
    (16, 3 | 62 << 16, "position independent"),
    (16, 1 | 62 << 16, "ELF type 1"),
    (52, 64 | 32 << 16, "program headers of 32 bytes"),
    (56, 65, "65 program headers"),
    (36, u32::MAX, "past the end of the file"),
    (64, 3, "dynamic linker"),
    (64, 2, "dynamic section"),
    (232, 0, "no note says which ABI"),
    (120 + 4, 7, "writable and executable"),
    (120 + 40, 0, "takes no memory"),
    (176 + 40, 1, "larger in the file"),
    (176 + 12, u32::MAX, "past the end of the file"),
    (176 + 16, 0x20_3001, "differ modulo"),
    (24, 0x20_3000, "no executable segment"),
    (176 + 44, 1, "more than 1024 MiB"),
    (120 + 48, 3, "no power of two"),
    (0x200 + 20, 99, "made for ABI 99"),
    (0x200 + 4, 3, "a note of the ABI has 3 bytes"),
];

/// C8: each kind of file that is no program, and of capability that is no file, is refused and leaves nothing.
pub fn wrong(t: &mut Run<'_>) -> Outcome {
    use ExceptionKind::{Failed, InvalidArgument, Overloaded};
    let io = t.env.program.io();
    let before = t.env.program.settled_frames();
    let object = require_ok!(t, make(t));
    for (offset, value, words) in WRONG {
        at::write32(FILE + offset, value);
        match start(t, object, BYTES) {
            Err(CallError::Exception(exception))
                if exception.kind() == Failed && exception.message().contains(words) => {}
            other => return t.fail(format_args!("{offset} is {value:#x} ({words}): {other:?}")),
        }
        at::write32(FILE + offset, word(offset));
    }
    for (bytes, kind) in [
        (0, Failed),
        (63, Failed),
        (PAGE, Failed),
        (BYTES - 1, Failed),
        (3 * PAGE + 1, InvalidArgument),
        (u64::MAX, InvalidArgument),
    ] {
        check_eq!(t, (bytes, kind_of(&start(t, object, bytes))), (bytes, Some(kind)));
    }
    check_eq!(t, kind_of(&start(t, t.env.timer, BYTES)), Some(InvalidArgument));
    let unnamed = start(t, CapSlot::new(400, 1), BYTES);
    check!(t, matches!(unnamed, Err(CallError::Status(Status::Disconnected))), "{unnamed:?}");
    let small = crate::ResourceProfile { frames: 16, ..PROFILE };
    let command = Command { profile: small, ..COMMAND };
    let refused = t.env.processes.spawn_image(io, &command, object, BYTES);
    check_eq!(t, kind_of(&refused), Some(Overloaded));
    // Through all of this the file was the same.
    let child = require_ok!(t, start(t, object, BYTES));
    check_eq!(t, require_ok!(t, child.wait(io)).exit_code, 42);
    check!(t, child.release(io).is_ok() && let_go(t, object).is_ok());
    check_eq!(t, t.env.program.settled_frames(), before);
    check_eq!(t, require_some!(t, t.env.machine()).accounts_not_zero, 0);
    Ok(())
}

/// Words that are written while the file is read: entry, table, counts, sizes, places, access, notes, code.
const CHANGING: [u64; 16] =
    [16, 24, 32, 52, 56, 68, 120, 124, 128, 136, 176, 192, 208, 216, 0x204, PAGE];

static STOP: AtomicBool = AtomicBool::new(false);
static HAS_STOPPED: AtomicBool = AtomicBool::new(false);

/// Writes numbers over the words of the file, and back, until it is told to stop.
fn scribble(_: &raw::Child) -> i64 {
    let mut number = 0x9e37_79b9_7f4a_7c15_u64;
    while !STOP.load(Ordering::Acquire) {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let offset = CHANGING[(number >> 40) as usize % CHANGING.len()];
        let value = match number >> 62 {
            0 => (number >> 20) as u32,
            1 => word(offset) ^ 1 << (number >> 50 & 31),
            2 => u32::MAX,
            _ => 7,
        };
        at::write32(FILE + offset, value);
        work((number >> 54) as u32 & 0x3f);
        at::write32(FILE + offset, word(offset));
    }
    HAS_STOPPED.store(true, Ordering::Release);
    0
}

/// C8: a file that is written while it is loaded gives some child or a refusal; the kernel's rules hold, and nothing stays.
pub fn changes(t: &mut Run<'_>) -> Outcome {
    let io = t.env.program.io();
    // A thread's stack and ring are kept for the next one.
    STOP.store(true, Ordering::Release);
    let idle = require_ok!(t, t.env.program.spawn(0, scribble, 0));
    check_eq!(t, require_ok!(t, t.env.program.finish(idle)), 0);
    let object = require_ok!(t, make(t));
    let before = t.env.program.settled_frames();
    STOP.store(false, Ordering::Release);
    let writer = require_ok!(t, t.env.program.spawn(0, scribble, 0));
    let (mut children, mut refusals) = (0, 0);
    for _ in 0..150 {
        match start(t, object, BYTES) {
            Ok(child) => {
                children += 1;
                // It may exit, fault or compute for good, as its bytes say.
                check!(t, child.kill(io, 1).is_ok());
                check!(t, child.wait(io).is_ok() && child.release(io).is_ok());
            }
            Err(CallError::Exception(exception)) => {
                refusals += 1;
                let kinds = [ExceptionKind::Failed, ExceptionKind::Overloaded];
                check!(t, kinds.contains(&exception.kind()), "{exception:?}");
            }
            Err(other) => return t.fail(format_args!("{other:?}")),
        }
    }
    STOP.store(true, Ordering::Release);
    check_eq!(t, require_ok!(t, t.env.program.finish(writer)), 0);
    check!(t, HAS_STOPPED.load(Ordering::Acquire));
    t.metric("children of a file that changes", children, "");
    t.metric("refusals of a file that changes", refusals, "");
    check_eq!(t, t.env.program.settled_frames(), before);
    let child = require_ok!(t, start(t, object, BYTES));
    check_eq!(t, require_ok!(t, child.wait(io)).exit_code, 42);
    check!(t, child.release(io).is_ok() && let_go(t, object).is_ok());
    check_eq!(t, require_some!(t, t.env.machine()).accounts_not_zero, 0);
    Ok(())
}
