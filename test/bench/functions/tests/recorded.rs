//! A recorded log, cut into operations and looked up.

use bench_functions::log::{self, Instruction, Visitor};
use bench_functions::program::Program;
use bench_functions::rounds::{Executed, Rounds};
use bench_functions::{inlined, table};
use std::collections::BTreeMap;

/// Blocks as they come.
#[derive(Default)]
struct Seen {
    translated: Vec<(u64, Vec<Instruction>)>,
    executed: Vec<u64>,
}

impl Visitor for Seen {
    fn translated(&mut self, key: u64, block: &[Instruction]) {
        self.translated.push((key, block.to_vec()));
    }

    fn executed(&mut self, key: u64) {
        self.executed.push(key);
    }
}

/// A loop of the client (enter, then one more block), what the kernel does, and another program's
/// block at the client's addresses.
const LOG: &str = "\
----------------
IN: 
0x00201000:  48 b9 00 00 00 00 00 00  movabsq  $0x8000000000000000, %rcx
0x00201008:  00 80
0x0020100a:  0f 05                    syscall  

Trace 0: 0x7f0000000100 [00000000/0000000000201000/18c0c2b3/ff022200] 
----------------
IN: entry
0xffffffff80000000:  0f 01 f8                 swapgs   
0xffffffff80000003:  cc                       int3     

Trace 0: 0x7f0000000200 [00000000/ffffffff80000000/18c0c2b0/ff022200] 
----------------
IN: 
0x00201000:  90                       nop      

Trace 0: 0x7f0000000300 [00000000/0000000000201000/18c0c2b3/ff022200] 
Trace 0: 0x7f0000000200 [00000000/ffffffff80000000/18c0c2b0/ff022200] 
Trace 0: 0x7f0000000100 [00000000/0000000000201000/18c0c2b3/ff022200] 
Trace 0: 0x7f0000000200 [00000000/ffffffff80000000/18c0c2b0/ff022200] 
Trace 0: 0x7f0000000100 [00000000/0000000000201000/18c0c2b3/ff022200] 
";

#[test]
fn blocks_are_translated_once_and_executed_often() {
    let mut seen = Seen::default();
    log::read(LOG.as_bytes(), &mut seen).unwrap();
    assert_eq!(seen.translated.len(), 3);
    let (_, first) = &seen.translated[0];
    assert_eq!(first.len(), 2, "a line without a mnemonic goes on with the one before");
    assert_eq!(first[0].bytes, [0x48, 0xb9, 0, 0, 0, 0, 0, 0, 0, 0x80]);
    assert_eq!((first[1].address, first[1].bytes.as_slice()), (0x20_100a, &[0x0f, 0x05][..]));
    assert_eq!(seen.executed.len(), 7);
}

/// An ELF file with one segment and one symbol at its start.
fn elf(address: u64, code: &[u8], symbol: &str) -> Vec<u8> {
    let mut out = vec![0x7f, b'E', b'L', b'F', 2, 1, 1];
    out.resize(16, 0);
    let strings = format!("\0{symbol}\0");
    let code_at = 64 + 56;
    let symbols_at = code_at + code.len();
    let strings_at = symbols_at + 48;
    let sections_at = strings_at + strings.len();
    out.extend([2u16, 62].iter().flat_map(|v| v.to_le_bytes()));
    out.extend(1u32.to_le_bytes());
    out.extend([address, 64, sections_at as u64].iter().flat_map(|v| v.to_le_bytes()));
    out.extend(0u32.to_le_bytes());
    out.extend([64u16, 56, 1, 64, 3, 2].iter().flat_map(|v| v.to_le_bytes()));
    out.extend([1u32, 5].iter().flat_map(|v| v.to_le_bytes()));
    let length = code.len() as u64;
    let load = [code_at as u64, address, address, length, length, 1];
    out.extend(load.iter().flat_map(|v| v.to_le_bytes()));
    out.extend(code);
    out.extend([0; 24]);
    out.extend(1u32.to_le_bytes());
    out.extend([2, 0, 1, 0]);
    out.extend([address, length].iter().flat_map(|v| v.to_le_bytes()));
    out.extend(strings.as_bytes());
    let section = |kind: u32, at: usize, size: usize, link: u32, entry: u64| {
        let mut out = Vec::new();
        out.extend([0, kind].iter().flat_map(|v: &u32| v.to_le_bytes()));
        out.extend([0, 0, at as u64, size as u64].iter().flat_map(|v: &u64| v.to_le_bytes()));
        out.extend([link, 1].iter().flat_map(|v| v.to_le_bytes()));
        out.extend([8, entry].iter().flat_map(|v: &u64| v.to_le_bytes()));
        out
    };
    out.extend(section(0, 0, 0, 0, 0));
    out.extend(section(2, symbols_at, 48, 2, 24));
    out.extend(section(3, strings_at, strings.len(), 0, 0));
    out
}

