//! The real-time clock's registers as a time: seconds since 1970 in UTC, or why they are none.
//!
//! The chip (MC146818 and its copies) counts in BCD or binary, in 12 or 24 hours, and knows two digits of the
//! year; a register that the FADT names may have the other two. It is taken to run in UTC.
//!
//! Decided in ADR 264.
#![no_std]

use core::fmt;

/// Seconds of a day.
const DAY: u64 = 86_400;

/// Status register B: hours count to 24.
const COUNTS_24_HOURS: u8 = 1 << 1;
/// Status register B: registers are binary.
const IS_BINARY: u8 = 1 << 2;
/// In a register of 12 hours: after noon.
const AFTER_NOON: u8 = 1 << 7;

/// The first year of a century that is not said: years from here on are of the last one.
const PIVOT: u16 = 70;

/// The registers, read while the chip did not change them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Registers {
    /// Seconds.
    pub seconds: u8,
    /// Minutes.
    pub minutes: u8,
    /// Hours, with the bit for the afternoon.
    pub hours: u8,
    /// Day of the month.
    pub day: u8,
    /// Month.
    pub month: u8,
    /// Year of the century.
    pub year: u8,
    /// The century's register, if the machine has one.
    pub century: Option<u8>,
    /// Status register B.
    pub status_b: u8,
}

/// A register that holds no such thing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadTime {
    /// A BCD digit above 9.
    Digit(u8),
    /// Seconds or minutes above 59, or hours that are none.
    TimeOfDay,
    /// A month or day that is not in the calendar.
    Date,
}

impl fmt::Display for BadTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadTime::Digit(byte) => write!(f, "{byte:#04x} is no number in BCD"),
            BadTime::TimeOfDay => f.write_str("its time of day is none; set it in the firmware"),
            BadTime::Date => f.write_str("its date is not in the calendar; set it in the firmware"),
        }
    }
}

impl Registers {
    /// Seconds since the beginning of 1970.
    pub fn unix_s(&self) -> Result<u64, BadTime> {
        let number = |byte: u8| self.number(byte);
        let (seconds, minutes) = (number(self.seconds)?, number(self.minutes)?);
        let hours = self.hours()?;
        if seconds > 59 || minutes > 59 {
            return Err(BadTime::TimeOfDay);
        }
        let (year, month, day) = (self.year()?, number(self.month)?, number(self.day)?);
        if !(1..=12).contains(&month) || day == 0 || day > days_of(year, month) {
            return Err(BadTime::Date);
        }
        let days = days_before(year, month) + u64::from(day) - 1;
        Ok(days * DAY + u64::from(hours) * 3600 + u64::from(minutes) * 60 + u64::from(seconds))
    }

    fn number(&self, byte: u8) -> Result<u16, BadTime> {
        if self.status_b & IS_BINARY != 0 {
            return Ok(byte.into());
        }
        let (tens, ones) = (byte >> 4, byte & 0xf);
        if tens > 9 || ones > 9 {
            return Err(BadTime::Digit(byte));
        }
        Ok(u16::from(tens) * 10 + u16::from(ones))
    }

    fn hours(&self) -> Result<u16, BadTime> {
        if self.status_b & COUNTS_24_HOURS != 0 {
            return Some(self.number(self.hours)?)
                .filter(|hours| *hours < 24)
                .ok_or(BadTime::TimeOfDay);
        }
        let hours = self.number(self.hours & !AFTER_NOON)?;
        if !(1..=12).contains(&hours) {
            return Err(BadTime::TimeOfDay);
        }
        Ok(hours % 12 + if self.hours & AFTER_NOON != 0 { 12 } else { 0 })
    }

    /// The year: by the century's register if that makes sense, else the one within reach.
    fn year(&self) -> Result<u16, BadTime> {
        let year = self.number(self.year)?;
        if year > 99 {
            return Err(BadTime::Date);
        }
        let said = self.century.and_then(|byte| self.number(byte).ok());
        Ok(match said.filter(|century| (19..=99).contains(century)) {
            Some(century) if century * 100 + year >= 1970 => century * 100 + year,
            _ if year < PIVOT => 2000 + year,
            _ => 1900 + year,
        })
    }
}

const fn is_leap(year: u16) -> bool {
    year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400)
}

const fn days_of(year: u16, month: u16) -> u16 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from the beginning of 1970 to that of a month, of a year from 1970 on.
fn days_before(year: u16, month: u16) -> u64 {
    let past = u64::from(year) - 1;
    let leap_days = |years: u64| years / 4 - years / 100 + years / 400;
    let years = (u64::from(year) - 1970) * 365 + leap_days(past) - leap_days(1969);
    years + (1..month).map(|month| u64::from(days_of(year, month))).sum::<u64>()
}
