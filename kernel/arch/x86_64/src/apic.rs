//! The local APIC, in xAPIC and in x2APIC mode.
//!
//! Registers and their numbers: Intel SDM vol. 3, table 10-1 (memory) and 10-6 (MSRs, 0x800 plus the
//! offset over 16). The loader chose the mode; each access looks at the mode of the CPU it runs on,
//! kept in one word because all CPUs have the same.

use crate::cpu;
use crate::irq;
use crate::mmio::Mmio;
use crate::trap::{IPI_VECTOR, SPURIOUS_VECTOR, TIMER_VECTOR};
use core::sync::atomic::{AtomicU8, Ordering};
use core_address::PhysAddr;
use spin::Once;
use x86_64::registers::model_specific::Msr;

const IA32_APIC_BASE: u32 = 0x1b;
const BASE_ENABLED: u64 = 1 << 11;
const BASE_X2APIC: u64 = 1 << 10;
const BASE_ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// Register offsets in memory.
const ID: usize = 0x20;
const TASK_PRIORITY: usize = 0x80;
const END_OF_INTERRUPT: usize = 0xb0;
const SPURIOUS: usize = 0xf0;
const ERROR_STATUS: usize = 0x280;
const TIMER_ENTRY: usize = 0x320;
const PIN_0_ENTRY: usize = 0x350;
const TIMER_INITIAL: usize = 0x380;
const TIMER_CURRENT: usize = 0x390;
const TIMER_DIVIDE: usize = 0x3e0;
const COMMAND_LOW: usize = 0x300;
const COMMAND_HIGH: usize = 0x310;

const ENTRY_MASKED: u32 = 1 << 16;
/// The interrupt's vector comes from the 8259.
const ENTRY_EXTERNAL: u32 = 0b111 << 8;
const TIMER_BY_DEADLINE: u32 = 0b10 << 17;
/// Counts at the full rate: divided by one (Intel SDM vol. 3, figure 10-10).
const DIVIDE_BY_1: u32 = 0b1011;

const SPURIOUS_ENABLE: u32 = 1 << 8;
const COMMAND_NMI: u32 = 0b100 << 8;
const COMMAND_INIT: u32 = 0b101 << 8;
const COMMAND_ASSERT: u32 = 1 << 14;
const COMMAND_PENDING: u32 = 1 << 12;

/// How often a pending command is looked at before it counts as sent. A command takes
/// microseconds; a report must not hang on a broken one.
const COMMAND_POLLS: u32 = 1_000_000;

/// Bytes of the register page.
pub const REGISTER_BYTES: usize = 4096;

/// How the local APIC is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Mode {
    /// Not at all yet.
    Unknown = 0,
    /// Through memory.
    XApic = 1,
    /// Through MSRs.
    X2Apic = 2,
}

static MODE: AtomicU8 = AtomicU8::new(Mode::Unknown as u8);
static REGISTERS: Once<Mmio> = Once::new();

fn base() -> u64 {
    // SAFETY: every x86-64 CPU has this MSR.
    unsafe { Msr::new(IA32_APIC_BASE).read() }
}

/// Whether the CPU this runs on has a local APIC.
pub fn is_there() -> bool {
    cpu::this().features().apic
}

/// Where the registers are to be mapped, or `None` in x2APIC mode, which needs no mapping.
pub fn registers_to_map() -> Option<PhysAddr> {
    let base = base();
    if base & BASE_X2APIC != 0 { None } else { PhysAddr::new(base & BASE_ADDRESS) }
}

/// Takes the local APIC of the boot CPU into use; `registers` as asked for by [`registers_to_map`].
pub fn init(registers: Option<Mmio>) -> Mode {
    let mode = match registers {
        Some(registers) => {
            REGISTERS.call_once(|| registers);
            Mode::XApic
        }
        None => Mode::X2Apic,
    };
    // Relaxed: other CPUs are released after this with a store that orders it.
    MODE.store(mode as u8, Ordering::Relaxed);
    enable_on_this_cpu();
    mode
}

/// How the local APIC is reached.
pub fn mode() -> Mode {
    match MODE.load(Ordering::Relaxed) {
        1 => Mode::XApic,
        2 => Mode::X2Apic,
        _ => Mode::Unknown,
    }
}

fn read(register: usize) -> u32 {
    match mode() {
        Mode::XApic => REGISTERS.get().map_or(0, |r| r.read_u32(register)),
        // SAFETY: the registers used here exist in x2APIC mode, which the CPU is in.
        Mode::X2Apic => unsafe { Msr::new(msr(register)).read() as u32 },
        Mode::Unknown => 0,
    }
}

