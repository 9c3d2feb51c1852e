//! Bringing a CPU up: the boot CPU at entry, the others when they are released.

use super::control::{self, ControlBits};
use super::features::{self, Features};
use super::percpu::{CpuState, IstStacks, PerCpu, STACK_TOP_OFFSET};
use super::speculation;
use crate::paging::KERNEL_CR3;
use crate::{apic, fpu, hooks, syscall};
use core::arch::naked_asm;
use core::sync::atomic::{AtomicUsize, Ordering};
use limine::mp::MpInfo;

/// Bytes of each stack the boot CPU takes exceptions on before memory management is up.
const EARLY_STACK_BYTES: usize = 16 * 1024;

/// Offset of the argument word in the loader's CPU record: two u32, reserved u64, address, argument.
const MP_ARGUMENT_OFFSET: usize = 24;

#[repr(C, align(16))]
struct EarlyStack([u8; EARLY_STACK_BYTES]);

static BOOT_CPU: PerCpu = PerCpu::new(0, 0, 0);
static EARLY_STACKS: crate::take_once::TakeOnce<[EarlyStack; 4]> =
    crate::take_once::TakeOnce::new([const { EarlyStack([0; EARLY_STACK_BYTES]) }; 4]);

/// Sets up the boot CPU so that exceptions are reported. The first thing the kernel does.
pub(crate) fn init_boot_cpu() {
    if let Some(stacks) = EARLY_STACKS.take() {
        let mut tops = [0; 4];
        for (stack, top) in stacks.iter_mut().zip(&mut tops) {
            *top = stack.0.as_mut_ptr_range().end as u64;
        }
        // SAFETY: this is the CPU the block belongs to; the stacks are static and taken once.
        unsafe { BOOT_CPU.set_interrupt_stacks(IstStacks(tops)) };
    }
    // SAFETY: the block is the boot CPU's, which runs this.
    unsafe { BOOT_CPU.load() };
    BOOT_CPU.set_apic_id(features::initial_apic_id());
    set_up(&BOOT_CPU);
}

/// Gives the boot CPU its real stacks once there is memory for them.
///
/// # Safety
/// The stacks are mapped for good and belong to the boot CPU, which runs this.
pub unsafe fn finish_boot_cpu(stack_top: u64, stacks: IstStacks) -> &'static PerCpu {
    BOOT_CPU.stack_top.store(stack_top, core::sync::atomic::Ordering::Relaxed);
    // SAFETY: by the contract.
    unsafe { BOOT_CPU.set_interrupt_stacks(stacks) };
    BOOT_CPU.set_user_entry_stack(stack_top - 8);
    &BOOT_CPU
}

/// Control registers and identity, the same on every CPU.
fn set_up(cpu: &PerCpu) {
    let features = Features::detect();
    control::enable(&features);
    fpu::enable(&features);
    syscall::enable();
    speculation::apply_to(cpu);
    let place = features::topology_shifts().place(features::initial_apic_id());
    cpu.set_identity(features, ControlBits::read(), place);
    cpu.set_state(CpuState::Online);
}

/// Where the loader sends a CPU that is released: onto the kernel's tables and its own stack.
///
/// # Safety
/// Jumped to by the loader with its CPU record in RDI, whose argument is the CPU's [`PerCpu`].
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn other_cpu_entry(info: &MpInfo) -> ! {
    naked_asm!(
        "mov rdi, [rdi + {argument}]",
        "mov rax, [rip + {cr3}]",
        // The kernel's image lies at the same addresses in both, so the next instruction is there.
        "mov cr3, rax",
        "mov rsp, [rdi + {stack}]",
        "xor ebp, ebp",
        "push rbp",
        "push rbp",
        "call {main}",
        "ud2",
        argument = const MP_ARGUMENT_OFFSET,
        cr3 = sym KERNEL_CR3,
        stack = const STACK_TOP_OFFSET,
        main = sym other_cpu_main,
    )
}

/// CPUs that are there and not used, and have left the loader's memory.
static RETIRED: AtomicUsize = AtomicUsize::new(0);

/// How many CPUs have retired. Acquire, pairs with the locked addition of `retired_cpu_entry`: such a
/// CPU reads nothing of the loader's any more.
pub fn retired_count() -> usize {
    RETIRED.load(Ordering::Acquire)
}

/// Where the loader sends a CPU that is not used: onto the kernel's tables, and no further. It has no
/// stack and no interrupt table, and halts with interrupts off.
///
/// # Safety
/// Jumped to by the loader.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn retired_cpu_entry(info: &MpInfo) -> ! {
    naked_asm!(
        "cli",
        "mov rax, [rip + {cr3}]",
        "mov cr3, rax",
        "lock inc qword ptr [rip + {retired}]",
        "2:",
        "hlt",
        "jmp 2b",
        cr3 = sym KERNEL_CR3,
        retired = sym RETIRED,
    )
}

extern "C" fn other_cpu_main(cpu: &'static PerCpu) -> ! {
    // SAFETY: the block was made for this CPU and given to no other.
    unsafe { cpu.load() };
    cpu.set_user_entry_stack(cpu.stack_top.load(Ordering::Relaxed) - 8);
    apic::enable_on_this_cpu();
    set_up(cpu);
    hooks::cpu(cpu)
}
