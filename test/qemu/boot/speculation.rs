//! What is on against speculation is what the CPU has and needs, on every CPU. The word `expect=` says
//! which kind of CPU this is, or which one `cpuid=` pretends.
#![no_std]
#![no_main]

use core_speculation::{Branches, Meltdown, Mitigations};
use kernel_sys::Machine;
use test_kernel::Env;
use test_kit::{Outcome, Suite, T, Test, check_eq};

kernel_sys::kernel_main!(main);

const SUITE: Suite<Env> = Suite::new(&[
    Test::new("speculation.plan", plan),
    Test::new("speculation.every-cpu", every_cpu),
]);

fn main(machine: &'static Machine) -> ! {
    test_kernel::run(machine, &SUITE)
}

/// Branches, barrier and STIBP, Meltdown, of the kinds this is run as.
fn expected(kind: &str) -> Option<(Branches, bool, bool, Meltdown)> {
    Some(match kind {
        "emulated" => (Branches::Open, false, false, Meltdown::Emulated),
        "skylake_off" => (Branches::Open, false, false, Meltdown::Affected),
        "cascade_lake" => (Branches::LastingIbrs, true, false, Meltdown::SaidNot),
        "zen4" => (Branches::AutomaticIbrs, true, true, Meltdown::KnownNot),
        "zen1" => (Branches::Open, true, false, Meltdown::KnownNot),
        _ => return None,
    })
}

fn plan(t: &mut T<'_, Env>) -> Outcome {
    let plan = t.env.speculation;
    let found = (plan.branches, plan.has_barrier, plan.has_stibp, plan.meltdown);
    check_eq!(t, Some(found), expected(t.env.words().value("expect").unwrap_or("none")));
    let is_off = t.env.words().value("mitigations") == Some("off");
    check_eq!(t, plan.mitigations == Mitigations::Off, is_off);
    Ok(())
}

/// Each CPU has set what was decided, the boot CPU and those that came later.
fn every_cpu(t: &mut T<'_, Env>) -> Outcome {
    let plan = t.env.speculation;
    for cpu in t.env.cpus() {
        let set = cpu.speculation();
        check_eq!(t, (cpu.index(), set.spec_ctrl), (cpu.index(), plan.spec_ctrl().unwrap_or(0)));
        check_eq!(t, set.automatic_ibrs, plan.has_automatic_ibrs());
        // Nothing of a program has run.
        check_eq!(t, set.barriers, 0);
    }
    Ok(())
}
