//! The boot sequence, from the loader's handover to the kernel's main function.
//!
//! [`run`] goes as far as the loader's stack may be used: consoles, symbols, frames, own page
//! tables. Then the boot CPU moves to a stack with a guard page and [`go_on`] does the rest: local
//! APIC, other CPUs, firmware tables, clock, and taking the loader's memory back.

use crate::machine::{Firmware, Machine, Memory, Module};
use crate::steps::Steps;
use crate::{fatal, image, smp, summary, symbols, under};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core_address::PAGE_SIZE;
use core_cmdline::{CommandLine, Options};
use core_speculation::Plan;
use kernel_arch::boot::{Handover, MemoryKind};
use kernel_arch::cpu::{PerCpu, speculation};
use kernel_arch::firmware::FirmwareTables;
use kernel_arch::irq::IoApic;
use kernel_arch::time::{self, Hpet};
use kernel_arch::{apic, console, entropy, irq, log, power, println};
use kernel_mm::fallible::{try_box, try_collect, try_leak, try_push, try_string};
use kernel_mm::{OutOfMemory, device, frames, reclaim, tables};

kernel_arch::import_main! {
    /// The kernel's main function, named with `kernel_main!`.
    fn main(machine: &'static Machine) -> !;
}

/// What is carried from the first part to the second.
struct Progress {
    handover: Handover,
    options: Options,
    screen: Option<(usize, usize)>,
    symbols: usize,
    speculation: Plan,
    memory: Memory,
    cpu: &'static PerCpu,
    steps: Steps,
}

/// The first part, on the loader's stack.
pub(crate) fn run(handover: Handover) -> ! {
    let mut steps = Steps::new();
    steps.done("entry");
    let symbols = symbols::init(&handover);
    let (options, screen) = init_consoles(&handover);
    steps.done("consoles");
    let speculation = init_speculation(&options);

    let found = match frames::init(&handover) {
        Ok(found) => found,
        Err(OutOfMemory) => give_up("the memory map has no usable range for the frame allocator"),
    };
    steps.done("frames");
    let mut memory = Memory {
        total: handover
            .memory()
            .filter(|r| {
                !matches!(r.kind, MemoryKind::Reserved | MemoryKind::Bad | MemoryKind::Framebuffer)
            })
            .map(|r| r.bytes)
            .sum(),
        usable: found.usable * PAGE_SIZE,
        ..Memory::default()
    };
    log!("memory", "{} frames usable, {} for the allocator's bitmaps", found.usable, found.bitmaps);

    let built = match tables::build_and_activate(&handover) {
        Ok(built) => built,
        Err(error) => give_up(error),
    };
    memory.direct_mapped = built.direct_bytes;
    memory.tables = built.tables * PAGE_SIZE;
    memory.image = built.image_bytes;
    steps.done("page tables");
    log!("memory", "own page tables in use, {} frames", built.tables);

    let next = kernel_mm::cpu::finish_boot_cpu().and_then(|(cpu, stack)| {
        let progress =
            Progress { handover, options, screen, symbols, speculation, memory, cpu, steps };
        Ok((stack, try_box(progress)?))
    });
    match next {
        Ok((stack, progress)) => stack.enter(progress, second_part),
        Err(OutOfMemory) => give_up("not enough memory for the boot CPU's stacks"),
    }
}

/// The boot cannot go on; says why.
pub(crate) fn give_up(why: impl core::fmt::Display) -> ! {
    stop_booting(format_args!("{why}"))
}

#[allow(
    clippy::panic,
    reason = "without memory or page tables there is no kernel: the report says why"
)]
fn stop_booting(why: core::fmt::Arguments<'_>) -> ! {
    panic!("capOS cannot boot on this machine: {why}")
}

fn init_consoles(handover: &Handover) -> (Options, Option<(usize, usize)>) {
    let words = CommandLine(handover.command_line());
    let options = words.options(|_| ());
    fatal::choose_end(options.exit_debug, options.at_end);
    console::choose(options.log_serial, options.log_screen);
    let (name, version) = handover.loader();
    println!("capOS kernel, {} image, started by {name} {version}", image::NAME);
    words.options(|bad| log!("cmdline", "{bad}"));
    let (com1, com2) = console::serial_ports();
    log!("console", "COM1 {}, COM2 {}", present(com1), present(com2));
    let screen = handover.framebuffer().and_then(console::attach_screen);
    match screen {
        Some((columns, rows)) => log!("console", "screen {columns}x{rows}"),
        None if handover.framebuffer_count() > 0 => {
            log!("console", "no screen: a frame buffer with 32-bit RGB pixels would be one");
        }
        None => log!("console", "no screen"),
    }
    (options, screen)
}

