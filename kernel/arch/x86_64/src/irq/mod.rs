//! Interrupts of devices: the controllers, and the kernel's own drivers behind them.
//!
//! Which line is whose, on which vector, and what a controller is told is decided in `core_irq`; this module
//! writes it to the I/O APICs or the 8259s, and serves the lines of drivers that are part of the machine
//! layer. All lines go to the boot CPU. A driver that has something for the rest of the kernel says so, and the
//! function given to [`on_attention`] is called, as the last thing of the interrupt: it may switch. Other lines are
//! delegated ([`delegate`]): who has them is told within the interrupt ([`on_delegated`]).
//!
//! Decided in ADR 217.

mod io_apic;
mod pic;

pub use core_irq::{Line, Override, Polarity, RouteError, Trigger, Wiring, isa};
pub use io_apic::IoApic;

use crate::trap::TrapFrame;
use crate::{apic, console, cpu, hooks, time};
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use core_irq::{Chips, End, MAX_UNITS, Owner, PIC_VECTOR, Router, Taken, Unit, Write};
use smp_lock::{LockClass, TicketLock};
use spin::Once;

/// A driver of the machine layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Driver {
    /// The interval timer, where it is the one-shot timer.
    Timer = 0,
    /// The first serial port.
    Serial = 1,
    /// The keyboard.
    Keyboard = 2,
}

impl Driver {
    /// Its legacy interrupt.
    const fn irq(self) -> u8 {
        match self {
            Driver::Timer => 0,
            Driver::Serial => 4,
            Driver::Keyboard => 1,
        }
    }

    const fn from_number(number: u8) -> Option<Driver> {
        match number {
            0 => Some(Driver::Timer),
            1 => Some(Driver::Serial),
            2 => Some(Driver::Keyboard),
            _ => None,
        }
    }
}

/// What handles lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Controllers {
    /// The two 8259s.
    Pic,
    /// I/O APICs with so many lines together.
    IoApics {
        /// Their lines.
        lines: u32,
    },
}

impl fmt::Display for Controllers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Controllers::Pic => f.write_str("8259s with 16 lines"),
            Controllers::IoApics { lines } => write!(f, "I/O APICs with {lines} lines"),
        }
    }
}

struct State {
    router: Router,
    units: [Option<IoApic>; MAX_UNITS],
    overrides: [Option<Override>; MAX_OVERRIDES],
    destination: u8,
}

/// One for each legacy interrupt.
const MAX_OVERRIDES: usize = 16;

static STATE: TicketLock<Option<State>> = TicketLock::with_class(LockClass::Lines, None);
static ATTENTION: Once<fn(&TrapFrame)> = Once::new();
static DELEGATES: Once<fn(u32)> = Once::new();

/// Takes the controllers over, with every line masked: the I/O APICs if there are any and the CPUs have
/// local APICs they can reach, else the 8259s. On the boot CPU, after its local APIC.
pub fn init(
    io_apics: impl Iterator<Item = IoApic>,
    overrides: impl Iterator<Item = Override>,
) -> Controllers {
    pic::init();
    let mut units = [None; MAX_UNITS];
    // An entry holds eight bits of an APIC id.
    let destination = u8::try_from(apic::id()).ok().filter(|_| apic::mode() != apic::Mode::Unknown);
    if destination.is_some() {
        for (place, io_apic) in units.iter_mut().zip(io_apics) {
            *place = Some(io_apic);
        }
    }
    let unit = |unit: Option<IoApic>| unit.map_or(Unit::default(), |unit| unit.unit());
    let lines = units.iter().map(|u| unit(*u).lines).sum();
    let (chips, controllers) = if lines > 0 {
        (Chips::IoApics(units.map(unit)), Controllers::IoApics { lines })
    } else {
        apic::accept_pic();
        (Chips::Pic, Controllers::Pic)
    };
    let mut kept = [None; MAX_OVERRIDES];
    // The 8259s have their lines where they always were.
    let overrides = overrides.filter(|_| controllers != Controllers::Pic);
    kept.iter_mut().zip(overrides).for_each(|(place, o)| *place = Some(o));
    *STATE.lock() = Some(State {
        router: Router::new(chips),
        units,
        overrides: kept,
        destination: destination.unwrap_or(0),
    });
    controllers
}

/// Names what is called at the end of an interrupt in which a driver of the machine layer found something for
/// the rest of the kernel. Once.
pub fn on_attention(attend: fn(&TrapFrame)) {
    ATTENTION.call_once(|| attend);
}

/// Names what is called in an interrupt of a line that was delegated, with the number it was delegated under. Once.
pub fn on_delegated(serve: fn(u32)) {
    DELEGATES.call_once(|| serve);
}

/// Legacy interrupts that stay the kernel's, whether it uses them now or not: those of its timer, keyboard and serial
/// ports, and the one by which the second 8259 is connected.
const KEPT: [u8; 5] = [0, 1, 2, 3, 4];

/// Why a line cannot be delegated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotDelegated {
    /// It is one of the kernel's own.
    Kept,
    /// The controllers cannot.
    Route(RouteError),
}

impl fmt::Display for NotDelegated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotDelegated::Kept => f.write_str(
                "the kernel keeps the lines of its timer, its keyboard and its serial ports",
            ),
            NotDelegated::Route(error) => error.fmt(f),
        }
    }
}

