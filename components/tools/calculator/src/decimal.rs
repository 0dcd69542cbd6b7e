//! How a fraction is written as a decimal.

use dashu_base::{BitTest, UnsignedAbs};
use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;

use crate::limits::{FRACTION, TOLD};
use crate::number::Number;

/// More zeros than this that only tell where the point is are written as an exponent: at the
/// end of an integer, and behind the point.
const ZEROS: usize = 40;
const SMALL: usize = 10;

/// A fraction in so many significant digits.
pub(crate) struct Rounded {
    pub(crate) significand: IBig,
    pub(crate) exponent: isize,
    /// Whether it is the same as the fraction.
    pub(crate) exact: bool,
}

impl Rounded {
    pub(crate) fn value(&self) -> RBig {
        RBig::from(self.significand.clone()) * ten_to(self.exponent)
    }
}

/// A power of ten.
pub(crate) fn ten_to(exponent: isize) -> RBig {
    let power = UBig::from(10_u8).pow(exponent.unsigned_abs());
    if exponent < 0 { RBig::from_parts(IBig::ONE, power) } else { RBig::from(power) }
}

/// Rounds to so many significant digits, a half away from 0.
pub(crate) fn round(value: &RBig, digits: usize) -> Rounded {
    if value.is_zero() {
        return Rounded { significand: IBig::ZERO, exponent: 0, exact: true };
    }
    let digits = digits.cast_signed();
    let bits = |value: &UBig| value.bit_len().cast_signed();
    // The power of two is off by less than 1, so that the one of ten is at most 2 too small.
    let magnitude =
        (bits(&value.numerator().clone().unsigned_abs()) - bits(value.denominator()) - 1) * 30_103 / 100_000 - 1;
    let mut places = digits - magnitude;
    loop {
        let moved = value * ten_to(places);
        let significand = moved.round();
        let excess = significand.clone().unsigned_abs().to_string().len().cast_signed() - digits;
        if excess <= 0 {
            return Rounded { significand, exponent: -places, exact: moved.is_int() };
        }
        // Always from the value itself: to round what was rounded would round twice.
        places -= excess;
    }
}

/// The decimal of a number, and whether it is all of it.
pub(crate) fn write(number: &Number) -> (String, bool) {
    let value = number.value();
    if number.is_exact() {
        if value.is_int() {
            return (lay_out(value.numerator(), 0, Ending::Known), true);
        }
        let rounded = round(value, FRACTION);
        if rounded.exact {
            return (lay_out(&rounded.significand, rounded.exponent, Ending::Known), true);
        }
    }
    let rounded = round(value, TOLD);
    (lay_out(&rounded.significand, rounded.exponent, Ending::Rounded), false)
}

/// What is known of the digits after the last one.
#[derive(PartialEq)]
enum Ending {
    /// They are zeros.
    Known,
    /// Nothing.
    Rounded,
}

fn lay_out(significand: &IBig, exponent: isize, ending: Ending) -> String {
    let written = significand.clone().unsigned_abs().to_string();
    let digits = written.trim_end_matches('0');
    if digits.is_empty() {
        return "0".to_owned();
    }
    let sign = if *significand < IBig::ZERO { "-" } else { "" };
    let count = digits.len();
    // Where the point is, counted from before the first digit.
    let point = exponent + written.len().cast_signed();
    let before = usize::try_from(point).unwrap_or_default();
    let zeros = before.saturating_sub(count);
    let behind = usize::try_from(-point).unwrap_or_default();
    // Zeros at the end of what was rounded would look as if they were known.
    let unknown = ending == Ending::Rounded && zeros > 0 && written.len() >= TOLD && before > TOLD;
    if unknown || (zeros > ZEROS && zeros > count) || behind > SMALL {
        let (first, rest) = digits.split_at_checked(1).unwrap_or((digits, ""));
        let dot = if rest.is_empty() { "" } else { "." };
        return format!("{sign}{first}{dot}{rest}e{}", point - 1);
    }
    match digits.split_at_checked(before) {
        Some((whole, "")) => format!("{sign}{whole}"),
        Some(("", fraction)) => format!("{sign}0.{}{fraction}", "0".repeat(behind)),
        Some((whole, fraction)) => format!("{sign}{whole}.{fraction}"),
        None => format!("{sign}{digits}{}", "0".repeat(zeros)),
    }
}
