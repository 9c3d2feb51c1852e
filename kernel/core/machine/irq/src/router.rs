//! The router: lines, their vectors and owners, and what controllers are told.

use crate::wiring::{Line, Polarity, Trigger, Wiring};
use core::fmt;

/// Vectors given to lines of I/O APICs: above those of the kernel itself (timer 48, interrupts between CPUs
/// 49), below the local APIC's own.
pub const FIRST_VECTOR: u8 = 64;
/// The last of them.
pub const LAST_VECTOR: u8 = 239;
/// The vector of the first line of the 8259s; the others follow.
pub const PIC_VECTOR: u8 = 32;
/// Lines of the two 8259s together.
const PIC_LINES: u32 = 16;
/// The line through which the second 8259 is connected to the first.
const CASCADE: u32 = 2;
/// I/O APICs that are used at most; a machine has one for each bridge that has lines.
pub const MAX_UNITS: usize = 8;
/// Lines in use at most: legacy devices, and a few of each bridge.
const MAX_ROUTES: usize = 64;

const ENTRY_LOW: u64 = 1 << 13;
const ENTRY_LEVEL: u64 = 1 << 15;
const ENTRY_MASKED: u64 = 1 << 16;
const ENTRY_DESTINATION: u32 = 56;

/// An I/O APIC: the lines it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unit {
    /// Its first line.
    pub first: u32,
    /// How many.
    pub lines: u32,
}

/// The interrupt controllers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chips {
    /// The two 8259s.
    Pic,
    /// I/O APICs; those without lines are not there.
    IoApics([Unit; MAX_UNITS]),
}

/// Who is told of a line's interrupts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// A driver that serves the device within the interrupt.
    Driver(u8),
    /// Somebody who serves it later and acknowledges.
    Delegate(u32),
}

/// What to tell a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Write {
    /// The redirection entry of a pin.
    IoApic {
        /// Which I/O APIC.
        unit: usize,
        /// Which of its pins.
        pin: u32,
        /// The entry.
        entry: u64,
    },
    /// The mask of both 8259s, the first's in the low byte.
    PicMask(u16),
}

/// How an interrupt is ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// At the local APIC.
    Apic,
    /// At the first 8259.
    First,
    /// At both.
    Both,
    /// Not at all: the 8259 took it back.
    Nothing,
}

/// What an interrupt means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct Taken {
    /// The line and who is told; `None` if it is nobody's.
    pub owner: Option<(Line, Owner)>,
    /// To be written before the interrupt is ended.
    pub mask: Option<Write>,
    /// How it is ended.
    pub end: End,
}

/// Why a line is not given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteError {
    /// No controller has it.
    NoSuchLine,
    /// It has an owner.
    Taken,
    /// There is no vector, or the one that is asked for is another line's or not a line's at all.
    NoVector,
    /// As many lines are in use as there can be.
    TooMany,
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RouteError::NoSuchLine => "no interrupt controller has that line",
            RouteError::Taken => "the line has an owner; it has to be let go first",
            RouteError::NoVector => "no vector is left for it",
            RouteError::TooMany => "64 lines are in use, which is the most there can be",
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Route {
    wiring: Wiring,
    vector: u8,
    destination: u8,
    owner: Owner,
    /// Whether it is to be open.
    is_open: bool,
    /// Whether an interrupt waits for its acknowledgement; it is masked until then.
    is_unanswered: bool,
}

/// The lines in use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Router {
    chips: Chips,
    routes: [Option<Route>; MAX_ROUTES],
}

impl Router {
    /// No line in use. What controllers have to be told then is their own code's: all masked.
    pub const fn new(chips: Chips) -> Router {
        Router { chips, routes: [None; MAX_ROUTES] }
    }

    fn unit_of(&self, line: Line) -> Option<(usize, u32)> {
        let Chips::IoApics(units) = &self.chips else { return None };
        let has = |unit: &Unit| line.0.checked_sub(unit.first).is_some_and(|pin| pin < unit.lines);
        let unit = units.iter().position(has)?;
        Some((unit, line.0 - units.get(unit)?.first))
    }

    fn routes(&self) -> impl Iterator<Item = &Route> {
        self.routes.iter().flatten()
    }

    fn route_mut(&mut self, is_it: impl Fn(&Route) -> bool) -> Option<&mut Route> {
        self.routes.iter_mut().flatten().find(|route| is_it(route))
    }

