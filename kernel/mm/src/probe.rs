//! User pages mapped on purpose: what the kernel and user mode must not do with them.
//!
//! For tests of the protections. A page is mapped in the lower half of the kernel's own tables for
//! as long as a probe runs, on the CPU that runs it.

use crate::frames::{self, OwnedFrames};
use crate::space::{AddressSpace, SpaceError};
use crate::stack::KernelStack;
use crate::{OutOfMemory, tables};
use abi_types::place::USER_END;
use core_address::{PAGE_SIZE, VirtAddr};
use core_frames::Order;
use core_paging::{Access, Rights};
use kernel_arch::paging;
use kernel_arch::trap::{Fault, probe};

/// What is tried with a user page or in user mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UserProbe {
    /// The kernel reads a user page: SMAP.
    KernelReads,
    /// The kernel writes a user page: SMAP.
    KernelWrites,
    /// The kernel executes a user page: SMEP.
    KernelExecutes,
    /// User mode stores the interrupt table's address: UMIP.
    UserReadsTables,
    /// User mode executes a privileged instruction.
    UserHalts,
    /// User mode reads the kernel's memory.
    UserReadsKernel,
    /// User mode writes its own code.
    UserWritesCode,
    /// User mode runs with the flags that could harm a careless kernel: direction, nested task,
    /// alignment check (which turns SMAP off).
    UserSetsFlags,
    /// User mode runs in single steps.
    UserSingleSteps,
}

/// Where the pages go: code, and a stack beside it.
const CODE: u64 = 0x40_0000;
const DATA: u64 = 0x40_2000;
/// RFLAGS: the bit that is always set, single step, direction, nested task, alignment check.
const FLAGS: u64 = 1 << 1;
const FLAG_TF: u64 = 1 << 8;
const FLAG_DF: u64 = 1 << 10;
const FLAG_NT: u64 = 1 << 14;
const FLAG_AC: u64 = 1 << 18;

/// Machine code for a probe; each ends in an invalid instruction, so user mode always faults.
fn code(probe: UserProbe) -> &'static [u8] {
    match probe {
        // sidt [rsp - 16]; ud2
        UserProbe::UserReadsTables => &[0x0f, 0x01, 0x4c, 0x24, 0xf0, 0x0f, 0x0b],
        // hlt; ud2
        UserProbe::UserHalts => &[0xf4, 0x0f, 0x0b],
        // mov rax, 0xffffffff80000000 (sign-extended); mov al, [rax]; ud2
        UserProbe::UserReadsKernel => &[0x48, 0xc7, 0xc0, 0, 0, 0, 0x80, 0x8a, 0x00, 0x0f, 0x0b],
        // lea rax, [rip]; mov byte [rax], 0; ud2
        UserProbe::UserWritesCode => &[0x48, 0x8d, 0x05, 0, 0, 0, 0, 0xc6, 0x00, 0x00, 0x0f, 0x0b],
        // ud2
        UserProbe::UserSetsFlags => &[0x0f, 0x0b],
        // nop; ud2
        UserProbe::UserSingleSteps => &[0x90, 0x0f, 0x0b],
        // ret
        UserProbe::KernelReads | UserProbe::KernelWrites | UserProbe::KernelExecutes => &[0xc3],
    }
}

/// A user page of the kernel's own tables, unmapped when dropped.
struct UserPage {
    virt: VirtAddr,
    _frames: OwnedFrames,
}

impl UserPage {
    fn new(address: u64, access: Access, content: &[u8]) -> Result<UserPage, OutOfMemory> {
        let mut block = frames::allocate(Order::FRAME)?;
        block.zero();
        let count = content.len().min(PAGE_SIZE as usize);
        let target = paging::direct(block.frame().start());
        // SAFETY: the frame is ours and a page long.
        unsafe { target.copy_from_nonoverlapping(content.as_ptr(), count) };
        let virt = VirtAddr::new(address).ok_or(OutOfMemory)?;
        // SAFETY: nothing else uses the lower half of these tables; the frame is ours.
        unsafe { tables::map_kernel(virt, block.frame(), 1, Rights::user(access)) }
            .map_err(|_| OutOfMemory)?;
        Ok(UserPage { virt, _frames: block })
    }
}

impl Drop for UserPage {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`; only this CPU has used it. The frame is freed after this.
        unsafe { tables::unmap_kernel(self.virt, 1, |_| ()) };
    }
}

/// Tries it: the fault, or `None` if it was let pass.
pub fn run(probe: UserProbe) -> Result<Option<Fault>, OutOfMemory> {
    let access = match probe {
        UserProbe::KernelReads | UserProbe::KernelWrites => Access::Write,
        _ => Access::Execute,
    };
    let _code = UserPage::new(CODE, access, code(probe))?;
    let _data = UserPage::new(DATA, Access::Write, &[])?;
    let flags = match probe {
        UserProbe::UserSetsFlags => FLAGS | FLAG_DF | FLAG_NT | FLAG_AC,
        UserProbe::UserSingleSteps => FLAGS | FLAG_TF,
        _ => FLAGS,
    };
    // SAFETY: the pages are mapped and ours; what is executed is a `ret`, or user code that faults.
    Ok(unsafe {
        match probe {
            UserProbe::KernelReads => probe::read(CODE).err(),
            UserProbe::KernelWrites => probe::write(CODE).err(),
            UserProbe::KernelExecutes => probe::execute(CODE).err(),
            _ => probe::run_user(CODE, DATA + PAGE_SIZE, flags),
        }
    })
}

/// Maps the last page of the lower half, which no space maps otherwise, and puts `code` at its very
/// end: what runs there goes on at an address that is not canonical.
pub fn map_last_user_page(space: &AddressSpace, code: &[u8]) -> Result<(), SpaceError> {
    space.map_last_page()?;
    let at = USER_END + PAGE_SIZE - code.len() as u64;
    space.fill(at, code).map_err(|_| SpaceError::Absent)
}

/// Writes below a fresh stack: the fault of its guard, or `None` if there is no guard.
pub fn stack_guard() -> Result<Option<Fault>, OutOfMemory> {
    let stack = KernelStack::new(1)?;
    // SAFETY: below the stack lies its guard, which is nobody's memory.
    Ok(unsafe { probe::write(stack.bottom() - 1) }.err())
}

/// Reads the null page, which nothing is ever mapped at.
pub fn null_page() -> Option<Fault> {
    // SAFETY: nothing is there.
    unsafe { probe::read(0) }.err()
}

/// Jumps into a frame through the direct map: the fault, or `None` if it was executed.
pub fn execute_direct_map() -> Result<Option<Fault>, OutOfMemory> {
    let block = frames::allocate(Order::FRAME)?;
    let target = paging::direct(block.frame().start());
    // SAFETY: the frame is ours; what is executed, if anything, is a `ret`.
    Ok(unsafe {
        target.write(0xc3);
        probe::execute(target as u64).err()
    })
}

/// Writes the kernel's code through the direct map: the fault, or `None` if it was let pass.
pub fn write_code_through_direct_map() -> Option<Fault> {
    let code = VirtAddr::new(crate::image::boundaries().text_start)?;
    let alias = paging::direct(tables::translate(code)?.phys);
    // SAFETY: reading has no effect; the write puts back the byte that is there.
    unsafe { probe::rewrite(alias as u64) }.err()
}
