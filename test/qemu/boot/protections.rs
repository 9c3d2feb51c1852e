//! Every exception that can be provoked is reported as what it is, and every protection refuses
//! what it is there to refuse, on every CPU.
#![no_std]
#![no_main]

use core::sync::atomic::{AtomicUsize, Ordering};
use core_fault::Vector;
use kernel_arch::cpu;
use kernel_arch::trap::Fault;
use kernel_arch::trap::probe::{self, Probe};
use kernel_mm::probe::{self as user, UserProbe};
use kernel_mm::tables;
use kernel_sys::{Machine, smp};
use test_kernel::Env;
use test_kit::{Outcome, Suite, T, Test, check, check_eq, require};

kernel_sys::kernel_main!(main);

const SUITE: Suite<Env> = Suite::new(&[
    Test::new("protect.bits-read-back", bits_read_back),
    Test::new("protect.exceptions", exceptions),
    Test::new("protect.code-not-writable", code_not_writable),
    Test::new("protect.data-not-executable", data_not_executable),
    Test::new("protect.guards", guards),
    Test::new("protect.no-page-writable-and-executable", no_page_writable_and_executable),
    Test::new("protect.smap", smap),
    Test::new("protect.smep", smep),
    Test::new("protect.umip", umip),
    Test::new("protect.user-mode", user_mode),
    Test::new("protect.user-flags", user_flags),
    Test::new("protect.every-cpu", every_cpu),
]);

fn main(machine: &'static Machine) -> ! {
    test_kernel::run(machine, &SUITE)
}

fn bits_read_back(t: &mut T<'_, Env>) -> Outcome {
    for cpu in t.env.cpus() {
        let (has, on) = (cpu.features(), cpu.control().protection());
        check!(t, on.wp && on.nx, "cpu {}: {on}", cpu.index());
        check_eq!(t, (on.smep, on.smap, on.umip), (has.smep, has.smap, has.umip));
        check_eq!(t, cpu.control().pat, core_paging::entry::PAT_VALUE);
    }
    Ok(())
}

const EXCEPTIONS: [(Probe, u8); 9] = [
    (Probe::Divide, 0),
    (Probe::Debug, 1),
    (Probe::Nmi, 2),
    (Probe::Breakpoint, 3),
    (Probe::InvalidOpcode, 6),
    (Probe::SegmentNotPresent, 11),
    (Probe::StackFault, 12),
    (Probe::GeneralProtection, 13),
    (Probe::FloatingPoint, 16),
];

fn exceptions(t: &mut T<'_, Env>) -> Outcome {
    for (probe, vector) in EXCEPTIONS {
        match probe::run(probe) {
            Ok(()) => t.note_failure(format_args!("{probe:?} did not fault")),
            Err(fault) => check_eq!(t, fault.vector, Vector(vector)),
        }
    }
    // The CPU goes on as before.
    check_eq!(t, probe::run(Probe::Breakpoint).map_err(|f| f.vector), Err(Vector::BREAKPOINT));
    Ok(())
}

/// A page fault on a page that is mapped, of this kind.
fn is_refusal(fault: Option<Fault>, write: bool, fetch: bool) -> bool {
    fault.is_some_and(|f| {
        let code = f.error_code();
        f.vector == Vector::PAGE_FAULT
            && code.is_protection()
            && (code.is_write(), code.is_fetch()) == (write, fetch)
    })
}

fn code_not_writable(t: &mut T<'_, Env>) -> Outcome {
    for probe in [Probe::WriteCode, Probe::WriteConstant] {
        let fault = probe::run(probe).err();
        check!(t, is_refusal(fault, true, false), "{probe:?}: {fault:?}");
    }
    let fault = user::write_code_through_direct_map();
    check!(t, is_refusal(fault, true, false), "direct map: {fault:?}");
    Ok(())
}

fn data_not_executable(t: &mut T<'_, Env>) -> Outcome {
    for probe in [Probe::ExecuteData, Probe::ExecuteStack] {
        let fault = probe::run(probe).err();
        check!(t, is_refusal(fault, false, true), "{probe:?}: {fault:?}");
    }
    let fault = user::execute_direct_map().ok().flatten();
    check!(t, is_refusal(fault, false, true), "direct map: {fault:?}");
    Ok(())
}

fn guards(t: &mut T<'_, Env>) -> Outcome {
    for (what, fault) in
        [("null page", user::null_page()), ("stack guard", user::stack_guard().ok().flatten())]
    {
        let absent = fault
            .is_some_and(|f| f.vector == Vector::PAGE_FAULT && !f.error_code().is_protection());
        check!(t, absent, "{what}: {fault:?}");
    }
    Ok(())
}

fn no_page_writable_and_executable(t: &mut T<'_, Env>) -> Outcome {
    let audit = tables::audit();
    check_eq!(t, audit.writable_executable, 0);
    check_eq!(t, audit.user, 0);
    // The kernel's code, and nothing else, can be executed.
    check_eq!(t, audit.executable, t.env.memory.image[0] / 4096);
    t.metric("pages", audit.pages, "pages");
    Ok(())
}

