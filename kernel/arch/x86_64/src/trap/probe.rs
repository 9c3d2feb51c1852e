//! Faults provoked on purpose, so that tests can see each protection act.
//!
//! A probe arms the CPU's recovery word, does one forbidden thing in a leaf function, and gets
//! the fault back as a value instead of a report. Probes touch only memory of their own or what the
//! caller vouches for; nothing else in the kernel recovers from a fault.
//!
//! Decided in ADR 33.

use super::Fault;
use crate::cpu::{self, NOT_PRESENT, USER_CODE, USER_DATA};
use core::arch::{global_asm, naked_asm};
use core::sync::atomic::{AtomicU8, Ordering};

/// Something a CPU must refuse.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Probe {
    /// Division by zero: #DE.
    Divide,
    /// The one-byte debug trap: #DB.
    Debug,
    /// The breakpoint instruction: #BP.
    Breakpoint,
    /// An instruction that is none: #UD.
    InvalidOpcode,
    /// A data segment that is not present: #NP.
    SegmentNotPresent,
    /// A stack segment that is not present: #SS.
    StackFault,
    /// A data access at a non-canonical address: #GP.
    GeneralProtection,
    /// An x87 division by zero with the exception unmasked: #MF.
    FloatingPoint,
    /// A non-maskable interrupt sent to ourselves by the local APIC.
    Nmi,
    /// A write to the kernel's code: #PF.
    WriteCode,
    /// A write to the kernel's constants: #PF.
    WriteConstant,
    /// A jump into the kernel's data: #PF.
    ExecuteData,
    /// A jump to the stack: #PF.
    ExecuteStack,
}

/// A constant that [`Probe::WriteConstant`] writes to, in read-only memory.
static CONSTANT: [u64; 2] = [0x636f_6e73_7461_6e74; 2];
/// A `ret` in writable memory, with room for the jump to be seen as one into data.
#[unsafe(link_section = ".data.probe")]
static DATA: [AtomicU8; 16] = [const { AtomicU8::new(RET) }; 16];
const RET: u8 = 0xc3;

/// Does the forbidden thing; `Err` is the fault, `Ok` means that the CPU let it pass.
pub fn run(probe: Probe) -> Result<(), Fault> {
    let (function, argument): (extern "C" fn(u64), u64) = match probe {
        Probe::Divide => (leaf::divide, 0),
        Probe::Debug => (leaf::debug, 0),
        Probe::Breakpoint => (leaf::breakpoint, 0),
        Probe::InvalidOpcode => (leaf::invalid_opcode, 0),
        Probe::SegmentNotPresent => (leaf::load_data_segment, NOT_PRESENT.into()),
        Probe::StackFault => (leaf::load_stack_segment, NOT_PRESENT.into()),
        Probe::GeneralProtection => (leaf::read, NON_CANONICAL),
        Probe::FloatingPoint => (leaf::floating_point, 0),
        Probe::Nmi => (send_nmi, 0),
        Probe::WriteCode => (leaf::rewrite, leaf::read as *const () as u64),
        Probe::WriteConstant => (leaf::rewrite, &raw const CONSTANT as u64),
        Probe::ExecuteData => (leaf::execute, &raw const DATA as u64),
        Probe::ExecuteStack => return execute_stack(),
    };
    // SAFETY: these touch only the probe's own memory, or nothing.
    unsafe { guarded(function, argument) }
}

const NON_CANONICAL: u64 = 0x8000_0000_0000_0000;

/// A jump to a `ret` on the stack.
fn execute_stack() -> Result<(), Fault> {
    let code = [RET; 16];
    let code = core::hint::black_box(&code);
    // SAFETY: a `ret` is what is executed, if anything is.
    unsafe { guarded(leaf::execute, code.as_ptr() as u64) }
}

extern "C" fn send_nmi(_: u64) {
    crate::apic::send_nmi(cpu::this().apic_id());
    // It arrives within a few instructions; the loop ends in the fault it provokes.
    for _ in 0..1_000_000 {
        cpu::relax();
    }
}

/// Reads a byte.
///
/// # Safety
/// If the read succeeds it has no effect: the address is memory, or nothing.
pub unsafe fn read(address: u64) -> Result<(), Fault> {
    // SAFETY: by the contract.
    unsafe { guarded(leaf::read, address) }
}

/// Writes a byte.
///
/// # Safety
/// If the write succeeds nobody minds: the address is memory of the caller's.
pub unsafe fn write(address: u64) -> Result<(), Fault> {
    // SAFETY: by the contract.
    unsafe { guarded(leaf::write, address) }
}

/// Reads a byte and writes it back.
///
/// # Safety
/// As for [`read`] and [`write`].
pub unsafe fn rewrite(address: u64) -> Result<(), Fault> {
    // SAFETY: by the contract.
    unsafe { guarded(leaf::rewrite, address) }
}

/// Calls code at an address.
///
/// # Safety
/// If the call succeeds, what is there is a `ret`.
pub unsafe fn execute(address: u64) -> Result<(), Fault> {
    // SAFETY: by the contract.
    unsafe { guarded(leaf::execute, address) }
}

/// Reads a byte in the lower half, where the kernel has nothing mapped, and does not expect to come
/// back: the fault is reported like any other.
pub fn fault_for_good(address: u64) {
    if address >> 47 == 0 {
        leaf::read(address);
    }
}

