//! Power off and reset, as the firmware's tables describe them.
//!
//! The fixed table (FADT) names registers; the value that means "off" is in a package `\_S5` of the byte
//! code of DSDT or SSDTs. Byte code is not run: the package is looked for, and believed if it is a plain one
//! of numbers. ACPI 6.5, 4.8.3.2 (PM1 control), 4.8.3.6 (reset), 5.2.9 (FADT), 7.4.2 (`\_Sx`), 20.2 (AML).
//!
//! Decided in ADR 262.

use crate::{HEADER_BYTES, u32_at, u64_at};
use core::fmt;

/// Offsets in the FADT.
const DSDT: usize = 40;
const SMI_COMMAND: usize = 48;
const ACPI_ENABLE: usize = 52;
const PM1A_CONTROL: usize = 64;
const PM1B_CONTROL: usize = 68;
const CENTURY: usize = 108;
const FLAGS: usize = 112;
const RESET_REGISTER: usize = 116;
const RESET_VALUE: usize = 128;
const X_DSDT: usize = 140;
const X_PM1A_CONTROL: usize = 172;
const X_PM1B_CONTROL: usize = 184;

const FLAG_RESET: u32 = 1 << 10;
const FLAG_HARDWARE_REDUCED: u32 = 1 << 20;

/// Address spaces of a register (ACPI 6.5, 5.2.3.2).
const IN_PORTS: u8 = 1;

/// PM1 control: the machine's events reach the system.
pub const SCI_ENABLE: u16 = 1 << 0;
const SLEEP_TYPE_SHIFT: u32 = 10;
const SLEEP_TYPE: u16 = 7 << SLEEP_TYPE_SHIFT;
const SLEEP_ENABLE: u16 = 1 << 13;

/// Where the table of byte code lies that a FADT names; `None` if it names none.
pub fn dsdt_address(fadt: &[u8]) -> Option<u64> {
    let wide = u64_at(fadt, X_DSDT).filter(|address| *address != 0);
    wide.or_else(|| u32_at(fadt, DSDT).map(u64::from)).filter(|address| *address != 0)
}

/// The clock chip's register for the century that a FADT names; `None` if it names none.
pub fn century_register(fadt: &[u8]) -> Option<u8> {
    fadt.get(CENTURY).copied().filter(|register| *register != 0)
}

/// What `\_S5` says is to be written as sleep type, to the first and the second control register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SleepTypes {
    /// For PM1a.
    pub first: u8,
    /// For PM1b.
    pub second: u8,
}

/// Why a table's byte code has no `\_S5` that can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadS5 {
    /// The name is not there.
    Missing,
    /// What is behind the name is not a package.
    NotAPackage,
    /// The package is longer than the table, or shorter than what is in it.
    Length,
    /// An element is not a number.
    NotANumber,
    /// It has fewer than two elements, or more than it says.
    Count,
    /// A sleep type has three bits.
    TooLarge,
}

impl fmt::Display for BadS5 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadS5::Missing => "no table has a name _S5",
            BadS5::NotAPackage => "_S5 is not a package; a plain package of numbers is understood",
            BadS5::Length => "the package _S5 does not fit its table or its own length",
            BadS5::NotANumber => {
                "the package _S5 has an element that is not a number; only numbers are understood"
            }
            BadS5::Count => {
                "the package _S5 has not the two numbers it takes, or more than it says"
            }
            BadS5::TooLarge => "a sleep type in _S5 is above 7",
        })
    }
}

const NAME_OP: u8 = 0x08;
const PACKAGE_OP: u8 = 0x12;
const ROOT: u8 = b'\\';
const S5: &[u8; 4] = b"_S5_";

/// Finds `\_S5` in a whole table of byte code: the first place where its name is declared decides.
pub fn sleep_types(table: &[u8]) -> Result<SleepTypes, BadS5> {
    let code = table.get(HEADER_BYTES..).unwrap_or(&[]);
    let is_declared = |at: usize| {
        let (before, name) = code.split_at(at);
        name.starts_with(S5) && (before.ends_with(&[NAME_OP]) || before.ends_with(&[NAME_OP, ROOT]))
    };
    let at = (0..code.len()).find(|at| is_declared(*at)).ok_or(BadS5::Missing)?;
    match code.get(at + S5.len()..) {
        Some([PACKAGE_OP, package @ ..]) => types_of(package),
        _ => Err(BadS5::NotAPackage),
    }
}

/// Reads a package from its length on.
fn types_of(package: &[u8]) -> Result<SleepTypes, BadS5> {
    let (length, bytes) = package_length(package).ok_or(BadS5::Length)?;
    let body = package.get(bytes..length).ok_or(BadS5::Length)?;
    let (&count, mut elements) = body.split_first().ok_or(BadS5::Length)?;
    let mut types = [0_u64; 2];
    let mut found = 0_usize;
    while !elements.is_empty() {
        let (number, rest) = number(elements)?;
        if let Some(place) = types.get_mut(found) {
            *place = number;
        }
        found += 1;
        elements = rest;
    }
    if found < 2 || found > usize::from(count) {
        return Err(BadS5::Count);
    }
    match types.map(u8::try_from) {
        [Ok(first @ 0..=7), Ok(second @ 0..=7)] => Ok(SleepTypes { first, second }),
        _ => Err(BadS5::TooLarge),
    }
}

