//! Functions that are sums without an end, such as the logarithm.
//!
//! They are correctly rounded by dashu for what it is given. What it would take long for is
//! brought into a small range first: huge, tiny and almost even arguments.

use std::sync::LazyLock;

use dashu_base::{Abs, BitTest, PowerOfTwo, UnsignedAbs};
use dashu_float::round::mode::HalfEven;
use dashu_float::{Context, FBig, Repr};
use dashu_ratio::RBig;

use crate::decimal;
use crate::limits::{DIGITS, HELD};
use crate::number::{Number, noise, too_large, too_small};
use crate::problem::Fallible;

type Float = FBig<HalfEven, 10>;

/// An angle is less than ten to this power: beyond, what is known of it tells no direction.
const ANGLE: isize = 15;

const CONTEXT: Context<HalfEven> = Context::new(HELD);

fn float(value: &RBig) -> Repr<10> {
    let rounded = decimal::round(value, HELD);
    Repr::new(rounded.significand, rounded.exponent)
}

fn number(float: Float) -> Fallible<Number> {
    let (significand, exponent) = float.into_repr().into_parts();
    if exponent.unsigned_abs() > DIGITS + 2 * HELD {
        return Err(if exponent > 0 { too_large() } else { too_small() });
    }
    Number::near(RBig::from(significand) * decimal::ten_to(exponent))
}

/// What dashu says of a function at a number.
fn at<E: std::fmt::Display>(
    value: &RBig,
    function: impl Fn(&Repr<10>) -> Result<dashu_base::Approximation<Float, dashu_float::round::Rounding>, E>,
) -> Fallible<Number> {
    number(function(&float(value)).map_err(|error| error.to_string())?.value())
}

fn tiny(digits: usize) -> RBig {
    decimal::ten_to(-digits.cast_signed())
}

/// Kept, because an expression may need them hundreds of times.
static PI: LazyLock<Fallible<Number>> = LazyLock::new(|| number(CONTEXT.pi(None).value()));
static E: LazyLock<Fallible<Number>> = LazyLock::new(|| number(CONTEXT.e().value()));
static LN_10: LazyLock<Fallible<Number>> = LazyLock::new(|| at(&RBig::from(10), |x| CONTEXT.ln(x, None)));

pub(crate) fn pi() -> Fallible<Number> {
    PI.clone()
}

pub(crate) fn e() -> Fallible<Number> {
    E.clone()
}

/// The root of a number that is not negative.
pub(crate) fn root(of: &Number, by: usize) -> Fallible<Number> {
    at(of.value(), |x| CONTEXT.nth_root(by, x))
}

pub(crate) fn ln(number: &Number) -> Fallible<Number> {
    let value = number.value();
    if number.is_zero() || number.is_negative() {
        return Err("a logarithm is that of a number greater than 0".to_owned());
    }
    if value.is_one() && number.is_exact() {
        return Ok(Number::ZERO);
    }
    let beyond = value - RBig::ONE;
    if beyond.clone().abs() < RBig::from_parts(1.into(), 2_u8.into()) {
        // Near 1 it is the difference that counts.
        return if beyond.clone().abs() < tiny(HELD) {
            Number::near(beyond)
        } else {
            at(&beyond, |x| CONTEXT.ln_1p(x, None))
        };
    }
    // ln(m * 10^k) = ln(m) + k * ln(10)
    let (significand, exponent) = float(value).into_parts();
    let digits = significand.to_string().len().cast_signed() - 1;
    let small = at(&(RBig::from(significand) * decimal::ten_to(-digits)), |x| CONTEXT.ln(x, None))?;
    small.add(&LN_10.clone()?.multiply(&Number::exact(exponent + digits)?)?)
}

pub(crate) fn log10(number: &Number) -> Fallible<Number> {
    if number.is_exact() && !number.is_negative() {
        let rounded = decimal::round(number.value(), 1);
        if rounded.exact && rounded.significand.is_one() {
            return Number::exact(rounded.exponent);
        }
    }
    logarithm(number, &Number::exact(10)?)
}

pub(crate) fn log2(number: &Number) -> Fallible<Number> {
    if number.is_exact() && !number.is_negative() {
        let (above, below) = (number.value().numerator().clone().unsigned_abs(), number.value().denominator());
        if above.is_power_of_two() && below.is_power_of_two() {
            return Number::exact(above.bit_len().cast_signed() - below.bit_len().cast_signed());
        }
    }
    logarithm(number, &Number::exact(2)?)
}

