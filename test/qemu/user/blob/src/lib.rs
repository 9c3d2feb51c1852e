//! User programs in assembly, small enough to say what every register holds.
//!
//! The code is position-independent and lies in the kernel's constants; a test copies it into an
//! address space. Each program gets a page of its own in RDI, laid out as [`page`] says, and ends
//! with `exit` or a fault.
#![no_std]

use core::arch::global_asm;

/// Offsets in a program's page, in bytes.
pub mod page {
    /// [`Program::Registers`](super::Program::Registers): RAX, RBX, RCX, RDX, RSI, RDI, RBP, RSP, R8 to R15, RFLAGS.
    pub const REGISTERS: u64 = 0x100;
    /// Then MXCSR and the x87 control word, a word each, and XMM0 and XMM15 OR'ed together.
    pub const FLOATING: u64 = 0x200;
    /// How often a loop went round.
    pub const ROUNDS: u64 = 0x00;
    /// How often something was not as it should be.
    pub const WRONG: u64 = 0x08;
    /// Set to end a loop.
    pub const STOP: u64 = 0x10;
    /// What a loop fills the registers with.
    pub const SEED: u64 = 0x18;
    /// Whether the CPU has AVX.
    pub const AVX: u64 = 0x20;
    /// What a loop expects at FS:0.
    pub const FS_WORD: u64 = 0x28;
    /// Results, a word each.
    pub const RESULTS: u64 = 0x40;
    /// Where a loop keeps the pattern it loads into vector registers.
    pub const PATTERN: u64 = 0x300;
}

