//! Moments as TOML writes them: `2027-01-31T00:00:00Z`.

use std::time::{Duration, SystemTime};

use toml::value::{Datetime, Offset};

/// A moment. None without a time and an offset, since it would mean another
/// moment on each machine, and before 1970.
pub(super) fn moment(written: &Datetime) -> Option<SystemTime> {
    let (date, time) = (written.date?, written.time?);
    let offset_minutes = match written.offset? {
        Offset::Z => 0,
        Offset::Custom { minutes } => i64::from(minutes),
    };
    let days = days_since_1970(i64::from(date.year), i64::from(date.month), i64::from(date.day));
    let minutes = (days * 24 + i64::from(time.hour)) * 60 + i64::from(time.minute) - offset_minutes;
    let seconds = u64::try_from(minutes * 60 + i64::from(time.second.unwrap_or(0))).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

/// Days of the Gregorian calendar, counted in years that begin with March, so
/// that the day that some years have more comes last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // Months of 31 and 30 days in turn, twice five of them: 153 days for each five.
    let before_month = (153 * month + 2) / 5;
    let march_1st_of_0 = -719_468;
    365 * year + leap_days + before_month + day - 1 + march_1st_of_0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> Option<u64> {
        let moment = moment(&text.parse().unwrap())?;
        Some(moment.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs())
    }

    #[test]
    fn moments_are_those_of_other_programs() {
        // As `date --date=… +%s` says.
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:00:00Z", 951_825_600),
            ("2000-03-01T00:00:00Z", 951_868_800),
            ("2026-11-30T06:00:00Z", 1_796_018_400),
            ("2027-01-31T23:59:59+05:30", 1_801_420_199),
            ("2100-02-28T00:00:00-08:00", 4_107_484_800),
            ("9999-12-31T23:59:59Z", 253_402_300_799),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for text in ["2027-01-31", "2027-01-31T00:00:00", "12:00:00", "1969-12-31T00:00:00Z"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let length = |year: i64, month| match month {
            2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let mut expected = 0;
        for year in 1970..2410 {
            for month in 1..=12 {
                for day in 1..=length(year, month) {
                    assert_eq!(days_since_1970(year, month, day), expected, "{year}-{month}-{day}");
                    expected += 1;
                }
            }
        }
    }
}