fn write(register: usize, value: u32) {
    match mode() {
        Mode::XApic => {
            if let Some(r) = REGISTERS.get() {
                r.write_u32(register, value);
            }
        }
        // SAFETY: as for `read`; the values written are legal for their registers.
        Mode::X2Apic => unsafe { Msr::new(msr(register)).write(value.into()) },
        Mode::Unknown => {}
    }
}

const fn msr(register: usize) -> u32 {
    0x800 + (register >> 4) as u32
}

/// Turns this CPU's local APIC on and lets every vector through.
pub(crate) fn enable_on_this_cpu() {
    let mut value = base() | BASE_ENABLED;
    if mode() == Mode::X2Apic {
        value |= BASE_X2APIC;
    }
    if value != base() {
        // SAFETY: enabling keeps the address and, if set, the mode; xAPIC to x2APIC is a legal step.
        unsafe { Msr::new(IA32_APIC_BASE).write(value) };
    }
    write(TASK_PRIORITY, 0);
    write(SPURIOUS, SPURIOUS_ENABLE | u32::from(SPURIOUS_VECTOR));
    // A write latches the errors so far; what they were does not matter at this point.
    write(ERROR_STATUS, 0);
}

/// Lets interrupts of the 8259s through to this CPU, where it has a local APIC.
pub(crate) fn accept_pic() {
    write(PIN_0_ENTRY, ENTRY_EXTERNAL);
}

/// This CPU's APIC id, from the APIC.
pub fn id() -> u32 {
    let raw = read(ID);
    if mode() == Mode::XApic { raw >> 24 } else { raw }
}

/// Ends the interrupt being served.
pub(crate) fn end_of_interrupt() {
    write(END_OF_INTERRUPT, 0);
}

fn command(apic_id: u32, low: u32) {
    match mode() {
        Mode::X2Apic => {
            let value = u64::from(apic_id) << 32 | u64::from(low);
            // SAFETY: a fixed or non-maskable interrupt to a CPU whose interrupt table is in place.
            unsafe {
                // Stores before the command must be seen by the CPU it goes to: the write is not
                // serialising (Intel SDM vol. 3, 10.12.3).
                core::arch::asm!("mfence", "lfence", options(nostack, preserves_flags));
                Msr::new(msr(COMMAND_LOW)).write(value);
            }
        }
        Mode::XApic => {
            wait_sent();
            write(COMMAND_HIGH, apic_id << 24);
            write(COMMAND_LOW, low);
            wait_sent();
        }
        Mode::Unknown => {}
    }
}

fn wait_sent() {
    for _ in 0..COMMAND_POLLS {
        if read(COMMAND_LOW) & COMMAND_PENDING == 0 {
            return;
        }
        cpu::relax();
    }
}

/// Asks the CPU with that APIC id for attention. Without a local APIC that is this CPU.
pub fn send_ipi(apic_id: u32) {
    if mode() == Mode::Unknown {
        return irq::interrupt_self();
    }
    command(apic_id, COMMAND_ASSERT | u32::from(IPI_VECTOR));
}

/// Interrupts the CPU with that APIC id whatever it does.
pub(crate) fn send_nmi(apic_id: u32) {
    command(apic_id, COMMAND_ASSERT | COMMAND_NMI);
}

/// Resets the CPU with that APIC id, which then waits to be started and executes nothing. Not for a CPU
/// that runs threads or holds anything.
pub(crate) fn send_init(apic_id: u32) {
    command(apic_id, COMMAND_ASSERT | COMMAND_INIT);
}

/// What the timer does when its time has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TimerMode {
    /// Nothing; it still counts.
    Masked,
    /// Counts down once, then interrupts.
    OneShot,
    /// Interrupts when the time-stamp counter reaches a value.
    TscDeadline,
}

/// Sets this CPU's timer up, stopped.
pub(crate) fn set_timer(mode: TimerMode) {
    write(TIMER_INITIAL, 0);
    write(TIMER_DIVIDE, DIVIDE_BY_1);
    let vector = u32::from(TIMER_VECTOR);
    write(
        TIMER_ENTRY,
        match mode {
            TimerMode::Masked => ENTRY_MASKED | vector,
            TimerMode::OneShot => vector,
            TimerMode::TscDeadline => TIMER_BY_DEADLINE | vector,
        },
    );
}

/// Starts this CPU's timer with a count; 0 stops it.
pub(crate) fn set_timer_count(count: u32) {
    write(TIMER_INITIAL, count);
}

/// What is left of the count.
pub(crate) fn timer_count() -> u32 {
    read(TIMER_CURRENT)
}
