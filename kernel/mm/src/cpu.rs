//! Per-CPU blocks and the stacks that go with them.

use crate::OutOfMemory;
use crate::fallible::try_leak;
use crate::stack::{INTERRUPT_STACK_PAGES, KernelStack, STACK_PAGES};
use kernel_arch::cpu::{self, IstStacks, PerCpu};

/// Stacks of one CPU: the one it runs on and four for exceptions.
struct Stacks {
    main: KernelStack,
    interrupt: [KernelStack; 4],
}

impl Stacks {
    fn new() -> Result<Stacks, OutOfMemory> {
        let small = || KernelStack::new(INTERRUPT_STACK_PAGES);
        Ok(Stacks {
            main: KernelStack::new(STACK_PAGES)?,
            interrupt: [small()?, small()?, small()?, small()?],
        })
    }
}

/// The block of a CPU that is about to be started, with stacks of its own.
pub fn new_block(index: u32, apic_id: u32) -> Result<&'static PerCpu, OutOfMemory> {
    let Stacks { main, interrupt } = Stacks::new()?;
    let block = try_leak(PerCpu::new(index, apic_id, main.top()))?;
    main.leak();
    // SAFETY: the CPU has not been started; the stacks are leaked, so they stay.
    unsafe { block.set_interrupt_stacks(IstStacks(interrupt.map(KernelStack::leak))) };
    Ok(block)
}

/// Gives the boot CPU guarded stacks: its block, and the stack to go on with.
pub fn finish_boot_cpu() -> Result<(&'static PerCpu, KernelStack), OutOfMemory> {
    let Stacks { main, interrupt } = Stacks::new()?;
    // SAFETY: this is the boot CPU; the interrupt stacks are leaked and the caller runs on `main`
    // for good (`KernelStack::enter` takes it).
    let block =
        unsafe { cpu::finish_boot_cpu(main.top(), IstStacks(interrupt.map(KernelStack::leak))) };
    Ok((block, main))
}
