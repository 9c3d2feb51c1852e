//! The way into the kernel: one page of code below 1 MiB that every processor takes.
//!
//! Started processors enter it in real mode, the first one in long mode. Both meet in
//! protected mode with paging off, so that control registers, paging mode and page tables
//! are set by the same instructions for all of them, and go on to long mode, to the page's
//! address in the direct map, and to the kernel's tables. The first processor then jumps to
//! the kernel; the others stay and poll their record.
//!
//! The page stays in use by parked processors and is bootloader-reclaimable memory.
//!
//! Decided in ADR 10.

use core::arch::global_asm;

use loader_core::entry::{CR0, CR4_LA57, EFER, GDT, PAT};
use loader_core::memory::PAGE;
use loader_core::mp::GOTO_OFFSET;

/// Where the parameters begin in the page.
const PARAMETERS: usize = 0xe00;

/// What the code needs to know; written anew for each processor.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    /// Own GDT in the page, for the way through the modes.
    pub gdt: [u64; 9],
    /// Its pseudo-descriptor: limit in the upper 16 bits of the first word, then the base.
    pub gdt_limit: u64,
    /// Base of it.
    pub gdt_base: u64,
    /// Far pointer to the protected mode part: offset, then selector.
    pub protected: [u32; 2],
    /// Far pointer to the long mode part.
    pub long: [u32; 2],
    /// Control registers and tables.
    pub cr0: u64,
    /// CR4.
    pub cr4: u64,
    /// EFER before paging.
    pub efer: u64,
    /// IA32_PAT.
    pub pat: u64,
    /// Root used while both halves are needed.
    pub switch_root: u64,
    /// The kernel's root.
    pub root: u64,
    /// Base of the direct map.
    pub hhdm: u64,
    /// Physical end of this processor's stack.
    pub stack_top: u64,
    /// Function called one to one before the tables change, or 0.
    pub setup: u64,
    /// Its argument.
    pub setup_argument: u64,
    /// Limit of the kernel's GDT, as `gdt_limit`.
    pub kernel_gdt_limit: u64,
    /// Virtual address of the kernel's GDT.
    pub kernel_gdt_base: u64,
    /// The empty IDT's pseudo-descriptor.
    pub idt: [u64; 2],
    /// Kernel entry, or 0 for a processor that parks.
    pub entry: u64,
    /// Virtual address of a parking processor's record.
    pub record: u64,
    /// Set to 1 by a processor that has parked.
    pub arrived: u64,
}

macro_rules! offset {
    ($field:ident) => {
        PARAMETERS + core::mem::offset_of!(Parameters, $field)
    };
}

/// Byte offset of the limit in the word before a base: a pseudo-descriptor is 10 bytes.
const LIMIT_IN_WORD: usize = 6;

