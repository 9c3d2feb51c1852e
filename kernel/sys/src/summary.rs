//! The machine for people to read.

use crate::Machine;
use core::fmt;
use core_topology::Place;
use kernel_arch::cpu::{CpuState, Features};
use kernel_arch::{apic, console, println};

/// A number of bytes.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            b if b < 10 << 20 => write!(f, "{} KiB", b >> 10),
            b if b < 10 << 30 => write!(f, "{} MiB", b >> 20),
            b => write!(f, "{} GiB", b >> 30),
        }
    }
}

/// Prints how long each step of the boot took.
pub fn print_steps(machine: &Machine) {
    println!("Boot steps             took us      at us");
    for step in machine.steps.timed() {
        println!(
            "  {:<18} {:>7}.{:01} {:>8}.{:01}",
            step.name,
            step.took_ns / 1000,
            step.took_ns / 100 % 10,
            step.at_ns / 1000,
            step.at_ns / 100 % 10
        );
    }
}

/// Prints the table of CPUs.
pub fn print_cpus(machine: &Machine) {
    let cpus = machine.cpus();
    println!("CPUs                   apic  package core thread  protections");
    for cpu in cpus {
        let Place { package, core, thread } = cpu.place();
        let state = match cpu.state() {
            CpuState::Online => "online",
            CpuState::Stopped => "stopped",
            CpuState::Absent => "absent",
        };
        println!(
            "  cpu {:<3} {:<12} {:>4}  {:>7} {:>4} {:>6}  {}",
            cpu.index(),
            state,
            cpu.apic_id(),
            package,
            core,
            thread,
            cpu.control().protection()
        );
    }
    if machine.muster.left_out() > 0 {
        println!("  {}", machine.muster);
    }
}

/// Prints everything.
pub fn print(machine: &Machine) {
    println!();
    print_steps(machine);
    println!();
    print_cpus(machine);
    println!();
    print_rest(machine);
}

fn print_rest(machine: &Machine) {
    Features::with_cpu_name(|name| println!("CPU          {name}"));
    if let Some(first) = machine.cpus().first() {
        println!("  has        {}", first.features());
        console::print(format_args!("  has not   "));
        for name in first.features().missing() {
            console::print(format_args!(" {name}"));
        }
        println!();
    }
    println!("  guards     {}", machine.speculation);
    let apic = match machine.apic {
        apic::Mode::X2Apic => "x2APIC",
        apic::Mode::XApic => "xAPIC",
        apic::Mode::Unknown => "none",
    };
    println!("  interrupts {apic}, {}", machine.controllers);
    if let Some((hz, source)) = machine.clock {
        println!("  clock      {}.{:06} MHz, {source}", hz / 1_000_000, hz % 1_000_000);
    }
    if let Some(agreed) = machine.agreed.filter(|agreed| agreed.compared > 0) {
        println!("             {agreed}");
    }
    println!("  entropy    {}", machine.entropy);
    let memory = &machine.memory;
    let counts = kernel_mm::frames::counts();
    println!("Memory       {} in all, {} free", Bytes(memory.total), Bytes(counts.free * 4096));
    println!(
        "  from map   {}, {} more from the loader",
        Bytes(memory.usable),
        Bytes(memory.reclaimed)
    );
    println!("  direct map {}, page tables {}", Bytes(memory.direct_mapped), Bytes(memory.tables));
    let [code, constants, data] = memory.image;
    println!(
        "  kernel     code {}, constants {}, data {}",
        Bytes(code),
        Bytes(constants),
        Bytes(data)
    );
    let heap = kernel_mm::heap::usage();
    println!("  heap       {} bytes in {} frames", heap.bytes, heap.frames);
    print_firmware(machine);
    println!("Loader       {} {}", machine.loader.0, machine.loader.1);
    println!("Symbols      {}", machine.symbols);
    match machine.screen {
        Some((columns, rows)) => println!("Screen       {columns} columns, {rows} rows"),
        None => println!("Screen       none"),
    }
    println!("Command line {}", machine.command_line);
    println!("Modules      {}", machine.modules.len());
    for module in &machine.modules {
        println!("  {:<40} {:>8} bytes  {}", module.path, module.data.len(), module.string);
    }
}

fn print_firmware(machine: &Machine) {
    let firmware = &machine.firmware;
    console::print(format_args!("Firmware     {}, ACPI tables", firmware.kind));
    for signature in &firmware.tables {
        let name = core::str::from_utf8(signature).unwrap_or("????");
        console::print(format_args!(" {name}"));
    }
    match firmware.unsound {
        0 => println!(),
        n => println!(" ({n} not sound)"),
    }
    println!(
        "  has        {} CPUs, {} I/O APICs, HPET {}, PM timer {}",
        firmware.enabled_cpus,
        firmware.io_apics.len(),
        if firmware.hpet.is_some() { "yes" } else { "no" },
        if firmware.pm_timer_port.is_some() { "yes" } else { "no" },
    );
    match firmware.power.map(|power| (power.off, power.reset)) {
        Some((Ok(off), reset)) => println!(
            "  power      off by port {:#x}, reset by {}",
            off.pm1a,
            if reset.is_some() { "its register" } else { "the chip set's" }
        ),
        Some((Err(why), _)) => println!("  power      cannot be switched off: {why}"),
        None => {}
    }
    for pci in &firmware.pci_segments {
        println!(
            "  PCI        segment {}, buses {} to {}, configuration at {:#x}",
            pci.segment,
            pci.buses.0,
            pci.buses.1,
            pci.base.as_u64()
        );
    }
}
