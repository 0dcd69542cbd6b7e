//! Powers, roots and factorials, which grow fast.

use dashu_base::{BitTest, UnsignedAbs};
use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;

use crate::limits::BITS;
use crate::number::{Number, bits_of, too_large};
use crate::problem::Fallible;
use crate::series;

/// Roots up to this one are looked for among the fractions.
const ROOT: usize = 64;

/// A number to the power of another. 0 to the power of 0 is 1.
pub(crate) fn power(base: &Number, exponent: &Number) -> Fallible<Number> {
    if exponent.is_zero() {
        return Ok(Number::ONE);
    }
    if base.is_zero() {
        return if exponent.is_negative() {
            Err("0 to a negative power is a division by 0".to_owned())
        } else {
            Ok(base.clone())
        };
    }
    if exponent.value().is_int() {
        return integer_power(base, exponent);
    }
    if base.is_negative() {
        return Err("a negative number has no fractional power; for the third root of it write cbrt(x)".to_owned());
    }
    let by = exponent.value().denominator();
    if let (Ok(by), true) = (usize::try_from(by.clone()), base.is_exact() && exponent.is_exact())
        && let Some(root) = exact_root(base.value(), by)
    {
        return integer_power(&Number::exact(root)?, &Number::exact(exponent.value().numerator().clone())?);
    }
    through_logarithm(base, exponent)
}

/// The base is not 0.
fn integer_power(base: &Number, exponent: &Number) -> Fallible<Number> {
    let odd = exponent.value().numerator().bit(0);
    let negative = base.is_negative() && odd;
    // The only ones that do not grow, whatever the exponent.
    if base.is_exact() && base.absolute() == Number::ONE {
        return Ok(if negative { base.clone() } else { Number::ONE });
    }
    // A base of n bits is at least 2^(n - 1): what is not multiplied out here is beyond the
    // limit, or a fraction that is rounded.
    let times = exponent.integer::<isize>();
    if let Some(times) = times
        && bits_of(base.value()).saturating_mul(times.unsigned_abs()) <= BITS + times.unsigned_abs()
    {
        return Number::new(base.value().pow(times), base.is_exact() && exponent.is_exact());
    }
    let size = through_logarithm(&base.absolute(), exponent)?;
    Ok(if negative { size.negate() } else { size })
}

/// The base is more than 0.
fn through_logarithm(base: &Number, exponent: &Number) -> Fallible<Number> {
    series::exp(&Number::near(series::ln(base)?.value() * exponent.value())?)
}

pub(crate) fn square_root(number: &Number) -> Fallible<Number> {
    if number.is_negative() {
        return Err("a negative number has no square root among the real numbers".to_owned());
    }
    match exact_root(number.value(), 2).filter(|_| number.is_exact()) {
        Some(root) => Number::exact(root),
        None => series::root(number, 2),
    }
}

pub(crate) fn cube_root(number: &Number) -> Fallible<Number> {
    let size = number.absolute();
    let root = match exact_root(size.value(), 3).filter(|_| number.is_exact()) {
        Some(root) => Number::exact(root)?,
        None => series::root(&size, 3)?,
    };
    Ok(if number.is_negative() { root.negate() } else { root })
}

/// The root of a fraction that is not negative, if it is a fraction.
fn exact_root(value: &RBig, by: usize) -> Option<RBig> {
    let root = |part: &UBig| {
        let root = part.nth_root(by);
        (root.pow(by) == *part).then_some(root)
    };
    if by > ROOT {
        return None;
    }
    let above = root(&value.numerator().clone().unsigned_abs())?;
    Some(RBig::from_parts(IBig::from(above), root(value.denominator())?))
}

/// The product of 1 to a number.
pub(crate) fn factorial(number: &Number) -> Fallible<Number> {
    if number.is_negative() || !number.value().is_int() {
        return Err("a factorial is that of an integer from 0, such as 5!".to_owned());
    }
    // Each step adds a bit or more, so there are at most as many as the limit has.
    let to: u64 = number.integer().ok_or_else(too_large)?;
    let mut product = UBig::ONE;
    for factor in 2..=to {
        product *= factor;
        if product.bit_len() > BITS {
            return Err(too_large());
        }
    }
    Number::new(RBig::from(product), number.is_exact())
}