/// Runs code in user mode until its first fault, with `flags` as its RFLAGS.
///
/// # Safety
/// `entry` and `stack` are user addresses of the page tables in use; the code there faults.
pub unsafe fn run_user(entry: u64, stack: u64, flags: u64) -> Option<Fault> {
    let state =
        UserStart { rip: entry, cs: USER_CODE.into(), flags, rsp: stack, ss: USER_DATA.into() };
    let cpu = cpu::this();
    // SAFETY: the leaf leaves for user mode and comes back only through the fault.
    let fault = unsafe { guarded(leaf::enter_user, &raw const state as u64) }.err();
    cpu.set_user_entry_stack(cpu.stack_top.load(Ordering::Relaxed) - 8);
    fault
}

/// What IRETQ takes from the stack.
#[repr(C)]
struct UserStart {
    rip: u64,
    cs: u64,
    flags: u64,
    rsp: u64,
    ss: u64,
}

/// Calls a leaf function and catches a fault in it.
///
/// # Safety
/// `function` holds nothing that must be dropped, and what it does beside faulting is fine.
unsafe fn guarded(function: extern "C" fn(u64), argument: u64) -> Result<(), Fault> {
    let cpu = cpu::this();
    // SAFETY: the recovery word belongs to this CPU, which stays in this function; interrupts
    // are off in the kernel.
    let faulted = unsafe { probe_call(function, argument, cpu.recovery.as_ptr()) };
    if faulted == 0 {
        return Ok(());
    }
    // SAFETY: written by `recover` on this CPU before it resumed us.
    match unsafe { (*cpu.last_fault.get()).take() } {
        Some(fault) => Err(fault),
        None => Ok(()),
    }
}

unsafe extern "C" {
    fn probe_call(function: extern "C" fn(u64), argument: u64, recovery: *mut u64) -> u64;
    static probe_landing: u8;
}

/// Where a recovered fault resumes, on the stack that `probe_call` recorded.
pub(super) fn landing_address() -> u64 {
    &raw const probe_landing as u64
}

global_asm!(
    ".pushsection .text.probe_call, \"ax\", @progbits",
    ".global probe_call",
    "probe_call:",
    "push rbp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "sub rsp, 8",
    "mov rbx, rdx",
    "mov [rdx], rsp",
    "mov rax, rdi",
    "mov rdi, rsi",
    "call rax",
    "mov qword ptr [rbx], 0",
    "xor eax, eax",
    "jmp 5f",
    ".global probe_landing",
    "probe_landing:",
    "mov eax, 1",
    "5:",
    "add rsp, 8",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "ret",
    ".popsection",
);

/// The leaf functions: no frame, nothing to drop.
mod leaf {
    use super::naked_asm;

    #[unsafe(naked)]
    pub(super) extern "C" fn divide(_: u64) {
        naked_asm!("xor edx, edx", "xor ecx, ecx", "mov eax, 1", "div ecx", "ret")
    }

    #[unsafe(naked)]
    pub(super) extern "C" fn debug(_: u64) {
        // INT1: a trap, so the saved RIP is the instruction after it.
        naked_asm!(".byte 0xf1", "ret")
    }

    #[unsafe(naked)]
    pub(super) extern "C" fn breakpoint(_: u64) {
        naked_asm!("int3", "ret")
    }

    #[unsafe(naked)]
    pub(super) extern "C" fn invalid_opcode(_: u64) {
        naked_asm!("ud2", "ret")
    }

    #[unsafe(naked)]
    pub(super) extern "C" fn load_data_segment(_: u64) {
        naked_asm!("mov es, di", "ret")
    }

    #[unsafe(naked)]
    pub(super) extern "C" fn load_stack_segment(_: u64) {
        naked_asm!("mov ss, di", "ret")
    }

    #[unsafe(naked)]
    pub(super) extern "C" fn floating_point(_: u64) {
        // Control word 0x37b: the division-by-zero exception is not masked.
        naked_asm!(
            "sub rsp, 8",
            "fninit",
            "mov word ptr [rsp], 0x37b",
            "fldcw [rsp]",
            "fld1",
            "fldz",
            "fdivp",
            "fwait",
            "add rsp, 8",
            "ret"
        )
    }

    #[unsafe(naked)]
    pub(super) extern "C" fn read(_: u64) {
        naked_asm!("mov al, [rdi]", "ret")
    }

    #[unsafe(naked)]
    pub(super) extern "C" fn write(_: u64) {
        naked_asm!("mov byte ptr [rdi], 0", "ret")
    }

    /// Writes back what is there, so that code and constants survive a CPU that lets it pass.
    #[unsafe(naked)]
    pub(super) extern "C" fn rewrite(_: u64) {
        naked_asm!("mov al, [rdi]", "mov [rdi], al", "ret")
    }

    #[unsafe(naked)]
    pub(super) extern "C" fn execute(_: u64) {
        naked_asm!("jmp rdi")
    }

    /// Leaves for user mode with the state RDI points to. Exceptions come back on this stack.
    #[unsafe(naked)]
    pub(super) extern "C" fn enter_user(_: u64) {
        naked_asm!(
            "push rbp",
            "mov rbp, rsp",
            "push rdi",
            "sub rsp, 8",
            "lea rdi, [rsp - 72]",
            "call {set_stack}",
            "add rsp, 8",
            "pop rdi",
            "mov rsp, rdi",
            "swapgs",
            "iretq",
            set_stack = sym super::set_user_entry_stack,
        )
    }
}

extern "C" fn set_user_entry_stack(top: u64) {
    cpu::this().set_user_entry_stack(top);
}
