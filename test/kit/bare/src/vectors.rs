//! Vector registers that hold a pattern for a while.

use core::arch::asm;
use core::arch::x86_64::__cpuid_count;

/// Whether programs may use AVX: the CPU has it and the kernel keeps its registers.
pub fn has_avx() -> bool {
    const OSXSAVE_AND_AVX: u32 = 1 << 27 | 1 << 28;
    __cpuid_count(1, 0).ecx & OSXSAVE_AND_AVX == OSXSAVE_AND_AVX
}

/// What the assembly reads and writes beside the registers' values.
#[repr(C)]
struct Control {
    mxcsr: u32,
    mxcsr_after: u32,
    mxcsr_usual: u32,
    avx: u32,
    fcw: u16,
    fcw_after: u16,
    pad: u32,
    /// What the entries are made with.
    min_complete: u64,
    timeout_ns: u64,
}

#[repr(C, align(32))]
struct Block([u64; 64]);

/// Holds a pattern in all XMM registers (with `avx`, YMM) and the x87 and SSE control words while
/// `spins` turns of a loop pass, `yields` of them with an entry into the kernel after each; how
/// many words are wrong at the end.
pub fn hold(seed: u64, spins: u64, yields: u64, avx: bool) -> u32 {
    hold_while(seed, Turns { spins, entries: yields, min_complete: 0, timeout_ns: 0 }, avx)
}

/// Holds the pattern through one entry that dispatches the ring and waits for a completion: whatever
/// runs on the CPU meanwhile has the registers; how many words are wrong afterwards.
pub fn hold_in_a_wait(seed: u64, avx: bool) -> u32 {
    let turns = Turns { spins: 1, entries: 2, min_complete: 1, timeout_ns: abi_types::NEVER };
    hold_while(seed, turns, avx)
}

/// What happens while the registers hold a pattern.
struct Turns {
    spins: u64,
    /// One more than the turns, counted from the end, that enter.
    entries: u64,
    min_complete: u64,
    timeout_ns: u64,
}

fn hold_while(seed: u64, turns: Turns, avx: bool) -> u32 {
    let Turns { spins, entries, min_complete, timeout_ns } = turns;
    let pattern =
        Block(core::array::from_fn(|word| seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ word as u64));
    let mut found = Block([0; 64]);
    // Rounding differs by seed, so that neighbours have different control words.
    let mxcsr = 0x1f80 | (seed as u32 & 3) << 13;
    let fcw = 0x37f | (seed as u16 & 3) << 10;
    let mut control = Control {
        mxcsr,
        mxcsr_after: 0,
        mxcsr_usual: 0x1f80,
        avx: avx.into(),
        fcw,
        fcw_after: 0,
        pad: 0,
        min_complete,
        timeout_ns,
    };
    // SAFETY: reads the pattern and writes what the registers hold into `found`; every vector
    // register is declared lost, control words are put back. The entry dispatches the ring
    // and waits as the caller says.
    unsafe {
        asm!(
            "ldmxcsr [{control}]",
            "fldcw [{control} + 16]",
            "cmp dword ptr [{control} + 12], 0",
            "jz 2f",
            "vmovups ymm0, [{from}]", "vmovups ymm1, [{from} + 32]",
            "vmovups ymm2, [{from} + 64]", "vmovups ymm3, [{from} + 96]",
            "vmovups ymm4, [{from} + 128]", "vmovups ymm5, [{from} + 160]",
            "vmovups ymm6, [{from} + 192]", "vmovups ymm7, [{from} + 224]",
            "vmovups ymm8, [{from} + 256]", "vmovups ymm9, [{from} + 288]",
            "vmovups ymm10, [{from} + 320]", "vmovups ymm11, [{from} + 352]",
            "vmovups ymm12, [{from} + 384]", "vmovups ymm13, [{from} + 416]",
            "vmovups ymm14, [{from} + 448]", "vmovups ymm15, [{from} + 480]",
            "jmp 3f",
            "2:",
            "movups xmm0, [{from}]", "movups xmm1, [{from} + 32]",
            "movups xmm2, [{from} + 64]", "movups xmm3, [{from} + 96]",
            "movups xmm4, [{from} + 128]", "movups xmm5, [{from} + 160]",
            "movups xmm6, [{from} + 192]", "movups xmm7, [{from} + 224]",
            "movups xmm8, [{from} + 256]", "movups xmm9, [{from} + 288]",
            "movups xmm10, [{from} + 320]", "movups xmm11, [{from} + 352]",
            "movups xmm12, [{from} + 384]", "movups xmm13, [{from} + 416]",
            "movups xmm14, [{from} + 448]", "movups xmm15, [{from} + 480]",
            "3:",
            "4:",
            "cmp r8, {entries}",
            "jae 5f",
            "xor eax, eax",
            "mov rdi, [{control} + 24]", "mov rsi, [{control} + 32]",
            "syscall",
            "5:",
            "dec r8",
            "jnz 4b",
            "cmp dword ptr [{control} + 12], 0",
            "jz 6f",
            "vmovups [{to}], ymm0", "vmovups [{to} + 32], ymm1",
            "vmovups [{to} + 64], ymm2", "vmovups [{to} + 96], ymm3",
            "vmovups [{to} + 128], ymm4", "vmovups [{to} + 160], ymm5",
            "vmovups [{to} + 192], ymm6", "vmovups [{to} + 224], ymm7",
            "vmovups [{to} + 256], ymm8", "vmovups [{to} + 288], ymm9",
            "vmovups [{to} + 320], ymm10", "vmovups [{to} + 352], ymm11",
            "vmovups [{to} + 384], ymm12", "vmovups [{to} + 416], ymm13",
            "vmovups [{to} + 448], ymm14", "vmovups [{to} + 480], ymm15",
            "vzeroupper",
            "jmp 7f",
            "6:",
            "movups [{to}], xmm0", "movups [{to} + 32], xmm1",
            "movups [{to} + 64], xmm2", "movups [{to} + 96], xmm3",
            "movups [{to} + 128], xmm4", "movups [{to} + 160], xmm5",
            "movups [{to} + 192], xmm6", "movups [{to} + 224], xmm7",
            "movups [{to} + 256], xmm8", "movups [{to} + 288], xmm9",
            "movups [{to} + 320], xmm10", "movups [{to} + 352], xmm11",
            "movups [{to} + 384], xmm12", "movups [{to} + 416], xmm13",
            "movups [{to} + 448], xmm14", "movups [{to} + 480], xmm15",
            "7:",
            "stmxcsr [{control} + 4]",
            "fnstcw [{control} + 18]",
            "ldmxcsr [{control} + 8]",
            "fninit",
            control = in(reg) &mut control,
            from = in(reg) &pattern,
            to = in(reg) &mut found,
            inout("r8") spins.max(1) => _,
            entries = in(reg) entries,
            out("rax") _, out("rdi") _, out("rsi") _, out("rcx") _, out("r11") _,
            clobber_abi("C"),
        );
    }
    let kept = if avx { 4 } else { 2 };
    let words = pattern.0.chunks(4).zip(found.0.chunks(4));
    let wrong = words.flat_map(|(p, f)| p.iter().zip(f).take(kept)).filter(|(p, f)| p != f);
    let controls = u32::from(mxcsr != control.mxcsr_after) + u32::from(fcw != control.fcw_after);
    wrong.count() as u32 + controls
}
