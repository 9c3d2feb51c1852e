//! Faults in user mode are told to the kernel as the user's, and the kernel goes on.

use crate::HARMFUL_FLAGS;
use crate::harness::{CODE, Ended, PAGE, Setup, slot, told, whole};
use core::sync::atomic::Ordering;
use core_paging::Access;
use kernel_arch::context::{BadStart, UserStart};
use kernel_mm::probe;
use test_kernel::Env;
use test_kit::{Outcome, T, check, check_eq, require_eq};
use user_blob::{Program, SYSCALL};

const PAGE_FAULT: u8 = 14;
const GENERAL_PROTECTION: u8 = 13;

pub fn faults(t: &mut T<'_, Env>) -> Outcome {
    let cases = [
        (Program::ReadNothing, PAGE_FAULT, Some(0x765_4321)),
        (Program::WriteCode, PAGE_FAULT, None),
        (Program::ExecuteData, PAGE_FAULT, Some(PAGE)),
        (Program::ReadKernel, PAGE_FAULT, Some(0xffff_ffff_8000_0000)),
        (Program::Invalid, 6, None),
        (Program::Divide, 0, None),
        (Program::Breakpoint, GENERAL_PROTECTION, None),
        (Program::FakeTimer, GENERAL_PROTECTION, None),
        (Program::JumpAway, GENERAL_PROTECTION, None),
        (Program::Privilege, GENERAL_PROTECTION, None),
    ];
    for (program, expected, expected_address) in cases {
        match whole(program, Setup::default(), |_| ()) {
            Ok(Ended::Fault { vector, address, rip }) => {
                check_eq!(t, vector, expected);
                if let Some(expected) = expected_address {
                    check_eq!(t, address, expected);
                }
                let near = match program {
                    Program::ExecuteData => PAGE,
                    // CPUs fault at the jump or at its target.
                    Program::JumpAway if rip == 0x8000_0000_0000 => rip,
                    _ => CODE,
                };
                check!(t, rip & !0xfff == near, "{program:?} at {rip:#x}");
            }
            other => t.note_failure(format_args!("{program:?}: {other:?}")),
        }
        check_eq!(t, told().kernel_flags.load(Ordering::Relaxed) & HARMFUL_FLAGS, 0);
    }
    // By vendor: #GP or #UD.
    let sysenter = whole(Program::Sysenter, Setup::default(), |_| ());
    check!(
        t,
        matches!(sysenter, Ok(Ended::Fault { vector: 6 | GENERAL_PROTECTION, .. })),
        "{sysenter:?}"
    );
    Ok(())
}

pub fn single_step(t: &mut T<'_, Env>) -> Outcome {
    // The trap comes in user mode, at or after the syscall, not in the kernel's entry code.
    for _ in 0..3 {
        let ended = whole(Program::SingleStep, Setup::default(), |_| ());
        check!(
            t,
            matches!(ended, Ok(Ended::Fault { vector: 1, rip, .. }) if rip & !0xfff == CODE),
            "{ended:?}"
        );
        check_eq!(t, told().kernel_flags.load(Ordering::Relaxed) & HARMFUL_FLAGS, 0);
    }
    Ok(())
}

/// The last page of the lower half, which no space maps but for this test.
const LAST_PAGE: u64 = 0x7fff_ffff_f000;

/// Bytes that a syscall's frame lies below where a trap's begins: fifteen words, of which the alignment of a
/// trap's frame takes one.
const SYSCALL_FRAME_BYTES: u64 = 14 * 8;

pub fn non_canonical_return(t: &mut T<'_, Env>) -> Outcome {
    let fault_stack = || told().fault_stack.load(Ordering::Relaxed);
    check!(t, whole(Program::Breakpoint, Setup::default(), |_| ()).is_ok());
    let of_a_trap = fault_stack();
    let last = LAST_PAGE + 4096 - 2;
    let setup = Setup { argument: Some(last), ..Setup::default() };
    let slot = slot(0);
    require_eq!(t, slot.load(Program::JumpToArgument, setup), Ok(()));
    check!(t, slot.space.map_new(LAST_PAGE, 1, Access::Execute).is_err());
    require_eq!(t, probe::map_last_user_page(&slot.space, &SYSCALL), Ok(()));
    let ended = slot.run();
    let expected = 0x8000_0000_0000;
    check!(
        t,
        matches!(ended, Ended::Fault { vector: GENERAL_PROTECTION, rip, .. } if rip == expected),
        "{ended:?}"
    );
    check!(t, slot.unload().is_ok());
    // It is the exit that refused, with the syscall's frame on the stack, and not a CPU that faults
    // in user mode, as some do. The stacks are the same: a spare one is used again.
    check_eq!(t, of_a_trap - fault_stack(), SYSCALL_FRAME_BYTES);
    Ok(())
}

pub fn bad_starts(t: &mut T<'_, Env>) -> Outcome {
    let (good, stack) = (CODE, 0x1000);
    for bad in [0x8000_0000_0000, 0xffff_8000_0000_0000, u64::MAX - 15] {
        check_eq!(t, UserStart::new(bad, stack, 0).err(), Some(BadStart::Entry));
        check_eq!(t, UserStart::new(good, bad, 0).err(), Some(BadStart::Stack));
        check_eq!(t, UserStart::new(good, stack, bad).err(), Some(BadStart::FsBase));
    }
    check_eq!(t, UserStart::new(good, stack + 8, 0).err(), Some(BadStart::Stack));
    check!(t, UserStart::new(0x7fff_ffff_ffff, 0, 0x7fff_ffff_ffff).is_ok());
    Ok(())
}