    /// Gives a line to an owner, masked; with a certain vector, or any. Interrupts go to the CPU with
    /// that APIC id.
    pub fn give(
        &mut self,
        wiring: Wiring,
        owner: Owner,
        vector: Option<u8>,
        destination: u8,
    ) -> Result<Write, RouteError> {
        let line = wiring.line;
        if self.routes().any(|route| route.wiring.line == line) {
            return Err(RouteError::Taken);
        }
        let is_free = |vector: u8| !self.routes().any(|route| route.vector == vector);
        let vector = match self.chips {
            Chips::Pic => {
                if line.0 >= PIC_LINES || line.0 == CASCADE {
                    return Err(RouteError::NoSuchLine);
                }
                let own = PIC_VECTOR + line.0 as u8;
                Some(own).filter(|own| vector.is_none_or(|asked| asked == *own))
            }
            Chips::IoApics(_) => {
                self.unit_of(line).ok_or(RouteError::NoSuchLine)?;
                match vector {
                    // The legacy vectors are not given out, but the timer's is asked for.
                    Some(asked) => {
                        let is_legacy = (PIC_VECTOR..PIC_VECTOR + PIC_LINES as u8).contains(&asked);
                        let is_a_lines = (FIRST_VECTOR..=LAST_VECTOR).contains(&asked) || is_legacy;
                        (is_a_lines && is_free(asked)).then_some(asked)
                    }
                    None => (FIRST_VECTOR..=LAST_VECTOR).find(|vector| is_free(*vector)),
                }
            }
        }
        .ok_or(RouteError::NoVector)?;
        let place =
            self.routes.iter_mut().find(|place| place.is_none()).ok_or(RouteError::TooMany)?;
        *place = Some(Route {
            wiring,
            vector,
            destination,
            owner,
            is_open: false,
            is_unanswered: false,
        });
        self.write(line).ok_or(RouteError::NoSuchLine)
    }

    /// Takes a line from its owner: it is masked. `None` if it has none.
    pub fn take_back(&mut self, line: Line) -> Option<Write> {
        self.route_mut(|route| route.wiring.line == line)?.is_open = false;
        let write = self.write(line);
        let place = self.routes.iter_mut().find(|p| p.is_some_and(|r| r.wiring.line == line))?;
        *place = None;
        write
    }

    /// Opens or masks a line; `None` if that changes nothing a controller has to be told.
    pub fn set_open(&mut self, line: Line, is_open: bool) -> Option<Write> {
        let route = self.route_mut(|route| route.wiring.line == line)?;
        let was = route.is_open && !route.is_unanswered;
        route.is_open = is_open;
        let is = route.is_open && !route.is_unanswered;
        if was == is { None } else { self.write(line) }
    }

    /// The owner of a line has served its interrupt; `None` if none was to be served.
    pub fn acknowledge(&mut self, line: Line) -> Option<Write> {
        let route = self.route_mut(|r| r.wiring.line == line && r.is_unanswered)?;
        route.is_unanswered = false;
        if route.is_open { self.write(line) } else { None }
    }

    /// The vector a line comes in on.
    pub fn vector_of(&self, line: Line) -> Option<u8> {
        self.routes().find(|route| route.wiring.line == line).map(|route| route.vector)
    }

    /// An interrupt came in on a vector. `is_in_service` asks the 8259s whether they mean it.
    pub fn take(&mut self, vector: u8, is_in_service: impl Fn(u8) -> bool) -> Taken {
        let end = match self.chips {
            Chips::IoApics(_) => End::Apic,
            Chips::Pic => match vector.wrapping_sub(PIC_VECTOR) {
                // The last line of each is what an interrupt becomes that went away (8259A data sheet).
                7 if !is_in_service(7) => {
                    return Taken { owner: None, mask: None, end: End::Nothing };
                }
                15 if !is_in_service(15) => {
                    // The first does not know that the second took it back.
                    return Taken { owner: None, mask: None, end: End::First };
                }
                0..8 => End::First,
                8..16 => End::Both,
                _ => End::Apic,
            },
        };
        let Some(route) = self.route_mut(|route| route.vector == vector) else {
            return Taken { owner: None, mask: None, end };
        };
        let (line, owner) = (route.wiring.line, route.owner);
        let waits_for_answer =
            matches!(owner, Owner::Delegate(_)) && route.wiring.trigger == Trigger::Level;
        route.is_unanswered |= waits_for_answer;
        let mask = if waits_for_answer { self.write(line) } else { None };
        Taken { owner: Some((line, owner)), mask, end }
    }

    /// What a line's controller is told for the line to be as it is now.
    fn write(&self, line: Line) -> Option<Write> {
        let is_heard = |route: &Route| route.is_open && !route.is_unanswered;
        match self.chips {
            Chips::Pic => {
                let heard = self.routes().filter(|route| is_heard(route));
                let lines = heard.fold(0u16, |lines, route| lines | 1 << route.wiring.line.0);
                // The second is heard through the first.
                let cascade = if lines >> 8 == 0 { 0 } else { 1 << CASCADE };
                Some(Write::PicMask(!(lines | cascade)))
            }
            Chips::IoApics(_) => {
                let route = self.routes().find(|route| route.wiring.line == line)?;
                let (unit, pin) = self.unit_of(line)?;
                let bit = |on: bool, bit: u64| if on { bit } else { 0 };
                let entry = u64::from(route.vector)
                    | bit(route.wiring.polarity == Polarity::Low, ENTRY_LOW)
                    | bit(route.wiring.trigger == Trigger::Level, ENTRY_LEVEL)
                    | bit(!is_heard(route), ENTRY_MASKED)
                    | u64::from(route.destination) << ENTRY_DESTINATION;
                Some(Write::IoApic { unit, pin, entry })
            }
        }
    }
}
