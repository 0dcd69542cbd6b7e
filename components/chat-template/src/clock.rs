//! `strftime_now`: the date, as some templates put it into the system message.
//!
//! Always UTC: a component has no time zone.

use std::fmt::Write as _;

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Formats a point in time, given in seconds since 1970, by the directives of
/// C's `strftime` that make sense without a locale. Unknown ones stay as they
/// are.
pub(crate) fn strftime(format: &str, seconds: u64) -> String {
    let (year, month, day) = civil(seconds / 86_400);
    let weekday = (seconds / 86_400 + 4) % 7;
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let month_name = pick(&MONTHS, month - 1);
    let day_name = pick(&DAYS, weekday);
    let hour12 = (hour + 11) % 12 + 1;

    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut directive = chars.next();
        // GNU's `%-d`: without padding.
        let bare = directive == Some('-');
        if bare {
            directive = chars.next();
        }
        let written = match directive {
            Some('Y') => write!(out, "{year}"),
            Some('y') => padded(&mut out, year % 100, bare),
            Some('m') => padded(&mut out, month, bare),
            Some('d') => padded(&mut out, day, bare),
            Some('e') => write!(out, "{day:2}"),
            Some('H') => padded(&mut out, hour, bare),
            Some('I') => padded(&mut out, hour12, bare),
            Some('M') => padded(&mut out, minute, bare),
            Some('S') => padded(&mut out, second, bare),
            Some('p') => write!(out, "{}", if hour < 12 { "AM" } else { "PM" }),
            Some('B') => write!(out, "{month_name}"),
            Some('b' | 'h') => write!(out, "{}", month_name.get(..3).unwrap_or(month_name)),
            Some('A') => write!(out, "{day_name}"),
            Some('a') => write!(out, "{}", day_name.get(..3).unwrap_or(day_name)),
            Some('j') => write!(out, "{:03}", seconds / 86_400 - days_before(year) + 1),
            Some('w') => write!(out, "{weekday}"),
            Some('F') => write!(out, "{year}-{month:02}-{day:02}"),
            Some('T') => write!(out, "{hour:02}:{minute:02}:{second:02}"),
            Some('s') => write!(out, "{seconds}"),
            Some('Z') => write!(out, "UTC"),
            Some('z') => write!(out, "+0000"),
            Some('%') => write!(out, "%"),
            Some(other) => write!(out, "%{}{other}", if bare { "-" } else { "" }),
            None => write!(out, "%"),
        };
        debug_assert!(written.is_ok(), "writing to a string cannot fail");
    }
    out
}

fn padded(out: &mut String, number: u64, bare: bool) -> std::fmt::Result {
    if bare { write!(out, "{number}") } else { write!(out, "{number:02}") }
}

fn pick(names: &[&'static str], index: u64) -> &'static str {
    usize::try_from(index).ok().and_then(|index| names.get(index)).copied().unwrap_or("")
}

/// Days from 1970 to the start of a year.
fn days_before(year: u64) -> u64 {
    let past = year - 1;
    past * 365 + past / 4 - past / 100 + past / 400 - 719_162
}

/// Year, month and day of the Gregorian calendar, from days since 1970; the
/// algorithm of Howard Hinnant's `civil_from_days`.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(strftime("%F %T %A %j", 0), "1970-01-01 00:00:00 Thursday 001");
        // 2024-02-29 23:59:58 UTC
        let leap = 1_709_251_198;
        assert_eq!(strftime("%d %B %Y, %a %b %-d", leap), "29 February 2024, Thu Feb 29");
        assert_eq!(strftime("%I:%M %p %j %y %q %", leap), "11:59 PM 060 24 %q %");
        assert_eq!(strftime("%F %j", 1_735_603_200), "2024-12-31 366");
    }
}