/// The length a package says it has, itself included, and in how many bytes.
fn package_length(bytes: &[u8]) -> Option<(usize, usize)> {
    let (&lead, rest) = bytes.split_first()?;
    let more = usize::from(lead >> 6);
    if more == 0 {
        return Some((usize::from(lead & 0x3f), 1));
    }
    let high = rest.get(..more)?.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    Some((high << 4 | usize::from(lead & 0xf), 1 + more))
}

/// A number, and what is behind it.
fn number(bytes: &[u8]) -> Result<(u64, &[u8]), BadS5> {
    let (&op, rest) = bytes.split_first().ok_or(BadS5::Length)?;
    let width = match op {
        0 | 1 => return Ok((op.into(), rest)),
        0xff => return Ok((u64::MAX, rest)),
        0x0a => 1,
        0x0b => 2,
        0x0c => 4,
        0x0e => 8,
        _ => return Err(BadS5::NotANumber),
    };
    let digits = rest.get(..width).ok_or(BadS5::Length)?;
    let value = digits.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    Ok((value, rest.get(width..).unwrap_or(&[])))
}

/// How the machine is switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PowerOff {
    /// The first control register's port.
    pub pm1a: u16,
    /// The second one's, if there are two.
    pub pm1b: Option<u16>,
    /// What is written.
    pub types: SleepTypes,
    /// A port and a value that hand the registers over from the firmware, if they are not the system's yet.
    pub enable: Option<(u16, u8)>,
}

/// Why the machine cannot be switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoPowerOff {
    /// There is no FADT.
    NoTable,
    /// The machine has a sleep register of another kind.
    HardwareReduced,
    /// There is no control register behind a port.
    NoControl,
    /// What it takes is not known.
    S5(BadS5),
}

impl fmt::Display for NoPowerOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoPowerOff::NoTable => f.write_str("there is no sound FADT"),
            NoPowerOff::HardwareReduced => f.write_str(
                "the machine is hardware-reduced; one with PM1 control registers would do",
            ),
            NoPowerOff::NoControl => {
                f.write_str("the FADT names no PM1 control register behind a port")
            }
            NoPowerOff::S5(bad) => bad.fmt(f),
        }
    }
}

impl PowerOff {
    /// From a checked FADT and what its byte code says.
    pub fn of(fadt: &[u8], types: Result<SleepTypes, BadS5>) -> Result<PowerOff, NoPowerOff> {
        if u32_at(fadt, FLAGS).is_some_and(|flags| flags & FLAG_HARDWARE_REDUCED != 0) {
            return Err(NoPowerOff::HardwareReduced);
        }
        let register =
            |wide, narrow| port_at(fadt, wide).or_else(|| port(u32_at(fadt, narrow)?.into()));
        let pm1a = register(X_PM1A_CONTROL, PM1A_CONTROL).ok_or(NoPowerOff::NoControl)?;
        let pm1b = register(X_PM1B_CONTROL, PM1B_CONTROL);
        let types = types.map_err(NoPowerOff::S5)?;
        let command = u32_at(fadt, SMI_COMMAND).and_then(|address| port(address.into()));
        let value = fadt.get(ACPI_ENABLE).copied().filter(|value| *value != 0);
        Ok(PowerOff { pm1a, pm1b, types, enable: command.zip(value) })
    }

    /// What is written to a control register that reads as `now`, to switch off with this type.
    pub const fn control(now: u16, sleep_type: u8) -> u16 {
        now & !(SLEEP_TYPE | SLEEP_ENABLE) | (sleep_type as u16) << SLEEP_TYPE_SHIFT | SLEEP_ENABLE
    }
}

/// How the machine is reset: a value for a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reset {
    /// The port.
    pub port: u16,
    /// The value.
    pub value: u8,
}

impl Reset {
    /// From a checked FADT, if it has a reset register and it is behind a port.
    pub fn of(fadt: &[u8]) -> Option<Reset> {
        u32_at(fadt, FLAGS).filter(|flags| flags & FLAG_RESET != 0)?;
        let port = port_at(fadt, RESET_REGISTER)?;
        Some(Reset { port, value: *fadt.get(RESET_VALUE)? })
    }
}

/// The port of a register that is described in full.
fn port_at(fadt: &[u8], at: usize) -> Option<u16> {
    (*fadt.get(at)? == IN_PORTS).then_some(())?;
    port(u64_at(fadt, at + 4)?)
}

fn port(address: u64) -> Option<u16> {
    u16::try_from(address).ok().filter(|port| *port != 0)
}