pub(crate) fn logarithm(number: &Number, base: &Number) -> Fallible<Number> {
    let base = ln(base)?;
    if base.is_zero() {
        return Err("there is no logarithm to the base of 1".to_owned());
    }
    ln(number)?.divide(&base)
}

pub(crate) fn exp(number: &Number) -> Fallible<Number> {
    if number.is_zero() && number.is_exact() {
        return Ok(Number::ONE);
    }
    let size = number.value().clone().abs();
    // ln(10) is less than 2.303.
    if size > RBig::from(DIGITS * 2_303 / 1_000) {
        return Err(if number.is_negative() { too_small() } else { too_large() });
    }
    if size < tiny(HELD) {
        return Number::near(RBig::ONE);
    }
    at(number.value(), |x| CONTEXT.exp(x, None))
}

pub(crate) fn sin(angle: &Number) -> Fallible<Number> {
    check(angle)?;
    if angle.is_zero() || angle.value().clone().abs() < tiny(HELD / 2) {
        return Number::new(angle.value().clone(), angle.is_exact() && angle.is_zero());
    }
    quiet(angle, at(angle.value(), |x| CONTEXT.sin(x, None))?)
}

pub(crate) fn cos(angle: &Number) -> Fallible<Number> {
    check(angle)?;
    if angle.is_zero() || angle.value().clone().abs() < tiny(HELD / 2) {
        return Number::new(RBig::ONE, angle.is_exact() && angle.is_zero());
    }
    quiet(angle, at(angle.value(), |x| CONTEXT.cos(x, None))?)
}

pub(crate) fn tan(angle: &Number) -> Fallible<Number> {
    let (sine, cosine) = (sin(angle)?, cos(angle)?);
    if cosine.is_zero() {
        return Err("the tangent of an odd multiple of pi / 2 is infinite".to_owned());
    }
    sine.divide(&cosine)
}

fn check(angle: &Number) -> Fallible<()> {
    if angle.value().clone().abs() >= decimal::ten_to(ANGLE) {
        return Err(format!("an angle must be less than 1e{ANGLE} radians"));
    }
    Ok(())
}

/// Without the noise that is left of sin(pi), because pi is rounded.
fn quiet(angle: &Number, result: Number) -> Fallible<Number> {
    if !angle.is_exact() && result.value().clone().abs() < noise() { Number::near(RBig::ZERO) } else { Ok(result) }
}

pub(crate) fn asin(number: &Number) -> Fallible<Number> {
    let size = number.value().clone().abs();
    if size > RBig::from_parts(1.into(), 2_u8.into()) {
        return quarter()?.subtract(&acos(number)?);
    }
    if size < tiny(HELD / 2) {
        return Number::new(number.value().clone(), number.is_exact() && number.is_zero());
    }
    at(number.value(), |x| CONTEXT.asin(x, None))
}

pub(crate) fn acos(number: &Number) -> Fallible<Number> {
    let value = number.value();
    if value.clone().abs() > RBig::ONE {
        return Err("only a number from -1 to 1 is a sine or cosine".to_owned());
    }
    if value.is_one() {
        return Number::new(RBig::ZERO, number.is_exact());
    }
    if value.clone().abs() <= RBig::from_parts(1.into(), 2_u8.into()) {
        return quarter()?.subtract(&asin(number)?);
    }
    if number.is_negative() {
        return pi()?.subtract(&acos(&number.negate())?);
    }
    // acos(x) = 2 * asin(sqrt((1 - x) / 2)), where the difference that counts is exact.
    let half = Number::new((RBig::ONE - value) / RBig::from(2), number.is_exact())?;
    asin(&root(&half, 2)?)?.multiply(&Number::exact(2)?)
}

pub(crate) fn atan(number: &Number) -> Fallible<Number> {
    let size = number.value().clone().abs();
    if size < tiny(HELD / 2) {
        return Number::new(number.value().clone(), number.is_exact() && number.is_zero());
    }
    if size > RBig::ONE {
        // atan(x) = pi / 2 - atan(1 / x)
        let rest = atan(&Number::ONE.divide(number)?)?;
        let quarter = quarter()?;
        return if number.is_negative() { quarter.negate() } else { quarter }.subtract(&rest);
    }
    at(number.value(), |x| CONTEXT.atan(x, None))
}

/// A right angle.
fn quarter() -> Fallible<Number> {
    pi()?.divide(&Number::exact(2)?)
}
