//! The machine under user mode: entry and exit, registers, flags, faults, switches, the timer and
//! address spaces, without a process or a scheduler above.
#![no_std]
#![no_main]

mod faults;
mod harness;
mod memory;
mod switching;
mod timer;

use core::sync::atomic::Ordering;
use harness::{Ended, PAGE, STACK_TOP, Setup, told, whole};
use kernel_sys::Machine;
use test_kernel::Env;
use test_kit::{Outcome, Suite, T, Test, check, check_eq, require_ok};
use user_blob::{Program, page};

kernel_sys::kernel_main!(
    main,
    syscall = harness::syscall,
    user_fault = harness::user_fault,
    timer = harness::timer,
);

const SUITE: Suite<Env> = Suite::new(&[
    Test::new("user.entry-registers", entry_registers),
    Test::new("user.syscalls", syscalls),
    Test::new("user.null-entry", null_entry),
    Test::new("user.flags-in-a-syscall", flags_in_a_syscall),
    Test::new("user.registers-in-a-syscall", registers_in_a_syscall),
    Test::new("user.no-stack", no_stack),
    Test::new("user.segments", segments),
    Test::new("user.faults", faults::faults),
    Test::new("user.single-step", faults::single_step),
    Test::new("user.non-canonical-return", faults::non_canonical_return),
    Test::new("user.bad-starts", faults::bad_starts),
    Test::new("user.timer-kernel", timer::in_the_kernel),
    Test::new("user.timer-chains", timer::chains),
    Test::new("user.timer-skips-later", timer::skips_later),
    Test::new("user.preemption", switching::preemption),
    Test::new("user.flags-in-an-interrupt", switching::flags_in_an_interrupt),
    Test::new("user.registers-in-an-interrupt", switching::registers_in_an_interrupt),
    Test::new("user.predictions", switching::predictions),
    Test::new("user.two-threads", switching::two_threads),
    Test::new("user.context-states", switching::context_states),
    Test::new("user.every-cpu", switching::every_cpu),
    Test::new("user.migrates", switching::migrates),
    Test::new("user.space-limits", memory::limits),
    Test::new("user.copies", memory::copies),
    Test::new("user.pinned", memory::pinned),
    Test::new("user.unmap", memory::unmap),
    Test::new("user.teardown", memory::teardown),
    Test::new("user.fails-at-every-allocation", memory::fails_at_every_allocation),
    Test::new("user.accounts-of-every-size", memory::accounts_of_every_size),
]);

/// The argument with which a program asks for the kernel's flags to be noted.
pub const FLAGS_ARGUMENT: u64 = 0x5a;
/// Trap, interrupt enable, direction, nested task, alignment check: none may be set in the kernel.
pub const HARMFUL_FLAGS: u64 = 1 << 8 | 1 << 9 | 1 << 10 | 1 << 14 | 1 << 18;

fn main(machine: &'static Machine) -> ! {
    test_kernel::run(machine, &SUITE)
}

fn entry_registers(t: &mut T<'_, Env>) -> Outcome {
    let mut found = [0; 17];
    let mut floating = [0; 4];
    let ended = whole(Program::Registers, Setup::default(), |slot| {
        found = core::array::from_fn(|i| slot.get(page::REGISTERS + 8 * i as u64));
        floating = core::array::from_fn(|i| slot.get(page::FLOATING + 8 * i as u64));
    });
    check_eq!(t, ended, Ok(Ended::Exit(7)));
    // RAX, RBX, RCX ring, RDX pid, RSI tid, RDI argument, RBP, RSP, R8 CapSet, R9 to R15, RFLAGS.
    let mut expected = [0; 17];
    expected[2] = 33;
    expected[3] = 22;
    expected[4] = 11;
    expected[5] = PAGE;
    expected[7] = STACK_TOP;
    expected[8] = 44;
    expected[16] = 0x202;
    check_eq!(t, found, expected);
    check_eq!(t, floating, [0x1f80, 0x37f, 0, 0]);
    Ok(())
}

fn syscalls(t: &mut T<'_, Env>) -> Outcome {
    let mut results = [0; 8];
    let mut wrong = 0;
    let ended = whole(Program::Syscalls, Setup::default(), |slot| {
        results = core::array::from_fn(|i| slot.get(page::RESULTS + 8 * i as u64));
        wrong = slot.get(page::WRONG);
    });
    check_eq!(t, ended, Ok(Ended::Exit(8)));
    let unknown = abi_types::UNKNOWN_SYSCALL;
    let huge = (-1i64 as u64).wrapping_mul(1000).wrapping_add(-2i64 as u64);
    check_eq!(t, results.first_chunk(), Some(&[3004, huge, unknown, unknown, unknown]));
    check_eq!(t, results[5], STACK_TOP);
    check_eq!(t, results[6], results[7]);
    check_eq!(t, wrong, 0);
    Ok(())
}

/// What the entry and exit code alone may take, with a dispatcher that does next to nothing.
const NULL_ENTRY_LIMIT: u64 = 100;

fn null_entry(t: &mut T<'_, Env>) -> Outcome {
    let mut ticks = 0;
    let ended = whole(Program::NullEntry, Setup::default(), |slot| {
        ticks = slot.get(page::RESULTS);
    });
    check_eq!(t, ended, Ok(Ended::Exit(10)));
    // In the deterministic lane an instruction is a nanosecond, and the counter counts those; the
    // loop around the syscall has three instructions of its own beside it.
    let ns = require_ok!(t, kernel_arch::time::rate().ok_or("no clock")).ns(ticks);
    if t.env.words().value("count") == Some("instructions") {
        let instructions = ns / 1000 - 3;
        t.metric("null-entry", instructions, "instructions");
        check!(t, instructions <= NULL_ENTRY_LIMIT, "{instructions} instructions");
    }
    Ok(())
}

fn flags_in_a_syscall(t: &mut T<'_, Env>) -> Outcome {
    let mut after = 0;
    let ended = whole(Program::Flags, Setup::default(), |slot| after = slot.get(page::RESULTS));
    check_eq!(t, ended, Ok(Ended::Exit(11)));
    check_eq!(t, told().kernel_flags.load(Ordering::Relaxed) & HARMFUL_FLAGS, 0);
    // The user has them back: direction, nested task, alignment check, ID, and interrupts on.
    check_eq!(t, after & 0x244600, 0x244600);
    Ok(())
}

/// Nothing of the user's registers is there for the kernel to find, and the user has them back.
fn registers_in_a_syscall(t: &mut T<'_, Env>) -> Outcome {
    check_eq!(t, whole(Program::Tainted, Setup::default(), |_| ()), Ok(Ended::Exit(14)));
    check_eq!(t, told().tainted(), 0);
    Ok(())
}

fn no_stack(t: &mut T<'_, Env>) -> Outcome {
    check_eq!(t, whole(Program::NoStack, Setup::default(), |_| ()), Ok(Ended::Exit(12)));
    Ok(())
}

fn segments(t: &mut T<'_, Env>) -> Outcome {
    check_eq!(t, whole(Program::Segments, Setup::default(), |_| ()), Ok(Ended::Exit(13)));
    // The block is still found through GS.
    check_eq!(t, kernel_arch::cpu::this().index(), 0);
    Ok(())
}
