//! Where the CPUs of a guest are that does not end: registers, backtraces with names, local APICs.
//!
//! Read from outside, through the emulator's monitor, with the guest stopped: it works whatever the
//! guest is in, and changes nothing in it. Names come from the kernel's file ([`Names`]). A backtrace
//! follows frame pointers, which all kernel code has, through the memory as the CPU sees it; it ends
//! where that does.
//!
//! Decided in ADR 211.

use crate::monitor::Monitor;
use crate::names::Names;
use serde_json::json;
use std::fmt::Write;
use std::path::Path;

/// More frames than any kernel stack has room for are a loop.
const FRAMES_MAX: usize = 64;

/// Bit 9 of RFLAGS: interrupts are taken (Intel SDM volume 1, 3.4.3.3).
const INTERRUPTS: u64 = 1 << 9;

/// What is kept of a guest that does not end.
pub struct Dump {
    /// A paragraph for each CPU: what it does, and in which functions.
    pub summary: String,
    /// All that the emulator says about CPUs and interrupts.
    pub details: String,
}

/// The registers that say where a CPU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    pub rip: u64,
    /// The frame pointer, of a CPU in 64-bit mode.
    pub rbp: Option<u64>,
    pub cr3: u64,
    pub flags: u64,
    /// The privilege level: 0 is the kernel, 3 a program.
    pub level: u64,
    /// Whether the CPU waits for an interrupt.
    pub is_halted: bool,
}

/// Asks a stopped or running emulator for all there is. A question that is refused, or not answered in time,
/// is told in the place of its answer.
pub fn take(monitor: &mut Monitor, names: Option<&Names<'_>>) -> Dump {
    let mut dump = Dump { summary: String::new(), details: String::new() };
    // So that all are seen at one moment.
    let stopped = monitor.execute("stop", &json!({}));
    let cpus = stopped.and_then(|_| monitor.execute("query-cpus-fast", &json!({})));
    let cpus = match cpus {
        Ok(cpus) => cpus.as_array().map_or(0, Vec::len) as u64,
        Err(error) => {
            let _ = writeln!(dump.summary, "the CPUs cannot be seen: {error}");
            return dump;
        }
    };
    for cpu in 0..cpus {
        let registers = section(&mut dump.details, monitor, "info registers", cpu);
        match registers.as_deref().and_then(parse) {
            Some(registers) => paragraph(&mut dump.summary, monitor, names, cpu, registers),
            None => {
                let _ = writeln!(dump.summary, "CPU {cpu}: its registers cannot be read");
            }
        }
        section(&mut dump.details, monitor, "info lapic", cpu);
    }
    for command in ["info irq", "info pic"] {
        section(&mut dump.details, monitor, command, 0);
    }
    dump
}

/// Writes the guest's memory into a file that gdb takes as a core, with the kernel's addresses.
pub fn keep_memory(monitor: &mut Monitor, file: &Path) -> Result<(), String> {
    let protocol = format!("file:{}", file.display());
    let arguments = json!({"paging": true, "protocol": protocol});
    monitor.execute("dump-guest-memory", &arguments).map(drop)
}

/// Adds the answer to a question, and returns it.
fn section(details: &mut String, monitor: &mut Monitor, command: &str, cpu: u64) -> Option<String> {
    let answer = monitor.human(command, cpu);
    let text = answer.as_ref().unwrap_or_else(|error| error).trim();
    let _ = writeln!(details, "--- {command} (CPU {cpu})\n{text}\n");
    answer.ok()
}

fn paragraph(
    summary: &mut String,
    monitor: &mut Monitor,
    names: Option<&Names<'_>>,
    cpu: u64,
    registers: Registers,
) {
    let Registers { rip, rbp, cr3, flags, level, is_halted } = registers;
    let what = match (is_halted, level) {
        (true, _) => "halted",
        (false, 0) => "in the kernel",
        (false, _) => "in a program",
    };
    let interrupts = if flags & INTERRUPTS == 0 { "off" } else { "on" };
    let _ = writeln!(summary, "CPU {cpu}: {what}, interrupts {interrupts}, page tables {cr3:#x}");
    let mut read = |address: u64| words(&monitor.human(&format!("x/2gx {address:#x}"), cpu).ok()?);
    // The kernel's names mean nothing in a program, whose addresses other programs have as well.
    let names = names.filter(|_| level == 0);
    let is_own = |names: &&Names<'_>| read(rip).is_some_and(|code| names.has(rip, code));
    let own = names.filter(is_own);
    if names.is_some() && own.is_none() {
        let _ = writeln!(summary, "  no names: the symbols are not those of the code it is in");
    }
    let name = |address| own.and_then(|names| names.name(address)).unwrap_or("?".into());
    let _ = writeln!(summary, "  {rip:016x} {}", name(rip));
    for address in rbp.map(|rbp| walk(rbp, &mut read)).unwrap_or_default() {
        // A return address is behind the call, which may be its function's last instruction.
        let _ = writeln!(summary, "  {address:016x} {}", name(address.wrapping_sub(1)));
    }
}