fn smap(t: &mut T<'_, Env>) -> Outcome {
    if !cpu::this().features().smap {
        return t.skip("the CPU has no SMAP");
    }
    let read = user::run(UserProbe::KernelReads).ok().flatten();
    check!(t, is_refusal(read, false, false), "{read:?}");
    let write = user::run(UserProbe::KernelWrites).ok().flatten();
    check!(t, is_refusal(write, true, false), "{write:?}");
    Ok(())
}

fn smep(t: &mut T<'_, Env>) -> Outcome {
    if !cpu::this().features().smep {
        return t.skip("the CPU has no SMEP");
    }
    let fault = user::run(UserProbe::KernelExecutes).ok().flatten();
    check!(t, is_refusal(fault, false, true), "{fault:?}");
    Ok(())
}

fn umip(t: &mut T<'_, Env>) -> Outcome {
    if !cpu::this().features().umip {
        return t.skip("the CPU has no UMIP");
    }
    let fault = user::run(UserProbe::UserReadsTables).ok().flatten();
    check_eq!(t, fault.map(|f| (f.vector, f.from_user)), Some((Vector::GENERAL_PROTECTION, true)));
    Ok(())
}

const USER: [(UserProbe, u8); 3] =
    [(UserProbe::UserHalts, 13), (UserProbe::UserReadsKernel, 14), (UserProbe::UserWritesCode, 14)];

fn user_mode(t: &mut T<'_, Env>) -> Outcome {
    for (probe, vector) in USER {
        let Ok(Some(fault)) = user::run(probe) else {
            t.note_failure(format_args!("{probe:?} did not fault"));
            continue;
        };
        check_eq!(t, (fault.vector, fault.from_user), (Vector(vector), true));
        if vector == 14 {
            check!(t, fault.error_code().is_protection() && fault.error_code().is_user());
        }
    }
    Ok(())
}

/// Trap, interrupt enable, direction, nested task, alignment check: none may be set in the kernel.
const HARMFUL_FLAGS: u64 = 1 << 8 | 1 << 9 | 1 << 10 | 1 << 14 | 1 << 18;

fn user_flags(t: &mut T<'_, Env>) -> Outcome {
    for (probe, vector) in [(UserProbe::UserSetsFlags, 6), (UserProbe::UserSingleSteps, 1)] {
        let Ok(Some(fault)) = user::run(probe) else {
            t.note_failure(format_args!("{probe:?} did not fault"));
            continue;
        };
        check_eq!(t, (fault.vector, fault.from_user), (Vector(vector), true));
        // Without SMAP the kernel need not clear AC, and has no instruction for it.
        let ignored = if cpu::this().features().smap { 0 } else { 1 << 18 };
        check_eq!(t, fault.kernel_flags & HARMFUL_FLAGS & !ignored, 0);
    }
    // The per-CPU block is still found: the GS base went there and back.
    check_eq!(t, cpu::this().index(), 0);
    Ok(())
}

static AS_EXPECTED: AtomicUsize = AtomicUsize::new(0);
static OTHERWISE: AtomicUsize = AtomicUsize::new(0);

fn judge(as_expected: bool) {
    let counter = if as_expected { &AS_EXPECTED } else { &OTHERWISE };
    counter.fetch_add(1, Ordering::Relaxed);
}

/// All of the above, on the CPU this runs on.
fn all_probes() {
    for (probe, vector) in EXCEPTIONS {
        judge(probe::run(probe).err().is_some_and(|f| f.vector.0 == vector));
    }
    for (probe, vector) in USER {
        judge(user::run(probe).ok().flatten().is_some_and(|f| f.vector.0 == vector));
    }
    judge(is_refusal(probe::run(Probe::WriteCode).err(), true, false));
    judge(is_refusal(probe::run(Probe::ExecuteData).err(), false, true));
    let has = cpu::this().features();
    if has.smap {
        judge(is_refusal(user::run(UserProbe::KernelWrites).ok().flatten(), true, false));
    }
    if has.smep {
        judge(is_refusal(user::run(UserProbe::KernelExecutes).ok().flatten(), false, true));
    }
    if has.umip {
        let fault = user::run(UserProbe::UserReadsTables).ok().flatten();
        judge(fault.is_some_and(|f| f.vector == Vector::GENERAL_PROTECTION));
    }
}

fn every_cpu(t: &mut T<'_, Env>) -> Outcome {
    let cpus = t.env.cpus().len();
    for index in 0..cpus {
        require!(t, smp::run_on(index, all_probes), "cpu {index} is not there");
    }
    let has = cpu::this().features();
    let optional = usize::from(has.smap) + usize::from(has.smep) + usize::from(has.umip);
    check_eq!(t, OTHERWISE.load(Ordering::Relaxed), 0);
    check_eq!(t, AS_EXPECTED.load(Ordering::Relaxed), cpus * (14 + optional));
    Ok(())
}