/// Delegates a line, masked: its interrupts are told under that number.
pub fn delegate(wiring: Wiring, number: u32) -> Result<(), NotDelegated> {
    let mut state = STATE.lock();
    let state = state.as_mut().ok_or(NotDelegated::Route(RouteError::NoSuchLine))?;
    let overrides = state.overrides.iter().flatten().copied();
    let kept = |irq| isa(irq, overrides.clone()).map(|of| of.line) == Some(wiring.line);
    if KEPT.into_iter().any(kept) {
        return Err(NotDelegated::Kept);
    }
    let owner = Owner::Delegate(number);
    let given = state.router.give(wiring, owner, None, state.destination);
    let write = given.map_err(NotDelegated::Route)?;
    state.carry_out(write);
    Ok(())
}

/// Changes a line that was delegated, as `change` says.
fn change(change: impl FnOnce(&mut Router) -> Option<Write>) {
    if let Some(state) = STATE.lock().as_mut()
        && let Some(write) = change(&mut state.router)
    {
        state.carry_out(write);
    }
}

/// Takes a line back that was delegated: it is masked.
pub fn take_back(line: Line) {
    change(|router| router.take_back(line));
}

/// Masks a line that was delegated, or unmasks it.
pub fn set_open(line: Line, is_open: bool) {
    change(|router| router.set_open(line, is_open));
}

/// The last interrupt of a line by level is served.
pub fn acknowledge(line: Line) {
    change(|router| router.acknowledge(line));
}

impl State {
    fn carry_out(&self, write: Write) {
        match write {
            Write::PicMask(mask) => pic::set_mask(mask),
            Write::IoApic { unit, pin, entry } => {
                if let Some(Some(io_apic)) = self.units.get(unit) {
                    io_apic.set_entry(pin, entry);
                }
            }
        }
    }
}

/// Whether the only CPU of a machine without a local APIC asked itself for attention.
static SELF_ASKED: AtomicBool = AtomicBool::new(false);

/// Interrupts the only CPU of a machine without a local APIC, by its timer.
pub(crate) fn interrupt_self() {
    SELF_ASKED.store(true, Ordering::Relaxed);
    time::fire_soon();
}

/// Whether it still is to be interrupted.
pub(crate) fn is_self_asked() -> bool {
    SELF_ASKED.load(Ordering::Relaxed)
}

/// Gives a driver its line, and opens it.
pub(crate) fn attach(driver: Driver) -> Result<(), RouteError> {
    let mut state = STATE.lock();
    let state = state.as_mut().ok_or(RouteError::NoSuchLine)?;
    let overrides = state.overrides;
    let wiring = isa(driver.irq(), overrides.iter().flatten().copied());
    let wiring = wiring.ok_or(RouteError::NoSuchLine)?;
    // The timer's vector is the same whatever it comes through.
    let vector = (driver == Driver::Timer).then_some(PIC_VECTOR);
    let write =
        state.router.give(wiring, Owner::Driver(driver as u8), vector, state.destination)?;
    state.carry_out(write);
    if let Some(write) = state.router.set_open(wiring.line, true) {
        state.carry_out(write);
    }
    Ok(())
}

/// An interrupt that is neither the local timer's nor another CPU's.
pub(crate) fn take(frame: &TrapFrame) {
    let vector = frame.vector().0;
    let taken = STATE.lock().as_mut().map(|state| {
        let taken = state.router.take(vector, pic::is_in_service);
        // Under the lock: whoever acknowledges the line opens it after this.
        if let Some(write) = taken.mask {
            state.carry_out(write);
        }
        taken
    });
    let Some(Taken { owner, end, .. }) = taken else {
        apic::end_of_interrupt();
        return hooks::interrupt(frame);
    };
    if let Some((_, Owner::Delegate(number))) = owner {
        // Before the interrupt ends: a line that interrupts too often is masked by then.
        if let Some(serve) = DELEGATES.get() {
            serve(number);
        }
        finish(end);
        return attend(frame);
    }
    let driver = match owner {
        Some((_, Owner::Driver(number))) => Driver::from_number(number),
        _ => None,
    };
    match driver {
        Some(Driver::Timer) => {
            // Before the hook: it may switch to another context and come back much later.
            finish(end);
            if time::timer_fired() {
                // What the CPU asked of itself comes with the next interrupt, which is on its way.
                hooks::timer(frame);
            } else if SELF_ASKED.swap(false, Ordering::Relaxed) {
                attend(frame);
            }
        }
        Some(driver) => {
            // The device is quiet before the interrupt ends.
            let is_told = console::serve(driver);
            finish(end);
            if is_told {
                attend(frame);
            }
        }
        None => {
            finish(end);
            if owner.is_none() && end != End::Apic {
                cpu::this().spurious.fetch_add(1, Ordering::Relaxed);
            } else {
                hooks::interrupt(frame);
            }
        }
    }
}

fn attend(frame: &TrapFrame) {
    if let Some(attend) = ATTENTION.get() {
        attend(frame);
    }
}

fn finish(end: End) {
    match end {
        End::Apic => apic::end_of_interrupt(),
        End::First => pic::end(false),
        End::Both => pic::end(true),
        End::Nothing => {}
    }
}
