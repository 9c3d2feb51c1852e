//! From QEMU's 32-bit entry to Rust in long mode, with the first 4 GiB mapped one to one.
//!
//! The PVH entry (Xen's x86/HVM direct boot ABI) comes with paging off, flat segments and
//! the start information's address in ebx.

use core::arch::global_asm;

global_asm!(
    ".section .note.pvh, \"a\", @note",
    // Name size, descriptor size, XEN_ELFNOTE_PHYS32_ENTRY.
    ".long 4, 8, 18",
    ".asciz \"Xen\"",
    ".quad capos_pvh_start",
    ".section .text.start, \"ax\"",
    ".code32",
    ".global capos_pvh_start",
    "capos_pvh_start:",
    "cli",
    "cld",
    // 2048 entries of 2 MiB: present, writable, large.
    "mov edi, offset capos_boot_directories",
    "mov eax, 0x83",
    "mov ecx, 2048",
    "2:",
    "mov [edi], eax",
    "add eax, 0x200000",
    "add edi, 8",
    "dec ecx",
    "jnz 2b",
    "mov edi, offset capos_boot_pointers",
    "mov eax, offset capos_boot_directories",
    "or eax, 3",
    "mov ecx, 4",
    "3:",
    "mov [edi], eax",
    "add eax, 0x1000",
    "add edi, 8",
    "dec ecx",
    "jnz 3b",
    "mov edi, offset capos_boot_root",
    "mov eax, offset capos_boot_pointers",
    "or eax, 3",
    "mov [edi], eax",
    "mov cr3, edi",
    "mov eax, 0x20",
    "mov cr4, eax",
    "mov ecx, 0xc0000080",
    "mov eax, 0x100",
    "xor edx, edx",
    "wrmsr",
    "mov eax, 0x80000011",
    "mov cr0, eax",
    "lgdt [capos_boot_gdtr]",
    "ljmp 8, offset capos_boot_long",
    ".code64",
    "capos_boot_long:",
    "mov eax, 0x10",
    "mov ds, eax",
    "mov es, eax",
    "mov ss, eax",
    "xor eax, eax",
    "mov fs, eax",
    "mov gs, eax",
    "lea rsp, [rip + capos_boot_stack_top]",
    "mov edi, ebx",
    "xor ebp, ebp",
    "call {main}",
    "ud2",
    ".section .rodata.start, \"a\"",
    ".balign 8",
    "capos_boot_gdt:",
    ".quad 0, 0x00209b0000000000, 0x0000930000000000",
    "capos_boot_gdtr:",
    ".word 23",
    ".quad capos_boot_gdt",
    ".section .bss.start, \"aw\", @nobits",
    ".balign 4096",
    "capos_boot_root:",
    ".skip 4096",
    "capos_boot_pointers:",
    ".skip 4096",
    "capos_boot_directories:",
    ".skip 16384",
    "capos_boot_stack:",
    ".skip {stack}",
    "capos_boot_stack_top:",
    ".text",
    main = sym crate::main,
    stack = const STACK,
);

/// The memory maps, processor list and module list live on the stack; nothing recurses.
const STACK: usize = 256 << 10;

unsafe extern "C" {
    static capos_stub_start: u8;
    static capos_stub_end: u8;
}

/// The stub's own memory: address and length.
pub fn own_memory() -> (u64, u64) {
    let start = &raw const capos_stub_start as u64;
    (start, &raw const capos_stub_end as u64 - start)
}
