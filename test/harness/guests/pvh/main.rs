//! The guest as a PVH program: no loader, no bundle, the fastest boot there is.
//!
//! One CPU, interrupts off, the first GiB mapped onto itself. The PVH boot ABI (Xen's
//! docs/misc/pvh.pandoc) enters in 32-bit protected mode with EBX holding the physical
//! address of `hvm_start_info`.
#![no_std]
#![no_main]

use core::arch::global_asm;
use core::ffi::CStr;

global_asm!(
    r#"
    // An ELF note of type 18 (PHYS32_ENTRY) named "Xen" is the PVH entry address.
    .section .note.pvh, "a", @note
    .align 4
    .long 4, 8, 18
    .asciz "Xen"
    .quad pvh_entry

    .section .text.entry, "ax"
    .code32
    .global pvh_entry
pvh_entry:
    mov esp, offset guest_stack_top
    mov edi, ebx
    mov eax, cr4
    or eax, 0x20                    // PAE
    mov cr4, eax
    mov eax, offset guest_pml4
    mov cr3, eax
    mov ecx, 0xc0000080             // EFER
    rdmsr
    or eax, 0x100                   // LME
    wrmsr
    mov eax, cr0
    or eax, 0x80000001              // PG, PE
    mov cr0, eax
    lgdt [guest_gdt_pointer]
    mov eax, 0x8
    push eax
    mov eax, offset guest_start64
    push eax
    retf

    .code64
guest_start64:
    mov eax, 0x10
    mov ss, eax
    mov ds, eax
    mov es, eax
    mov edi, edi
    call {main}
    ud2

    .section .data.tables, "aw"
    .align 4096
guest_pml4:
    .quad guest_pdpt + 3            // present, writable
    .fill 511, 8, 0
guest_pdpt:
    .quad 0x83                      // present, writable, 1 GiB page at 0
    .fill 511, 8, 0
guest_gdt:
    .quad 0
    .quad 0x00af9b000000ffff        // 64-bit code
    .quad 0x00cf93000000ffff        // data
guest_gdt_pointer:
    .word 23
    .long guest_gdt

    .section .bss.stack, "aw", @nobits
    .align 16
    .skip 32768
guest_stack_top:
"#,
    main = sym start,
);

/// Where QEMU put what it tells a PVH guest; only the field read here (offset 24).
const START_INFO_CMDLINE: usize = 24;

extern "C" fn start(start_info: usize) -> ! {
    // SAFETY: the PVH ABI gives `start_info` as the address of an hvm_start_info, whose
    // cmdline_paddr is a u64 at offset 24; it lies in the identity-mapped first GiB.
    let text = unsafe { ((start_info + START_INFO_CMDLINE) as *const u64).read() } as *const i8;
    // SAFETY: cmdline_paddr is the address of a NUL-terminated string QEMU wrote, which
    // nothing in this program writes to; QEMU always provides one, empty without -append.
    let words = unsafe { CStr::from_ptr(text) };
    guest::behave(words.to_str().unwrap_or_default())
}
