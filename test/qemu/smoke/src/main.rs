//! The smoke suite: a machine that came up is whole, and ends as it should.
//!
//! Boots through every way in: direct, CD, USB disk; checked and release.
#![no_std]
#![no_main]

use core::sync::atomic::{AtomicUsize, Ordering};
use kernel_arch::{cpu, time};
use kernel_sys::fatal::{Cause, Fatal};
use kernel_sys::smp;
use test_kernel::{Env, expect_end};
use test_kit::{Outcome, Suite, T, Test, check, check_eq, require, require_eq, require_some};

kernel_sys::kernel_main!(main);

const SUITE: Suite<Env> = Suite::new(&[
    Test::new("smoke.loader", loader),
    Test::new("smoke.memory", memory),
    Test::new("smoke.firmware", firmware),
    Test::new("smoke.clock", clock),
    Test::new("smoke.cpus", cpus),
    Test::new("smoke.work_on_every_cpu", work_on_every_cpu),
    Test::new("smoke.panic_stops_the_others", panic_stops_the_others),
]);

fn main(machine: Env) -> ! {
    test_kernel::run(machine, &SUITE)
}

fn loader(t: &mut T<'_, Env>) -> Outcome {
    check_eq!(t, t.env.loader.0.as_str(), "capOS loader");
    check!(t, t.env.options.exit_debug);
    check!(t, t.env.symbols > 100, "{} symbols", t.env.symbols);
    Ok(())
}

fn memory(t: &mut T<'_, Env>) -> Outcome {
    let memory = t.env.memory;
    // Every configuration gives at least 256 MiB, of which firmware keeps a little.
    require!(t, memory.usable > 192 << 20, "{} bytes", memory.usable);
    check!(t, memory.total >= memory.usable);
    check!(t, memory.reclaimed > 0);
    check!(t, memory.image.iter().all(|bytes| *bytes > 0), "{:?}", memory.image);
    Ok(())
}

fn firmware(t: &mut T<'_, Env>) -> Outcome {
    let firmware = &t.env.firmware;
    let has = |signature: &[u8; 4]| firmware.tables.contains(signature);
    check!(t, has(b"APIC") && has(b"FACP"), "{:?}", firmware.tables);
    check_eq!(t, firmware.unsound, 0);
    check!(t, !firmware.io_apics.is_empty());
    Ok(())
}

fn clock(t: &mut T<'_, Env>) -> Outcome {
    let first_ns = require_some!(t, time::now_ns());
    let mut last_ns = first_ns;
    for _ in 0..1000 {
        let now_ns = require_some!(t, time::now_ns());
        require!(t, now_ns >= last_ns, "{now_ns} after {last_ns}");
        last_ns = now_ns;
    }
    check!(t, last_ns > first_ns);
    for step in t.env.steps.timed() {
        t.metric(step.name, step.took_ns, "ns");
    }
    Ok(())
}

fn cpus(t: &mut T<'_, Env>) -> Outcome {
    check_eq!(t, t.env.missing_cpus, 0);
    // The loader's list against the firmware's own table.
    check_eq!(t, cpu::online_count(), t.env.firmware.enabled_cpus);
    check_eq!(t, cpu::all().len(), t.env.firmware.enabled_cpus);
    Ok(())
}

static WORKED: AtomicUsize = AtomicUsize::new(0);

fn work_on_every_cpu(t: &mut T<'_, Env>) -> Outcome {
    for round in 1..=100 {
        smp::run_on_others(|| {
            WORKED.fetch_add(1, Ordering::Relaxed);
        });
        require_eq!(t, WORKED.load(Ordering::Relaxed), round * (cpu::online_count() - 1));
    }
    Ok(())
}

fn panic_stops_the_others(t: &mut T<'_, Env>) -> Outcome {
    fn judge(fatal: &Fatal<'_>) -> Result<(), &'static str> {
        match fatal.cause {
            Cause::Panic(_) => {}
            Cause::Fault(_) => return Err("the end is a fault, not a panic"),
        }
        let others = cpu::all().len() - 1;
        if fatal.stopped != (others, others) {
            return Err("not every other CPU was stopped");
        }
        if fatal.frames < 2 {
            return Err("the backtrace does not reach the test");
        }
        Ok(())
    }
    expect_end(t, judge, || panic!("the smoke suite ends here, on purpose"))
}