/// Return addresses of the frames from `frame` on: each has the next frame's address and, behind it, the
/// address to return to. Stacks grow down, so frames lie at rising addresses.
fn walk(mut frame: u64, read: &mut dyn FnMut(u64) -> Option<[u64; 2]>) -> Vec<u64> {
    let mut addresses = Vec::new();
    while addresses.len() < FRAMES_MAX && frame != 0 && frame.is_multiple_of(8) {
        let Some([next, address]) = read(frame) else { break };
        if address == 0 {
            break;
        }
        addresses.push(address);
        if next <= frame {
            break;
        }
        frame = next;
    }
    addresses
}

/// The two words of an answer to `x/2gx`.
fn words(text: &str) -> Option<[u64; 2]> {
    let mut words = text.trim().rsplit_once(": ")?.1.split_whitespace().map(hexadecimal);
    Some([words.next()??, words.next()??])
}

fn hexadecimal(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

/// Reads an answer to `info registers`.
fn parse(text: &str) -> Option<Registers> {
    let value = |name: &str| {
        let at = |place: usize| text[..place].chars().next_back().is_none_or(char::is_whitespace);
        let (place, _) = text.match_indices(name).find(|(place, _)| at(*place))?;
        let rest = &text[place + name.len()..];
        let digits = rest.split(|c: char| !c.is_ascii_hexdigit()).next()?;
        u64::from_str_radix(digits, 16).ok()
    };
    Some(Registers {
        // Outside of 64-bit mode, as a CPU is that nobody started, the names have an E.
        rip: value("RIP=").or_else(|| value("EIP="))?,
        rbp: value("RBP="),
        cr3: value("CR3=")?,
        flags: value("RFL=").or_else(|| value("EFL="))?,
        level: value("CPL=")?,
        is_halted: value("HLT=")? != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
CPU#1
RAX=ffff80000fd8b218 RBX=ffff80000fd8b040 RCX=0000000000000000 RDX=0000000000000000
RSI=fffffe8000200000 RDI=ffff80000fd8b2c8 RBP=fffffe80001fff20 RSP=fffffe80001fff10
RIP=ffffffff8004ce32 RFL=00000246 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT=1
CR0=80050033 CR2=0000000000000000 CR3=000000000fd9e000 CR4=00340ee0
";

    #[test]
    fn registers_as_the_emulator_writes_them() {
        let expected = Registers {
            rip: 0xffff_ffff_8004_ce32,
            rbp: Some(0xffff_fe80_001f_ff20),
            cr3: 0xfd9_e000,
            flags: 0x246,
            level: 0,
            is_halted: true,
        };
        assert_eq!(parse(TEXT), Some(expected));
        let before = TEXT.replace("RIP=", "EIP=").replace("RBP=", "EBP=").replace("RFL=", "EFL=");
        assert_eq!(parse(&before), Some(Registers { rbp: None, ..expected }));
        assert_eq!(parse(&TEXT.replace("RIP=", "PC=")), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn memory_as_the_emulator_writes_it() {
        let text = "ffffffff80000000: 0x56415741e5894855 0xec81485354415541\n";
        assert_eq!(words(text), Some([0x5641_5741_e589_4855, 0xec81_4853_5441_5541]));
        assert_eq!(words("0000000000001000: Cannot access memory\n"), None);
    }

    /// Frames at these addresses: where they are, the next one, the address to return to.
    fn walked(frames: &[(u64, u64, u64)]) -> Vec<u64> {
        let find = |at: u64| frames.iter().find(|f| f.0 == at).map(|f| [f.1, f.2]);
        walk(frames[0].0, &mut { find })
    }

    #[test]
    fn a_walk_ends_with_the_stack_and_never_goes_back() {
        assert_eq!(walked(&[(0x10, 0x40, 1), (0x40, 0x80, 2), (0x80, 0, 3)]), [1, 2, 3]);
        assert_eq!(walked(&[(0x10, 0x40, 1), (0x40, 0x10, 2)]), [1, 2]);
        assert_eq!(walked(&[(0x10, 0x10, 1)]), [1]);
        // Memory that is not there, a frame pointer that is none, the first frame of a stack.
        assert_eq!(walked(&[(0x10, 0x40, 1)]), [1]);
        assert_eq!(walked(&[(0x10, 0x43, 1), (0x43, 0x80, 2)]), [1]);
        assert_eq!(walked(&[(0x10, 0x40, 1), (0x40, 0x80, 0)]), [1]);
        let mut endless = |at: u64| Some([at + 16, 7]);
        assert_eq!(walk(16, &mut endless).len(), FRAMES_MAX);
    }
}