global_asm!(
    ".global capos_switch_begin",
    ".global capos_switch_protected",
    ".global capos_switch_long",
    ".global capos_switch_from_long",
    ".global capos_switch_end",
    ".balign 16",
    ".code16",
    "capos_switch_begin:",
    "cli",
    "cld",
    "xor ebx, ebx",
    "mov bx, cs",
    "mov ds, bx",
    "shl ebx, 4",
    "lgdtd [{gdtr}]",
    "mov eax, 0x11",
    "mov cr0, eax",
    // jmp far dword [protected]
    ".byte 0x66, 0xff, 0x2e",
    ".word {protected}",
    ".code32",
    "capos_switch_protected:",
    "mov eax, 0x20",
    "mov ds, eax",
    "mov es, eax",
    "mov ss, eax",
    "mov fs, eax",
    "mov gs, eax",
    // Paging off: only then may LME, LA57 and PCIDE change.
    "mov eax, 0x11",
    "mov cr0, eax",
    "mov ecx, 0xc0000080",
    "xor eax, eax",
    "xor edx, edx",
    "wrmsr",
    "mov ecx, 0x277",
    "mov eax, [ebx + {pat}]",
    "mov edx, [ebx + {pat} + 4]",
    "wrmsr",
    "mov eax, [ebx + {cr4}]",
    "mov cr4, eax",
    "mov eax, [ebx + {switch_root}]",
    "mov cr3, eax",
    "mov ecx, 0xc0000080",
    "mov eax, [ebx + {efer}]",
    "xor edx, edx",
    "wrmsr",
    "mov eax, [ebx + {cr0}]",
    "mov cr0, eax",
    // jmp far [ebx + long]
    ".byte 0xff, 0xab",
    ".long {long}",
    ".code64",
    "capos_switch_long:",
    // The upper half of rbx is undefined after protected mode.
    "mov ebx, ebx",
    "mov eax, 0x30",
    "mov ds, eax",
    "mov es, eax",
    "mov ss, eax",
    "mov fs, eax",
    "mov gs, eax",
    "mov rsp, [rbx + {stack_top}]",
    "mov rdi, [rbx + {setup_argument}]",
    "mov rax, [rbx + {setup}]",
    "test rax, rax",
    "jz 2f",
    "call rax",
    "2:",
    "mov rdx, [rbx + {hhdm}]",
    "add rsp, rdx",
    "add rbx, rdx",
    "lea rax, [rip + 3f]",
    "add rax, rdx",
    "jmp rax",
    "3:",
    "mov rax, [rbx + {root}]",
    "mov cr3, rax",
    "mov rsp, [rbx + {stack_top}]",
    "add rsp, rdx",
    "lgdt [rbx + {kernel_gdtr}]",
    "mov eax, 0x30",
    "mov ds, eax",
    "mov es, eax",
    "mov ss, eax",
    "mov fs, eax",
    "mov gs, eax",
    "push 0x28",
    "lea rax, [rip + 4f]",
    "push rax",
    "retfq",
    "4:",
    "xor eax, eax",
    "lldt ax",
    // LTR marks the descriptor busy and refuses a busy one.
    "mov rax, [rbx + {kernel_gdt_base}]",
    "mov byte ptr [rax + 0x38 + 5], 0x89",
    "mov eax, 0x38",
    "ltr ax",
    "lidt [rbx + {idt}]",
    "mov rax, [rbx + {entry}]",
    "xor edi, edi",
    "test rax, rax",
    "jnz 6f",
    "mov rdi, [rbx + {record}]",
    // Pairs with the first processor's acquire load in smp.rs; stores are ordered on x86.
    "mov qword ptr [rbx + {arrived}], 1",
    // From here on the parameters may belong to the next processor.
    "5:",
    "pause",
    // Pairs with the kernel's release store of the address.
    "mov rax, [rdi + {goto}]",
    "test rax, rax",
    "jz 5b",
    "6:",
    "push 0",
    "push rax",
    "push 2",
    "popfq",
    "mov eax, 0",
    "mov ebx, 0",
    "mov ecx, 0",
    "mov edx, 0",
    "mov esi, 0",
    "mov ebp, 0",
    "mov r8d, 0",
    "mov r9d, 0",
    "mov r10d, 0",
    "mov r11d, 0",
    "mov r12d, 0",
    "mov r13d, 0",
    "mov r14d, 0",
    "mov r15d, 0",
    "ret",
    // The first processor's way in: rdi is the page's address, below 1 MiB.
    "capos_switch_from_long:",
    "cli",
    "cld",
    "mov ebx, edi",
    "lgdt [rbx + {gdtr}]",
    "mov eax, [rbx + {protected}]",
    "push 0x18",
    "push rax",
    "retfq",
    "capos_switch_end:",
    gdtr = const offset!(gdt_limit) + LIMIT_IN_WORD,
    protected = const offset!(protected),
    long = const offset!(long),
    cr0 = const offset!(cr0),
    cr4 = const offset!(cr4),
    efer = const offset!(efer),
    pat = const offset!(pat),
    switch_root = const offset!(switch_root),
    root = const offset!(root),
    hhdm = const offset!(hhdm),
    stack_top = const offset!(stack_top),
    setup = const offset!(setup),
    setup_argument = const offset!(setup_argument),
    kernel_gdtr = const offset!(kernel_gdt_limit) + LIMIT_IN_WORD,
    kernel_gdt_base = const offset!(kernel_gdt_base),
    idt = const offset!(idt),
    entry = const offset!(entry),
    record = const offset!(record),
    arrived = const offset!(arrived),
    goto = const GOTO_OFFSET,
);

