//! Interrupt lines: which vector a line comes in on, whose it is, and what the controller is told.
//!
//! A line is numbered as the firmware numbers it (a global system interrupt); the sixteen of the legacy
//! controller are the first. [`isa`] finds the line of a legacy device. The [`Router`] gives lines to owners
//! and answers with what to write to which controller ([`Write`]): I/O APICs, or the two 8259s where
//! there is nothing else. It touches no register.
//!
//! Contract:
//! - a line has one owner, a vector one line; a line is masked until it is opened;
//! - a driver's line is open while its driver is served, which is right for devices that the driver makes
//!   quiet before the interrupt ends;
//! - a delegate's line by level is masked before the interrupt ends and stays so until it is acknowledged: a device
//!   that is served elsewhere, later, interrupts once. One by edge interrupts as often as its device does;
//! - a vector that is nobody's, and an interrupt the 8259 takes back, end without an owner.
//!
//! Decided in ADR 217.
#![no_std]

mod router;
mod wiring;

pub use router::{
    Chips, End, FIRST_VECTOR, LAST_VECTOR, MAX_UNITS, Owner, PIC_VECTOR, RouteError, Router, Taken,
    Unit, Write,
};
pub use wiring::{Line, Override, Polarity, Trigger, Wiring, isa};