fn present(there: bool) -> &'static str {
    if there { "present" } else { "absent" }
}

fn second_part(progress: Box<Progress>) -> ! {
    match go_on(*progress) {
        Ok(machine) => main(machine),
        Err(OutOfMemory) => give_up("out of memory during boot"),
    }
}

/// The second part, on the boot CPU's own stack.
fn go_on(progress: Progress) -> Result<&'static Machine, OutOfMemory> {
    let Progress { handover, options, screen, symbols, speculation, mut memory, cpu, mut steps } =
        progress;
    steps.done("stacks");
    let apic = init_apic(&handover);
    steps.done("local APIC");

    // Early: a CPU parked by the loader spins, and under emulation takes time from this one.
    // The interval timer is there once.
    let is_alone = options.wants_pit || apic == apic::Mode::Unknown;
    let limit = if is_alone { Some(1) } else { options.max_cpus };
    let started = smp::start_all(&handover, cpu, limit)?;
    steps.done("other CPUs");
    let (online, all) = (kernel_arch::cpu::online_count(), kernel_arch::cpu::all().len());
    log!("cpu", "{online} of {all} CPUs in the kernel");
    if started.muster.left_out() > 0 {
        log!("cpu", "{}", started.muster);
    }

    let firmware = read_firmware(&handover)?;
    steps.done("firmware tables");

    let hpet = firmware.hpet.and_then(|phys| {
        let registers = device::map(&handover, phys, Hpet::REGISTER_BYTES).ok()?;
        Some((Hpet::start(registers)?, phys))
    });
    let clock = time::calibrate(hpet.as_ref().map(|(hpet, _)| hpet), handover.tsc_hz());
    steps.done("clock");
    match clock {
        Some((rate, source)) => log!("clock", "TSC {} kHz, {source}", rate.hz() / 1000),
        None => log!("clock", "no reference to measure the TSC with: no times in this log"),
    }
    let wall_clock = read_wall_clock(&firmware);
    plant_skew(&options);
    let agreed = clock.map(|_| time::agree(hpet));
    if let Some(agreed) = agreed.filter(|agreed| agreed.compared > 0) {
        log!("clock", "{agreed}");
    }
    steps.done("clocks agree");
    let controllers = init_interrupts(&handover, &firmware, &options);
    log!("irq", "{controllers}");
    let consoles = console::start_interrupts();
    log!("console", "{consoles}");
    let timer = time::init_timer(options.wants_pit);
    match timer {
        Some(source) => log!("clock", "one-shot timer: {source}"),
        None => log!("clock", "no one-shot timer: it cannot be measured without a clock"),
    }
    steps.done("timer");

    let gathered = entropy::gather(&handover);
    log!("entropy", "{gathered}");
    steps.done("entropy");

    let mut machine = Machine {
        loader: (try_string(handover.loader().0)?, try_string(handover.loader().1)?),
        command_line: try_string(handover.command_line())?,
        options,
        memory,
        firmware,
        speculation,
        missing_cpus: started.missing,
        muster: started.muster,
        apic,
        clock: clock.map(|(rate, source)| (rate.hz(), source)),
        hpet: hpet.map(|(hpet, _)| hpet),
        agreed,
        wall_clock,
        controllers,
        consoles,
        timer,
        entropy: gathered,
        modules: copy_modules(&handover)?,
        screen,
        symbols,
        steps,
    };
    match reclaim::take_back(handover) {
        Ok(frames) => {
            memory.reclaimed = frames * PAGE_SIZE;
            log!("memory", "{frames} frames taken back from the loader");
        }
        Err(why) => log!("memory", "the loader's memory stays: {why:?}"),
    }
    machine.memory = memory;
    machine.steps.done("loader's memory");
    Ok(try_leak(machine)?)
}

/// Turns on what the CPU has against speculation, or stops on one that programs could read the kernel on.
fn init_speculation(options: &Options) -> Plan {
    let planted = options.planted_cpu.filter(|_| cfg!(checked));
    match (options.planted_cpu, planted) {
        (Some(_), None) => log!("cpu", "cpuid= has no effect: it takes a checked image"),
        (Some(_), Some(_)) => log!("cpu", "decides as on another CPU, as cpuid= asks"),
        (None, _) => {}
    }
    match speculation::init(options.mitigations, planted) {
        Ok(plan) => {
            log!("cpu", "speculation: {plan}");
            plan
        }
        Err(refused) => fatal::refuse(refused),
    }
}

