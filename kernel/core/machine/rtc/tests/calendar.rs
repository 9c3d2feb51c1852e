//! The clock's registers against a calendar that counts day by day.

use core_rtc::{BadTime, Registers};

const BINARY: u8 = 1 << 2;
const HOURS_24: u8 = 1 << 1;

fn bcd(number: u16) -> u8 {
    ((number / 10) << 4 | number % 10) as u8
}

/// The registers of a time in one of the four forms.
fn registers(date: (u16, u16, u16), time: (u16, u16, u16), status_b: u8) -> Registers {
    let of = |number: u16| if status_b & BINARY != 0 { number as u8 } else { bcd(number) };
    let hours = match (status_b & HOURS_24 != 0, time.0) {
        (true, hours) => of(hours),
        (false, hours) => {
            let of_twelve = if hours % 12 == 0 { 12 } else { hours % 12 };
            of(of_twelve) | if hours >= 12 { 0x80 } else { 0 }
        }
    };
    Registers {
        seconds: of(time.2),
        minutes: of(time.1),
        hours,
        day: of(date.2),
        month: of(date.1),
        year: of(date.0 % 100),
        century: Some(of(date.0 / 100)),
        status_b,
    }
}

/// Every day of 430 years, in each form, at a time that differs from day to day.
#[test]
fn every_day_is_one_after_the_last() {
    let mut days = 0_u64;
    for year in 1970..2400_u16 {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let lengths: [u16; 12] =
            [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        for (month, length) in (1_u16..).zip(lengths) {
            for day in 1..=length {
                let time = ((days % 24) as u16, (days % 60) as u16, (days * 7 % 60) as u16);
                let seconds = u64::from(time.0) * 3600 + u64::from(time.1) * 60 + u64::from(time.2);
                for status_b in [0, BINARY, HOURS_24, BINARY | HOURS_24] {
                    let found = registers((year, month, day), time, status_b).unix_s();
                    assert_eq!(found, Ok(days * 86_400 + seconds), "{year}-{month}-{day} {time:?}");
                }
                days += 1;
            }
            for day in [0, length + 1] {
                let found = registers((year, month, day), (0, 0, 0), HOURS_24).unix_s();
                assert_eq!(found, Err(BadTime::Date), "{year}-{month}-{day}");
            }
        }
    }
    assert_eq!(days, 157_054);
}

#[test]
fn a_year_without_a_century_is_within_reach() {
    let of = |year: u16, century: Option<u8>| {
        let registers = registers((2000 + year, 7, 1), (0, 0, 0), HOURS_24);
        Registers { century, ..registers }.unix_s().map(|s| 1970 + s / 31_556_952)
    };
    // No register, one that holds nothing, one that is out of range or before 1970.
    for century in [None, Some(0), Some(0xff), Some(0x18)] {
        assert_eq!(of(26, century), Ok(2026), "{century:?}");
        assert_eq!(of(69, century), Ok(2069), "{century:?}");
    }
    assert_eq!(of(26, Some(0x21)), Ok(2126));
    assert_eq!(of(69, Some(0x19)), Ok(2069));
    assert_eq!(of(75, None), Ok(1975));
}

#[test]
fn what_is_no_time_is_refused() {
    let good = registers((2026, 11, 18), (23, 59, 59), HOURS_24);
    assert_eq!(good.unix_s(), Ok(1_795_046_399));
    for (bad, why) in [
        (Registers { seconds: 0x60, ..good }, BadTime::TimeOfDay),
        (Registers { minutes: 0x99, ..good }, BadTime::TimeOfDay),
        (Registers { hours: 0x24, ..good }, BadTime::TimeOfDay),
        (Registers { seconds: 0x5a, ..good }, BadTime::Digit(0x5a)),
        (Registers { day: 0xff, ..good }, BadTime::Digit(0xff)),
        (Registers { month: 0, ..good }, BadTime::Date),
        (Registers { month: 0x13, ..good }, BadTime::Date),
        (Registers { hours: 0, status_b: 0, ..good }, BadTime::TimeOfDay),
        (Registers { hours: 0x13, status_b: 0, ..good }, BadTime::TimeOfDay),
        (Registers { year: 100, status_b: BINARY, ..good }, BadTime::TimeOfDay),
    ] {
        assert_eq!(bad.unix_s(), Err(why), "{bad:?}");
        assert!(why.to_string().len() > 10);
    }
}

/// Any bytes at all: an answer or a refusal.
#[test]
fn no_registers_are_too_odd() {
    let mut state = 1_u64;
    for _ in 0..200_000 {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let [seconds, minutes, hours, day, month, year, century, status_b] = state.to_be_bytes();
        let century = Some(century);
        let found =
            Registers { seconds, minutes, hours, day, month, year, century, status_b }.unix_s();
        assert!(found.is_err() || found.is_ok_and(|unix_s| unix_s < 300_000_000_000));
    }
}
