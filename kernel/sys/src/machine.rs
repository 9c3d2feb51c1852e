//! What the boot found: what a kernel starts from.

use crate::steps::Steps;
use alloc::string::String;
use alloc::vec::Vec;
use core_address::PhysAddr;
use core_cmdline::{CommandLine, Options};
use core_speculation::Plan;
use core_topology::Muster;
use kernel_arch::apic;
use kernel_arch::console::ByInterrupt;
use kernel_arch::cpu::{self, PerCpu};
use kernel_arch::entropy::Gathered;
use kernel_arch::firmware::PciSegment;
use kernel_arch::irq::{Controllers, Override};
use kernel_arch::power::Power;
use kernel_arch::time::{Agreed, Hpet, Source, TimerSource};

/// A file that was loaded beside the kernel.
#[derive(Debug)]
pub struct Module {
    /// Its path on the boot medium.
    pub path: String,
    /// The text given with it.
    pub string: String,
    /// Its content.
    pub data: &'static [u8],
}

/// Memory, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    /// Of every kind but reserved and bad.
    pub total: u64,
    /// Given to the frame allocator at first.
    pub usable: u64,
    /// Taken back from the loader.
    pub reclaimed: u64,
    /// Direct map.
    pub direct_mapped: u64,
    /// Page tables.
    pub tables: u64,
    /// The kernel's code, constants and data.
    pub image: [u64; 3],
}

/// What the firmware's tables said.
#[derive(Debug, Default)]
pub struct Firmware {
    /// BIOS, UEFI.
    pub kind: &'static str,
    /// Signatures of the sound tables.
    pub tables: Vec<[u8; 4]>,
    /// Tables that were not sound.
    pub unsound: usize,
    /// CPUs that may be used.
    pub enabled_cpus: usize,
    /// I/O APICs: where they are, and their first lines.
    pub io_apics: Vec<(PhysAddr, u32)>,
    /// Legacy interrupts that are not wired as usual.
    pub overrides: Vec<Override>,
    /// The HPET.
    pub hpet: Option<PhysAddr>,
    /// The power management timer's port.
    pub pm_timer_port: Option<u16>,
    /// How the machine is switched off and reset; `None` without tables.
    pub power: Option<Power>,
    /// The clock chip's register for the century.
    pub century_register: Option<u8>,
    /// PCI configuration spaces.
    pub pci_segments: Vec<PciSegment>,
}

/// The machine, once it is up.
#[derive(Debug)]
pub struct Machine {
    /// Name and version of the loader.
    pub loader: (String, String),
    /// The command line's text.
    pub command_line: String,
    /// What the kernel read from it.
    pub options: Options,
    /// Memory.
    pub memory: Memory,
    /// Firmware.
    pub firmware: Firmware,
    /// What is on against speculation.
    pub speculation: Plan,
    /// CPUs that the loader could not start or that did not report in.
    pub missing_cpus: usize,
    /// How many CPUs are used, and how many there are that are not.
    pub muster: Muster,
    /// How the local APIC is reached.
    pub apic: apic::Mode,
    /// The clock's frequency and where it comes from.
    pub clock: Option<(u64, Source)>,
    /// Seconds since 1970 (UTC) that the clock chip showed at boot, and what the clock then read in ns.
    pub wall_clock: Option<(u64, u64)>,
    /// What handles interrupt lines.
    pub controllers: Controllers,
    /// Which consoles interrupt.
    pub consoles: ByInterrupt,
    /// What drives the one-shot timer.
    pub timer: Option<TimerSource>,
    /// The HPET, running.
    pub hpet: Option<Hpet>,
    /// Whether the CPUs' counters agree, and what is the clock if not.
    pub agreed: Option<Agreed>,
    /// How good random numbers are.
    pub entropy: Gathered,
    /// Files loaded beside the kernel.
    pub modules: Vec<Module>,
    /// Columns and rows of the screen.
    pub screen: Option<(usize, usize)>,
    /// How many symbols the kernel's file has.
    pub symbols: usize,
    /// How long each step took.
    pub steps: Steps,
}

impl Machine {
    /// The CPUs in the kernel, by index.
    pub fn cpus(&self) -> &'static [&'static PerCpu] {
        cpu::all()
    }

    /// The command line, for words the kernel does not read itself.
    pub fn words(&self) -> CommandLine<'_> {
        CommandLine(&self.command_line)
    }

    /// The module whose path ends in `/name`.
    pub fn module(&self, name: &str) -> Option<&Module> {
        self.modules.iter().find(|m| m.path.rsplit('/').next() == Some(name))
    }
}
