//! Numbers as they are written, in decimal.

use rust_decimal::Decimal;

/// Why a text is no number that can be computed with.
pub(super) const NO_NUMBER: &str = "which is no number";
const TOO_LONG: &str = "which has more than 28 digits";

/// Reads a number: digits with a sign, a point and an exponent, with space around it.
pub(super) fn read(text: &str) -> Result<Decimal, &'static str> {
    let text = text.trim();
    // The library takes more, such as `1_000`.
    let Some(digits) = digits(text) else { return Err(NO_NUMBER) };
    let number = match text.contains(['e', 'E']) {
        false => Decimal::from_str_exact(text),
        // With an exponent it would round what is too long.
        true if digits <= 28 => Decimal::from_scientific(text),
        true => return Err(TOO_LONG),
    };
    number.map_err(|_| TOO_LONG)
}

/// How many digits a number has before its exponent. None: it is no number.
fn digits(text: &str) -> Option<usize> {
    let all = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let number = number.strip_prefix(['+', '-']).unwrap_or(number);
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = whole.len() + part.len();
    (all(whole) && all(part) && all(exponent) && digits > 0 && !exponent.is_empty()).then_some(digits)
}

/// A sum of any numbers, without rounding: so many units of ten to the power of `-scale`.
#[derive(Clone, Copy, Default)]
pub(super) struct Sum {
    units: i128,
    scale: u32,
}

impl Sum {
    /// None: it has more digits than can be kept.
    pub(super) fn add(self, number: Decimal) -> Option<Self> {
        // Zeros at the end would make the sum have more digits than it needs.
        let number = number.normalize();
        let scale = self.scale.max(number.scale());
        let at = |units: i128, from: u32| units.checked_mul(10i128.checked_pow(scale - from)?);
        let units = at(self.units, self.scale)?.checked_add(at(number.mantissa(), number.scale())?)?;
        Some(Self { units, scale })
    }

    /// None: it has more than 28 digits.
    pub(super) fn total(self) -> Option<Decimal> {
        let (mut units, mut scale) = (self.units, self.scale);
        while scale > 0 && units % 10 == 0 {
            units /= 10;
            scale -= 1;
        }
        Decimal::try_from_i128_with_scale(units, scale).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_all_digits() {
        let table = [
            ("1", "1"),
            (" -1.50 ", "-1.50"),
            ("+.5", "0.5"),
            ("5.", "5"),
            ("-0", "0"),
            ("0007", "7"),
            ("2e3", "2000"),
            ("1.5E-3", "0.0015"),
            ("0.1234567890123456789012345678", "0.1234567890123456789012345678"),
        ];
        for (text, number) in table {
            assert_eq!(read(text).map(|number| number.to_string()), Ok(number.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_told() {
        for text in [
            "", " ", "-", ".", "e5", "1_000", "1,5", "1 2", "0x10", "NaN", "inf", "5%", "１", "1\0", "--1", "1.2.3",
            "1e", "1e-", "1e5e5", "-e-",
        ] {
            assert_eq!(read(text), Err(NO_NUMBER), "{text:?}");
        }
        for text in [
            "1e99",
            "1e999999999999",
            "1e-99999",
            "1e-29",
            "0.12345678901234567890123456789",
            "123456789012345678901234567890.5e1",
            &"9".repeat(100_000),
        ] {
            assert_eq!(read(text), Err(TOO_LONG), "{:.40}", text);
        }
    }

    fn sum(numbers: &[&str]) -> Option<String> {
        let add = |sum: Sum, text: &&str| sum.add(read(text).unwrap());
        Some(numbers.iter().try_fold(Sum::default(), add)?.total()?.to_string())
    }

    #[test]
    fn sums_are_exact_or_refused() {
        assert_eq!(sum(&[]).as_deref(), Some("0"));
        assert_eq!(sum(&["0.1"; 10]).as_deref(), Some("1"));
        assert_eq!(sum(&["0.1", "0.2", "-0.3"]).as_deref(), Some("0"));
        let large = "9999999999999999999999999999";
        assert_eq!(sum(&[large, "0.1", &format!("-{large}")]).as_deref(), Some("0.1"));
        assert_eq!(sum(&[large, "0.1"]), None);
        assert_eq!(sum(&[large, "0.0000000000000000000000000001"]), None);
    }
}