unsafe extern "C" {
    static capos_switch_begin: u8;
    static capos_switch_protected: u8;
    static capos_switch_long: u8;
    static capos_switch_from_long: u8;
    static capos_switch_end: u8;
}

/// The code in its page.
#[derive(Debug)]
pub struct Switch {
    page: u64,
}

impl Switch {
    /// Copies the code to the page.
    ///
    /// # Safety
    /// `page` must be a page below 1 MiB that is mapped one to one, writable and executable,
    /// and used for nothing else from now on.
    pub unsafe fn install(page: u64) -> Self {
        let (begin, end) = (&raw const capos_switch_begin, &raw const capos_switch_end);
        // SAFETY: the labels enclose the code above, which is shorter than the page; the
        // page is ours by the caller's word.
        unsafe {
            core::ptr::write_bytes(page as *mut u8, 0, PAGE as usize);
            core::ptr::copy_nonoverlapping(begin, page as *mut u8, end as usize - begin as usize);
        }
        Self { page }
    }

    fn address_of(&self, label: *const u8) -> u64 {
        self.page + (label as u64 - (&raw const capos_switch_begin) as u64)
    }

    /// Parameters with everything that does not depend on the processor.
    pub fn parameters(&self, handover: &loader_core::boot::Handover) -> Parameters {
        let limit = (core::mem::size_of_val(&GDT) as u64 - 1) << 48;
        Parameters {
            gdt: GDT,
            gdt_limit: limit,
            gdt_base: self.page + PARAMETERS as u64,
            protected: [self.address_of(&raw const capos_switch_protected) as u32, 0x18],
            long: [self.address_of(&raw const capos_switch_long) as u32, 0x28],
            cr0: CR0,
            cr4: handover.cr4,
            efer: EFER,
            pat: PAT,
            switch_root: handover.switch_root,
            root: handover.root,
            hhdm: handover.hhdm,
            stack_top: handover.stack_top,
            setup: 0,
            setup_argument: 0,
            kernel_gdt_limit: limit,
            kernel_gdt_base: handover.hhdm + handover.gdt,
            idt: [0; 2],
            entry: 0,
            record: 0,
            arrived: 0,
        }
    }

    fn place(&self) -> *mut Parameters {
        (self.page as usize + PARAMETERS) as *mut Parameters
    }

    /// Writes the parameters for the next processor.
    pub fn set(&self, parameters: &Parameters) {
        // SAFETY: the page is ours since `install`, aligned, and no processor that has not
        // arrived is reading it.
        unsafe { self.place().write_volatile(*parameters) };
    }

    /// Whether the processor started last has parked.
    pub fn has_arrived(&self) -> bool {
        // SAFETY: as in `set`; the other processor writes one aligned word.
        let arrived = unsafe { (&raw const (*self.place()).arrived).read_volatile() };
        // Pairs with the parked processor's store: nothing of it is pending behind it.
        core::sync::atomic::fence(core::sync::atomic::Ordering::Acquire);
        arrived == 1
    }

    /// Physical address of the page.
    pub fn page(&self) -> u64 {
        self.page
    }

    /// Leaves for the kernel.
    ///
    /// # Safety
    /// The handover the parameters were made from must be complete, `entry` set, interrupts
    /// off, and the page mapped one to one.
    pub unsafe fn enter(self, parameters: &Parameters) -> ! {
        self.set(parameters);
        let same_levels = {
            let cr4: u64;
            // SAFETY: reading a control register.
            unsafe { core::arch::asm!("mov {}, cr4", out(reg) cr4, options(nomem, nostack)) };
            (cr4 ^ parameters.cr4) & CR4_LA57 == 0
        };
        if same_levels {
            // Strict firmware maps free memory, where the page lies, without execution.
            // SAFETY: the switch tables map the loader and its stack as they are mapped now.
            unsafe {
                core::arch::asm!("mov cr3, {}", in(reg) parameters.switch_root, options(nostack));
            }
        }
        let from_long = self.address_of(&raw const capos_switch_from_long);
        // SAFETY: the code was copied there by `install` and never returns.
        unsafe {
            core::arch::asm!(
                "jmp {code}",
                code = in(reg) from_long,
                in("rdi") self.page,
                options(noreturn),
            )
        }
    }
}
