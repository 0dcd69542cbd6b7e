//! Amounts, for people and models.

/// Bytes as a number with a unit.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut number, mut unit) = (bytes as f64, "B");
    for next in UNITS {
        if number < 1024.0 {
            break;
        }
        (number, unit) = (number / 1024.0, next);
    }
    let digits = usize::from(number.fract() > 0.05 && number < 100.0);
    format!("{number:.digits$} {unit}")
}

/// So many of something, as a word that fits.
pub(crate) fn count(number: u64, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {one}s"),
    }
}

/// A number with few digits behind the point, as JSON has it.
pub(crate) fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(32 << 10), "32 KiB");
        assert_eq!(bytes(25_276_059_648), "23.5 GiB");
        assert_eq!(count(1, "core"), "1 core");
        assert_eq!(count(2, "core"), "2 cores");
        assert_eq!(rounded(1.0 / 3.0), 0.333);
    }
}
