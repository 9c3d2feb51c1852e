//! Civil dates to seconds since 1970, for the date response.

/// A date and time in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// Full year.
    pub year: i64,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 60.
    pub second: u8,
}

impl Civil {
    /// Seconds since 1970-01-01 00:00:00 UTC, or `None` if a field is out of range.
    pub fn unix_seconds(self) -> Option<i64> {
        let in_range = (1..=12).contains(&self.month)
            && (1..=31).contains(&self.day)
            && self.hour < 24
            && self.minute < 60
            && self.second <= 60
            && (1900..=9999).contains(&self.year);
        if !in_range {
            return None;
        }
        // Days since 1970 by the proleptic Gregorian calendar: years start in March, so
        // that the leap day comes last.
        let year = if self.month <= 2 { self.year - 1 } else { self.year };
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let month_from_march = (i64::from(self.month) + 9) % 12;
        let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(self.day) - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let days = era * 146_097 + day_of_era - 719_468;
        let seconds = i64::from(self.hour) * 3600 + i64::from(self.minute) * 60;
        Some(days * 86_400 + seconds + i64::from(self.second))
    }
}
