//! Segments, the task state segment and the interrupt table.
//!
//! Every CPU has its own segment table and task state, in its per-CPU block; the interrupt table
//! is one for all. Four exceptions get stacks of their own (IST): they can come at any point, when the
//! current stack is not to be trusted.

use crate::trap;
use core::arch::asm;
use core_fault::Vector;
use spin::Once;
use x86_64::instructions::segmentation::{CS, DS, ES, FS, GS, SS, Segment};
use x86_64::instructions::tables::load_tss;
use x86_64::registers::segmentation::SegmentSelector;
use x86_64::structures::gdt::{Descriptor, DescriptorFlags, GlobalDescriptorTable};
use x86_64::structures::tss::TaskStateSegment;
use x86_64::{PrivilegeLevel, VirtAddr};

/// The order SYSCALL and SYSRET want: kernel code, kernel data, user data, user code.
pub(crate) const KERNEL_CODE: u16 = 0x08;
pub(crate) const KERNEL_DATA: u16 = 0x10;
pub(crate) const USER_DATA: u16 = 0x18 | 3;
pub(crate) const USER_CODE: u16 = 0x20 | 3;
const TASK_STATE: u16 = 0x28;
/// An entry that is not present: loading it is refused, which probes rely on.
pub(crate) const NOT_PRESENT: u16 = 0x38;

/// A CPU's segment table and task state.
pub(crate) struct Descriptors {
    segments: GlobalDescriptorTable<8>,
    pub(crate) task: TaskStateSegment,
}

impl Descriptors {
    pub(crate) const fn new() -> Self {
        Self { segments: GlobalDescriptorTable::empty(), task: TaskStateSegment::new() }
    }
}

/// Which interrupt stack a vector is taken on: 1 to 4, or 0 for the current one.
const fn interrupt_stack(vector: u8) -> u8 {
    match Vector(vector) {
        Vector::DOUBLE_FAULT => 1,
        Vector::NMI => 2,
        Vector::MACHINE_CHECK => 3,
        Vector::DEBUG => 4,
        _ => 0,
    }
}

/// A gate of the interrupt table (Intel SDM vol. 3, 6.14.1).
#[derive(Clone, Copy)]
#[repr(C)]
struct Gate {
    low: u64,
    high: u64,
}

impl Gate {
    const fn new(handler: u64, stack: u8) -> Gate {
        // Present, interrupt gate: interrupts are off in the handler. Privilege 0: user mode may
        // not raise it with an instruction.
        let attributes = 0x8e00 | stack as u64;
        Gate {
            low: handler & 0xffff
                | (KERNEL_CODE as u64) << 16
                | attributes << 32
                | (handler >> 16 & 0xffff) << 48,
            high: handler >> 32,
        }
    }
}

#[repr(C, align(16))]
struct InterruptTable([Gate; 256]);

static INTERRUPTS: Once<InterruptTable> = Once::new();

/// Builds the segment table and task state in place and makes this CPU use them.
///
/// # Safety
/// `descriptors` stays where it is for as long as the CPU runs and is used by no other CPU.
pub(crate) unsafe fn load(descriptors: *mut Descriptors) {
    // SAFETY: unique and valid by the contract.
    let table = unsafe { &mut *descriptors };
    table.segments = GlobalDescriptorTable::empty();
    table.segments.append(Descriptor::kernel_code_segment());
    table.segments.append(Descriptor::kernel_data_segment());
    table.segments.append(Descriptor::user_data_segment());
    table.segments.append(Descriptor::user_code_segment());
    // SAFETY: the task state stays in the block, by the contract.
    let task = unsafe { Descriptor::tss_segment_unchecked(&raw const table.task) };
    table.segments.append(task);
    let absent = DescriptorFlags::KERNEL_DATA.difference(DescriptorFlags::PRESENT);
    table.segments.append(Descriptor::UserSegment(absent.bits()));
    let kernel = |index| SegmentSelector::new(index, PrivilegeLevel::Ring0);
    // SAFETY: the table lives as long as the CPU by the contract; the selectors name the entries
    // just appended, in that order.
    unsafe {
        table.segments.load_unsafe();
        CS::set_reg(kernel(KERNEL_CODE / 8));
        SS::set_reg(kernel(KERNEL_DATA / 8));
        DS::set_reg(SegmentSelector::NULL);
        ES::set_reg(SegmentSelector::NULL);
        FS::set_reg(SegmentSelector::NULL);
        GS::set_reg(SegmentSelector::NULL);
        load_tss(kernel(TASK_STATE / 8));
    }
    load_interrupt_table();
}

fn load_interrupt_table() {
    let table = INTERRUPTS.call_once(|| {
        InterruptTable(core::array::from_fn(|vector| {
            let vector = vector as u8;
            Gate::new(trap::entry_address(vector), interrupt_stack(vector))
        }))
    });
    #[repr(C, packed)]
    struct Pointer {
        limit: u16,
        base: u64,
    }
    let pointer =
        Pointer { limit: size_of::<InterruptTable>() as u16 - 1, base: &raw const *table as u64 };
    // SAFETY: the table is static and every gate leads to an entry stub of its vector.
    unsafe { asm!("lidt [{}]", in(reg) &pointer, options(readonly, nostack, preserves_flags)) };
}

/// Sets an interrupt stack: the task state is read by the CPU at the moment of the exception.
///
/// # Safety
/// As for [`load`]; the stack ends at `top` and is used for nothing else.
pub(crate) unsafe fn set_interrupt_stacks(descriptors: *mut Descriptors, tops: [u64; 4]) {
    for (index, top) in tops.into_iter().enumerate() {
        // SAFETY: the block is this CPU's; four of the seven entries are used.
        unsafe {
            let stacks = &raw mut (*descriptors).task.interrupt_stack_table;
            stacks.cast::<VirtAddr>().add(index).write_unaligned(VirtAddr::new_truncate(top));
        }
    }
}

/// Sets the stack that exceptions from user mode start on.
///
/// # Safety
/// As for [`set_interrupt_stacks`].
pub(crate) unsafe fn set_kernel_stack(descriptors: *mut Descriptors, top: u64) {
    // SAFETY: the block is this CPU's.
    unsafe {
        let stacks = &raw mut (*descriptors).task.privilege_stack_table;
        stacks.cast::<u64>().write_unaligned(top);
    }
}