/// Makes the time-stamp counters disagree, if a checked image is told to.
fn plant_skew(options: &Options) {
    let Some(skew) = options.tsc_skew else { return };
    #[cfg(checked)]
    if let Some(rate) = time::rate() {
        use core_cmdline::SkewFault;
        use time::skew::{Planted, plant};
        let ticks = u128::from(skew.ns) * u128::from(rate.hz()) / 1_000_000_000;
        let kind = match skew.fault {
            SkewFault::None => Planted::Settable,
            SkewFault::Fixed => Planted::Fixed,
            SkewFault::Drift => Planted::Drifting,
        };
        plant(ticks as u64, kind);
        log!("clock", "TSCs are made to disagree by {} ns, as tsc_skew= asks", skew.ns);
    }
    #[cfg(not(checked))]
    log!("clock", "tsc_skew={} has no effect: it takes a checked image", skew.ns);
}

/// What the clock chip shows, with the time of this system.
fn read_wall_clock(firmware: &Firmware) -> Option<(u64, u64)> {
    let Some(registers) = time::rtc::read_clock(firmware.century_register) else {
        log!("clock", "no clock chip: the date is not known");
        return None;
    };
    match registers.unix_s() {
        Ok(unix_s) => {
            log!("clock", "the clock chip shows {unix_s} s since 1970, taken as UTC");
            Some((unix_s, time::now_ns()?))
        }
        Err(why) => {
            log!("clock", "the clock chip shows no date: {why}");
            None
        }
    }
}

/// Takes over what handles interrupt lines.
fn init_interrupts(
    handover: &Handover,
    firmware: &Firmware,
    options: &Options,
) -> irq::Controllers {
    let io_apics = firmware.io_apics.iter().filter(|_| !options.wants_pic).filter_map(|io_apic| {
        let (phys, first) = *io_apic;
        let registers = device::map(handover, phys, IoApic::REGISTER_BYTES);
        let taken = registers.ok().and_then(|registers| IoApic::take_over(registers, first));
        if taken.is_none() {
            log!("irq", "the I/O APIC at {:#x} does not answer and is not used", phys.as_u64());
        }
        taken
    });
    let controllers = irq::init(io_apics, firmware.overrides.iter().copied());
    irq::on_attention(under::attend);
    irq::on_delegated(under::line_raised);
    controllers
}

fn init_apic(handover: &Handover) -> apic::Mode {
    if !apic::is_there() {
        log!(
            "cpu",
            "no local APIC: interrupts come through the 8259s, and the boot CPU runs alone"
        );
        return apic::Mode::Unknown;
    }
    let registers = match apic::registers_to_map() {
        None => None,
        Some(phys) => match device::map(handover, phys, apic::REGISTER_BYTES) {
            Ok(registers) => Some(registers),
            Err(error) => give_up(format_args!("the local APIC cannot be mapped: {error:?}")),
        },
    };
    apic::init(registers)
}

fn read_firmware(handover: &Handover) -> Result<Firmware, OutOfMemory> {
    let mut firmware = Firmware { kind: handover.firmware(), ..Firmware::default() };
    let tables = match FirmwareTables::find(handover) {
        None => {
            log!("acpi", "the loader found no ACPI tables");
            return Ok(firmware);
        }
        Some(Err(unsound)) => {
            log!("acpi", "the root table {unsound}");
            return Ok(firmware);
        }
        Some(Ok(tables)) => tables,
    };
    for table in tables.each() {
        match table {
            Ok(signature) => try_push(&mut firmware.tables, signature)?,
            Err(unsound) => {
                log!("acpi", "a table {unsound}");
                firmware.unsound += 1;
            }
        }
    }
    firmware.enabled_cpus = tables.cpus().filter(|c| c.is_enabled).count();
    firmware.io_apics = try_collect(tables.io_apics())?;
    firmware.overrides = try_collect(tables.overrides())?;
    firmware.hpet = tables.hpet();
    firmware.pm_timer_port = tables.pm_timer_port();
    firmware.pci_segments = try_collect(tables.pci_segments())?;
    firmware.century_register = tables.century_register();
    let found = tables.power();
    power::init(found);
    firmware.power = Some(found);
    if let Err(why) = found.off {
        log!("acpi", "the machine cannot be switched off: {why}");
    }
    let started = handover.cpus().count();
    if firmware.enabled_cpus > started {
        log!("acpi", "{} CPUs listed, the loader started {started}", firmware.enabled_cpus);
    }
    Ok(firmware)
}

fn copy_modules(handover: &Handover) -> Result<Vec<Module>, OutOfMemory> {
    let mut modules = Vec::new();
    for module in handover.modules() {
        let copy = |text: &str| -> Result<String, OutOfMemory> { try_string(text) };
        let module =
            Module { path: copy(module.path)?, string: copy(module.string)?, data: module.data };
        try_push(&mut modules, module)?;
    }
    Ok(modules)
}

/// Prints what the boot found.
pub fn print_summary(machine: &Machine) {
    summary::print(machine);
}
