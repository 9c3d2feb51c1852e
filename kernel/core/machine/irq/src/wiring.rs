//! How a line is wired: its number, and what on it is an interrupt.

/// A line, by its number among all lines of the machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Line(pub u32);

/// What on a line is an interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trigger {
    /// A change.
    Edge,
    /// A state, for as long as it lasts.
    Level,
}

/// Which state of a line is the active one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Polarity {
    /// High.
    High,
    /// Low.
    Low,
}

/// A line and how it is driven.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wiring {
    /// Its number.
    pub line: Line,
    /// What is an interrupt.
    pub trigger: Trigger,
    /// Which state is active.
    pub polarity: Polarity,
}

/// What the firmware says of a legacy interrupt that is not wired as usual (ACPI 6.5, 5.2.12.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Override {
    /// The legacy number.
    pub irq: u8,
    /// The line it is on.
    pub line: Line,
    /// What is an interrupt, unless it is as usual.
    pub trigger: Option<Trigger>,
    /// Which state is active, unless it is as usual.
    pub polarity: Option<Polarity>,
}

impl Override {
    /// From the table's fields; flags that mean nothing are as usual.
    pub const fn from_flags(irq: u8, line: u32, flags: u16) -> Override {
        let polarity = match flags & 0b11 {
            0b01 => Some(Polarity::High),
            0b11 => Some(Polarity::Low),
            _ => None,
        };
        let trigger = match flags >> 2 & 0b11 {
            0b01 => Some(Trigger::Edge),
            0b11 => Some(Trigger::Level),
            _ => None,
        };
        Override { irq, line: Line(line), trigger, polarity }
    }
}

/// Legacy interrupts.
const ISA_LINES: u8 = 16;

/// The line of a legacy interrupt: that of its number, by edge and active high, unless the firmware says
/// otherwise. `None` if it has none: its number is out of range, or another is on its line.
pub fn isa(irq: u8, mut overrides: impl Iterator<Item = Override> + Clone) -> Option<Wiring> {
    if irq >= ISA_LINES {
        return None;
    }
    let usual = Line(irq.into());
    match overrides.clone().find(|o| o.irq == irq) {
        Some(other) => Some(Wiring {
            line: other.line,
            trigger: other.trigger.unwrap_or(Trigger::Edge),
            polarity: other.polarity.unwrap_or(Polarity::High),
        }),
        None if overrides.any(|o| o.line == usual) => None,
        None => Some(Wiring { line: usual, trigger: Trigger::Edge, polarity: Polarity::High }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legacy_interrupt_is_found_where_the_firmware_put_it() {
        // As QEMU and most firmware have it: the timer on 2, the SCI on 9 by level.
        let overrides = [Override::from_flags(0, 2, 0), Override::from_flags(9, 9, 0b1101)];
        let at = |irq| isa(irq, overrides.iter().copied());
        let usual =
            |line| Wiring { line: Line(line), trigger: Trigger::Edge, polarity: Polarity::High };
        assert_eq!(at(0), Some(usual(2)));
        assert_eq!(at(2), None, "another is on its line");
        assert_eq!((at(1), at(4)), (Some(usual(1)), Some(usual(4))));
        assert_eq!(at(9), Some(Wiring { trigger: Trigger::Level, ..usual(9) }));
        assert_eq!((at(15), at(16), at(255)), (Some(usual(15)), None, None));
    }

    #[test]
    fn every_flag() {
        let of = |flags| {
            let o = Override::from_flags(3, 30, flags);
            (o.polarity, o.trigger)
        };
        assert_eq!(of(0b0000), (None, None));
        assert_eq!(of(0b0101), (Some(Polarity::High), Some(Trigger::Edge)));
        assert_eq!(of(0b1111), (Some(Polarity::Low), Some(Trigger::Level)));
        assert_eq!(of(0b1010), (None, None), "reserved");
        assert_eq!(of(0xfff0), (None, None), "reserved");
    }
}