fn programs() -> Vec<Program> {
    let client = [0x48, 0xb9, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x0f, 0x05];
    let read = |name: &str, file: Vec<u8>| Program::read(name, &file).unwrap();
    vec![
        read("kernel", elf(0xffff_ffff_8000_0000, &[0x0f, 0x01, 0xf8, 0xcc], "entry")),
        read("client", elf(0x20_1000, &client, "client::measure")),
        read("echo", elf(0x20_1000, &[0x90], "echo::main")),
    ]
}

/// Instructions by program, in the order of [`programs`].
fn by_program(executed: &[Executed]) -> [u64; 4] {
    let mut sums = [0; 4];
    for entry in executed {
        sums[entry.program.unwrap_or(3)] += entry.count;
    }
    sums
}

#[test]
fn the_middle_operation_is_counted_by_instruction() {
    let programs = programs();
    let mut rounds = Rounds::new(&programs, "client", "measure");
    log::read(LOG.as_bytes(), &mut rounds).unwrap();
    // Two operations: kernel, echo, kernel, client (7) and kernel, client (4).
    let middle = rounds.middle().unwrap();
    assert_eq!(by_program(&middle), [4, 2, 1, 0]);
    let twice = Executed { program: Some(0), address: 0xffff_ffff_8000_0003, count: 2 };
    assert!(middle.contains(&twice), "{middle:?}");
}

#[test]
fn a_key_that_is_translated_again_is_another_block() {
    let programs = programs();
    let again = "IN: \n0x00201000:  90  nop\n\nTrace 0: 0x7f0000000200 [0/0/0/0]\n";
    let enter = "Trace 0: 0x7f0000000100 [0/0/0/0]\n";
    let mut rounds = Rounds::new(&programs, "client", "measure");
    log::read(format!("{LOG}{again}{enter}{again}{enter}").as_bytes(), &mut rounds).unwrap();
    // Of 7, 4, 3 and 3 the third.
    assert_eq!(by_program(&rounds.middle().unwrap()), [2, 2, 0, 0]);
}

#[test]
fn another_function_has_no_operations() {
    let programs = programs();
    let mut rounds = Rounds::new(&programs, "client", "elsewhere");
    log::read(LOG.as_bytes(), &mut rounds).unwrap();
    assert_eq!(rounds.middle(), None);
    let mut other = Rounds::new(&programs, "echo", "measure");
    log::read(LOG.as_bytes(), &mut other).unwrap();
    assert_eq!(other.middle(), None);
}

#[test]
fn code_of_no_program_is_told_apart() {
    let programs = programs();
    let log = LOG.replace("90                       nop", "91                       xchg");
    let mut rounds = Rounds::new(&programs, "client", "measure");
    log::read(log.as_bytes(), &mut rounds).unwrap();
    assert_eq!(by_program(&rounds.middle().unwrap()), [4, 2, 0, 1]);
}

#[test]
fn an_instruction_is_of_the_innermost_function_of_ours() {
    let output = "\
0xffffffff80010c00
core::sync::atomic::atomic_load::<u32>
/rust/library/core/src/sync/atomic.rs:3904
<spin::Mutex<u8>>::lock
external/crates/vendor/spin/src/lib.rs:7
<abi_ring::kernel::KernelRing<kernel_mm::space::pinned::PinnedRing>>::count
abi/ring/src/kernel.rs:177
kernel_sys::enter::cap_enter
kernel/sys/src/enter.rs:32
0xffffffff80010c04
syscall_entry
??:0
";
    let owners = inlined::read(output);
    let owner = owners.get(&0xffff_ffff_8001_0c00).unwrap();
    assert_eq!(owner.function, "abi_ring::kernel::KernelRing::count");
    assert_eq!(owner.file, "abi/ring/src/kernel.rs");
    assert_eq!(owners.get(&0xffff_ffff_8001_0c04), None);
}

#[test]
fn names_are_without_arguments() {
    for (long, short) in [
        ("kernel_sys::enter::cap_enter", "kernel_sys::enter::cap_enter"),
        ("<a::B<C>>::d::<E>", "a::B::d"),
        ("<a::B<C> as x::Y<Z>>::d::{closure#0}", "a::B::d::{closure#0}"),
        ("a::f::<fn(u8) -> u8>::{closure#1}", "a::f::{closure#1}"),
        ("client::ring::nop<8>", "client::ring::nop"),
        ("<broken", "<broken"),
    ] {
        assert_eq!(inlined::short(long), short);
    }
}

#[test]
fn the_table_is_sorted_and_sums_up() {
    let row = |program: &str, function: &str, count| ((program.into(), function.into()), count);
    let counts: BTreeMap<(String, String), u64> = [
        row("client", "a", 5),
        row("kernel", "b", 10),
        row("kernel", "c", 90),
        row("kernel", "d", 3),
        row("kernel", "e", 1),
    ]
    .into();
    assert_eq!(
        table::table("x", &counts),
        "| x | instructions |\n|---|---|\n| **kernel** | **104** |\n| `c` | 90 |\n| `b` | 10 |\n\
         | 2 others | 4 |\n| **client** | **5** |\n| `a` | 5 |\n| **sum** | **109** |\n"
    );
}