macro_rules! programs {
    ($($(#[$doc:meta])* $name:ident = $symbol:ident,)*) => {
        unsafe extern "C" {
            static user_blob_start: u8;
            static user_blob_end: u8;
            $(static $symbol: u8;)*
        }

        /// A program.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Program {
            $($(#[$doc])* $name,)*
        }

        impl Program {
            /// Where it begins in [`code`].
            pub fn offset(self) -> u64 {
                let at = match self {
                    $(Program::$name => &raw const $symbol,)*
                };
                at as u64 - &raw const user_blob_start as u64
            }
        }
    };
}

programs! {
    /// Stores every register as found, then exits with 7.
    Registers = user_registers,
    /// Syscalls with various numbers and arguments, registers checked; exits with 8.
    Syscalls = user_syscalls,
    /// Fills all registers, and checks them and FS:0 round after round until stopped; exits with 9.
    Spin = user_spin,
    /// Reads the counter around 1000 syscalls; exits with 10.
    NullEntry = user_null_entry,
    /// Sets direction, nested task, alignment check and ID, and makes a syscall; exits with 11.
    Flags = user_flags,
    /// Spins with direction and alignment check set; never ends.
    FlagsSpin = user_flags_spin,
    /// Sets the trap flag and makes a syscall: #DB.
    SingleStep = user_single_step,
    /// Tries to raise its I/O privilege, then turns interrupts off: #GP.
    Privilege = user_privilege,
    /// Reads an address where nothing is: #PF.
    ReadNothing = user_read_nothing,
    /// Writes its own code: #PF.
    WriteCode = user_write_code,
    /// Jumps into its page: #PF.
    ExecuteData = user_execute_data,
    /// Reads the kernel: #PF.
    ReadKernel = user_read_kernel,
    /// An instruction that is none: #UD.
    Invalid = user_invalid,
    /// Divides by zero: #DE.
    Divide = user_divide,
    /// A breakpoint, which no user may raise: #GP.
    Breakpoint = user_breakpoint,
    /// The timer's vector as an instruction: #GP.
    FakeTimer = user_fake_timer,
    /// Jumps to an address that is not canonical: #GP.
    JumpAway = user_jump_away,
    /// SYSENTER: #GP or #UD.
    Sysenter = user_sysenter,
    /// A syscall at the very end of the lower half, for which RDI has the address.
    JumpToArgument = user_jump_to_argument,
    /// Makes one syscall with a stack pointer that leads nowhere; exits with 12.
    NoStack = user_no_stack,
    /// Loads selectors into the data segment registers; exits with 13.
    Segments = user_segments,
    /// Makes a syscall with [`TAINT`] in every register that carries no argument; exits with 14 if all are
    /// as before.
    Tainted = user_tainted,
}

/// First argument of the syscall after which [`Program::Syscalls`] checks all registers.
pub const CLOBBER_ARGUMENT: u64 = 0x1111_1111_1111_1113;

/// What [`Program::Tainted`] has in its registers, with a number of its own added in each.
pub const TAINT: u64 = 0x7a17_0000_0000_0000;

/// First argument of its syscall.
pub const TAINT_ARGUMENT: u64 = 0x7a;

/// Registers that [`registers`] looks at.
pub const REGISTERS: usize = 14;

/// What the registers hold that the kernel's entry code does not need, as far as the function that asks has
/// not used them yet.
#[inline(always)]
pub fn registers() -> [u64; REGISTERS] {
    let mut found = [0; REGISTERS];
    // SAFETY: writes the array alone.
    unsafe {
        core::arch::asm!(
            "mov [rax], rbx",
            "mov [rax + 8], rbp",
            "mov [rax + 16], rcx",
            "mov [rax + 24], rdx",
            "mov [rax + 32], rsi",
            "mov [rax + 40], rdi",
            "mov [rax + 48], r8",
            "mov [rax + 56], r9",
            "mov [rax + 64], r10",
            "mov [rax + 72], r11",
            "mov [rax + 80], r12",
            "mov [rax + 88], r13",
            "mov [rax + 96], r14",
            "mov [rax + 104], r15",
            in("rax") found.as_mut_ptr(),
            options(nostack, preserves_flags),
        );
    }
    found
}

/// `syscall`, to be put at the end of a page.
pub const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// Overwrites every register that a function may change: what of them user code sees afterwards was
/// saved and restored.
pub fn clobber() {
    // SAFETY: only registers that are named as changed are.
    unsafe {
        core::arch::asm!(
            "mov rax, -1",
            "mov rcx, rax",
            "mov rdx, rax",
            "mov rsi, rax",
            "mov rdi, rax",
            "mov r8, rax",
            "mov r9, rax",
            "mov r10, rax",
            "mov r11, rax",
            out("rax") _, out("rcx") _, out("rdx") _, out("rsi") _, out("rdi") _,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
            options(nomem, nostack),
        );
    }
}

/// The code of all programs.
pub fn code() -> &'static [u8] {
    let (start, end) = (&raw const user_blob_start, &raw const user_blob_end);
    // SAFETY: both symbols bound one block of constants, in this order.
    unsafe { core::slice::from_raw_parts(start, end as usize - start as usize) }
}

global_asm!(
    ".pushsection .rodata.user_blob, \"a\", @progbits",
    ".p2align 4",
    ".global user_blob_start",
    "user_blob_start:",
    // exit(code)
    ".macro user_exit code",
    "mov edi, \\code",
    "mov eax, 1",
    "syscall",
    "ud2",
    ".endm",
    //
    ".global user_registers",
    "user_registers:",
    "mov [rdi + 0x100], rax",
    "mov [rdi + 0x108], rbx",
    "mov [rdi + 0x110], rcx",
    "mov [rdi + 0x118], rdx",
    "mov [rdi + 0x120], rsi",
    "mov [rdi + 0x128], rdi",
    "mov [rdi + 0x130], rbp",
    "mov [rdi + 0x138], rsp",
    "mov [rdi + 0x140], r8",
    "mov [rdi + 0x148], r9",
    "mov [rdi + 0x150], r10",
    "mov [rdi + 0x158], r11",
    "mov [rdi + 0x160], r12",
    "mov [rdi + 0x168], r13",
    "mov [rdi + 0x170], r14",
    "mov [rdi + 0x178], r15",
    "pushfq",
    "pop rax",
    "mov [rdi + 0x180], rax",
    "stmxcsr [rdi + 0x200]",
    "fnstcw [rdi + 0x208]",
    "orps xmm0, xmm15",
    "orps xmm0, xmm1",
    "movups [rdi + 0x210], xmm0",
    "user_exit 7",
    //
    ".global user_syscalls",
    "user_syscalls:",
    "mov r12, rdi",
    "xor eax, eax",
    "mov edi, 3",
    "mov esi, 4",
    "syscall",
    "mov [r12 + 0x40], rax",
    "xor eax, eax",
    "mov rdi, -1",
    "mov rsi, -2",
    "syscall",
    "mov [r12 + 0x48], rax",
    "mov eax, 2",
    "syscall",
    "mov [r12 + 0x50], rax",
    "mov rax, -1",
    "syscall",
    "mov [r12 + 0x58], rax",
    "mov rax, 0x100000000",
    "syscall",
    "mov [r12 + 0x60], rax",
    // Everything but RAX, RCX and R11 is kept. RDI asks the kernel to overwrite what it may.
    "mov rax, 0x1111111111111111",
    "mov rbx, rax",
    "lea rdx, [rbx + 1]",
    "lea rdi, [rbx + 2]",
    "lea rsi, [rbx + 3]",
    "lea rbp, [rbx + 4]",
    "lea r8, [rbx + 5]",
    "lea r9, [rbx + 6]",
    "lea r10, [rbx + 7]",
    "lea r13, [rbx + 8]",
    "lea r14, [rbx + 9]",
    "lea r15, [rbx + 10]",
    "movq xmm7, r15",
    "mov [r12 + 0x68], rsp",
    "xor eax, eax",
    "syscall",
    ".global user_kept_return",
    "user_kept_return:",
    "mov [r12 + 0x70], rcx",
    "lea rax, [rip + user_kept_return]",
    "mov [r12 + 0x78], rax",
    "mov rax, 0x1111111111111111",
    ".macro expect register, difference",
    "lea rcx, [rax + \\difference]",
    "cmp rcx, \\register",
    "je 1f",
    "inc qword ptr [r12 + 8]",
    "1:",
    ".endm",
    "expect rbx, 0",
    "expect rdx, 1",
    "expect rdi, 2",
    "expect rsi, 3",
    "expect rbp, 4",
    "expect r8, 5",
    "expect r9, 6",
    "expect r10, 7",
    "expect r13, 8",
    "expect r14, 9",
    "expect r15, 10",
    "movq r15, xmm7",
    "expect r15, 10",
    "cmp [r12 + 0x68], rsp",
    "je 2f",
    "inc qword ptr [r12 + 8]",
    "2:",
    "user_exit 8",
    //
    ".global user_spin",
    "user_spin:",
    "mov rax, [rdi + 0x18]",
    "mov [rdi + 0x300], rax",
    "mov [rdi + 0x308], rax",
    "not rax",
    "mov [rdi + 0x310], rax",
    "mov [rdi + 0x318], rax",
    "movups xmm0, [rdi + 0x300]",
    "movups xmm15, [rdi + 0x310]",
    "cmp qword ptr [rdi + 0x20], 0",
    "je 3f",
    "vmovups ymm7, [rdi + 0x300]",
    "3:",
    "mov r12, rdi",
    "mov rax, [r12 + 0x18]",
    "lea rbx, [rax + 1]",
    "lea rcx, [rax + 2]",
    "lea rdx, [rax + 3]",
    "lea rsi, [rax + 4]",
    "lea rdi, [rax + 5]",
    "lea rbp, [rax + 6]",
    "lea r8, [rax + 7]",
    "lea r9, [rax + 8]",
    "lea r10, [rax + 9]",
    "lea r11, [rax + 10]",
    "lea r13, [rax + 11]",
    "lea r14, [rax + 12]",
    "4:",
    ".macro same register, difference",
    "lea r15, [rax + \\difference]",
    "cmp r15, \\register",
    "je 5f",
    "inc qword ptr [r12 + 8]",
    "5:",
    ".endm",
    "cmp rax, [r12 + 0x18]",
    "je 6f",
    "inc qword ptr [r12 + 8]",
    "6:",
    "same rbx, 1",
    "same rcx, 2",
    "same rdx, 3",
    "same rsi, 4",
    "same rdi, 5",
    "same rbp, 6",
    "same r8, 7",
    "same r9, 8",
    "same r10, 9",
    "same r11, 10",
    "same r13, 11",
    "same r14, 12",
    "movq r15, xmm0",
    "cmp r15, rax",
    "je 7f",
    "inc qword ptr [r12 + 8]",
    "7:",
    "movq r15, xmm15",
    "not r15",
    "cmp r15, rax",
    "je 8f",
    "inc qword ptr [r12 + 8]",
    "8:",
    "cmp qword ptr [r12 + 0x20], 0",
    "je 9f",
    "vmovups [r12 + 0x320], ymm7",
    "mov r15, [r12 + 0x338]",
    "cmp r15, [r12 + 0x318]",
    "je 9f",
    "inc qword ptr [r12 + 8]",
    "9:",
    "mov r15, fs:[0]",
    "cmp r15, [r12 + 0x28]",
    "je 20f",
    "inc qword ptr [r12 + 8]",
    "20:",
    "inc qword ptr [r12]",
    "cmp qword ptr [r12 + 0x10], 0",
    "je 4b",
    "user_exit 9",
    //
    ".global user_null_entry",
    "user_null_entry:",
    "mov r12, rdi",
    // Once before, so that everything is in place.
    "xor eax, eax",
    "syscall",
    "mov r13d, 1000",
    "lfence",
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "mov r14, rax",
    "21:",
    "xor eax, eax",
    "syscall",
    "dec r13d",
    "jnz 21b",
    "lfence",
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "sub rax, r14",
    "mov [r12 + 0x40], rax",
    "user_exit 10",
    //
    ".global user_flags",
    "user_flags:",
    "mov r12, rdi",
    "pushfq",
    // DF, NT, AC, ID.
    "or qword ptr [rsp], 0x244400",
    "popfq",
    "xor eax, eax",
    "mov edi, 0x5a",
    "syscall",
    "pushfq",
    "pop rax",
    "mov [r12 + 0x40], rax",
    "push 2",
    "popfq",
    "user_exit 11",
    //
    ".global user_flags_spin",
    "user_flags_spin:",
    "push 0x40602",
    "popfq",
    "22:",
    "inc qword ptr [rdi]",
    "jmp 22b",
    //
    ".global user_single_step",
    "user_single_step:",
    "pushfq",
    "or qword ptr [rsp], 0x100",
    "xor eax, eax",
    "popfq",
    "syscall",
    "nop",
    "nop",
    "ud2",
    //
    ".global user_privilege",
    "user_privilege:",
    "pushfq",
    "or qword ptr [rsp], 0x3000",
    "popfq",
    "cli",
    "ud2",
    //
    ".global user_read_nothing",
    "user_read_nothing:",
    "mov eax, 0x7654321",
    "mov rax, [rax]",
    "ud2",
    //
    ".global user_write_code",
    "user_write_code:",
    "lea rax, [rip]",
    "mov byte ptr [rax], 0",
    "ud2",
    //
    ".global user_execute_data",
    "user_execute_data:",
    "jmp rdi",
    //
    ".global user_read_kernel",
    "user_read_kernel:",
    "mov rax, 0xffffffff80000000",
    "mov rax, [rax]",
    "ud2",
    //
    ".global user_invalid",
    "user_invalid:",
    "ud2",
    //
    ".global user_divide",
    "user_divide:",
    "xor ecx, ecx",
    "xor edx, edx",
    "div ecx",
    "ud2",
    //
    ".global user_breakpoint",
    "user_breakpoint:",
    "int3",
    "ud2",
    //
    ".global user_fake_timer",
    "user_fake_timer:",
    "int 48",
    "ud2",
    //
    ".global user_jump_away",
    "user_jump_away:",
    "mov rax, 0x800000000000",
    "jmp rax",
    //
    ".global user_sysenter",
    "user_sysenter:",
    "sysenter",
    "ud2",
    //
    ".global user_jump_to_argument",
    "user_jump_to_argument:",
    "xor eax, eax",
    "jmp rdi",
    //
    ".global user_no_stack",
    "user_no_stack:",
    "mov rsp, 0xffffffff80000000",
    "xor eax, eax",
    "syscall",
    "mov rsp, -8",
    "user_exit 12",
    //
    ".global user_tainted",
    "user_tainted:",
    "mov rax, 0x7a17000000000000",
    "lea rbx, [rax + 1]",
    "lea rbp, [rax + 2]",
    "lea rdx, [rax + 3]",
    "lea r8, [rax + 4]",
    "lea r9, [rax + 5]",
    "lea r10, [rax + 6]",
    "lea r12, [rax + 7]",
    "lea r13, [rax + 8]",
    "lea r14, [rax + 9]",
    "lea r15, [rax + 10]",
    "mov edi, 0x7a",
    "xor esi, esi",
    "xor eax, eax",
    "syscall",
    "mov rax, 0x7a17000000000000",
    "lea rcx, [rax + 1]",
    "cmp rcx, rbx",
    "jne 33f",
    "lea rcx, [rax + 2]",
    "cmp rcx, rbp",
    "jne 33f",
    "lea rcx, [rax + 3]",
    "cmp rcx, rdx",
    "jne 33f",
    "lea rcx, [rax + 4]",
    "cmp rcx, r8",
    "jne 33f",
    "lea rcx, [rax + 5]",
    "cmp rcx, r9",
    "jne 33f",
    "lea rcx, [rax + 6]",
    "cmp rcx, r10",
    "jne 33f",
    "lea rcx, [rax + 7]",
    "cmp rcx, r12",
    "jne 33f",
    "lea rcx, [rax + 8]",
    "cmp rcx, r13",
    "jne 33f",
    "lea rcx, [rax + 9]",
    "cmp rcx, r14",
    "jne 33f",
    "lea rcx, [rax + 10]",
    "cmp rcx, r15",
    "jne 33f",
    "user_exit 14",
    "33:",
    "ud2",
    //
    ".global user_segments",
    "user_segments:",
    "mov eax, 0x1b",
    "mov ds, eax",
    "mov es, eax",
    "mov fs, eax",
    "mov gs, eax",
    "xor eax, eax",
    "syscall",
    "user_exit 13",
    ".global user_blob_end",
    "user_blob_end:",
    ".popsection",
);
