//! Sizes and times as people write them: `64MiB`, `500ms`.

use std::time::Duration;

const SIZES: &[(&str, u64)] = &[
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

const TIMES_MS: &[(&str, u64)] = &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

/// Bytes. None for other text, zero, and what does not fit.
#[must_use]
pub fn bytes(text: &str) -> Option<u64> {
    scaled(text, SIZES)
}

/// A duration. None for other text, zero, and what does not fit.
#[must_use]
pub fn duration(text: &str) -> Option<Duration> {
    scaled(text, TIMES_MS).map(Duration::from_millis)
}

fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(end);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    let value = number.parse::<u64>().ok()?.checked_mul(*factor)?;
    (value > 0).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_and_nonsense_is_none() {
        assert_eq!(bytes("64MiB"), Some(64 << 20));
        assert_eq!(bytes("1 GB"), Some(1_000_000_000));
        assert_eq!(duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Some(Duration::from_secs(120)));
        for text in ["", "64", "MiB", "0MiB", "-1MiB", "1.5GiB", "1mib", "99999999999GiB", "é"] {
            assert_eq!(bytes(text), None, "{text}");
        }
        for text in ["1", "s", "0s", "1 day", "99999999999999999999s"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }
}
