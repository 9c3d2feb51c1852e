//! Interrupt lines of programs, as the controllers say them.

use core_interrupt::Trigger;
use kernel_arch::irq::{self, NotDelegated};
use kernel_ops::lines::Wiring;

/// Whether a line can be given to a program: it is, and taken back.
pub(crate) fn try_line(wiring: Wiring) -> Result<(), NotDelegated> {
    irq::delegate(wiring_of(wiring), 0)?;
    irq::take_back(irq::Line(wiring.line));
    Ok(())
}

/// How a program's line is wired, as the controllers say it.
pub(crate) fn wiring_of(wiring: Wiring) -> irq::Wiring {
    irq::Wiring {
        line: irq::Line(wiring.line),
        trigger: match wiring.trigger {
            Trigger::Edge => irq::Trigger::Edge,
            Trigger::Level => irq::Trigger::Level,
        },
        polarity: match wiring.is_active_low {
            true => irq::Polarity::Low,
            false => irq::Polarity::High,
        },
    }
}
