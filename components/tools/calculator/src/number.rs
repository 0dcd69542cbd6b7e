//! Numbers: fractions of integers, and whether they are exact.

use std::cmp::Ordering;

use dashu_base::{Abs, BitTest, Signed, UnsignedAbs};
use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;

use crate::decimal;
use crate::limits::{BITS, DIGITS, HELD, NOISE};
use crate::problem::Fallible;

/// A number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Number {
    value: RBig,
    exact: bool,
}

impl Number {
    pub(crate) const ZERO: Self = Self { value: RBig::ZERO, exact: true };
    pub(crate) const ONE: Self = Self { value: RBig::ONE, exact: true };

    /// A number within the limits, held in fewer digits where it is not exact or has too
    /// many of them.
    pub(crate) fn new(value: RBig, exact: bool) -> Fallible<Self> {
        // A bit is less than 0.302 digits, so nothing that is within the limits is refused.
        let bits = bits(value.numerator()).abs_diff(value.denominator().bit_len());
        if bits > BITS {
            return Err(if value.abs() > RBig::ONE { too_large() } else { too_small() });
        }
        if exact && bits_of(&value) <= BITS {
            return Ok(Self { value, exact });
        }
        let rounded = decimal::round(&value, HELD);
        Ok(Self { value: rounded.value(), exact: exact && rounded.exact })
    }

    pub(crate) fn exact(value: impl Into<RBig>) -> Fallible<Self> {
        Self::new(value.into(), true)
    }

    /// A number that is not exact.
    pub(crate) fn near(value: RBig) -> Fallible<Self> {
        Self::new(value, false)
    }

    /// A decimal: its digits, how many of them are behind the point, and a power of ten.
    pub(crate) fn read(digits: &str, decimals: usize, exponent: &str) -> Fallible<Self> {
        let value = UBig::from_str_radix(digits, 10).map_err(|error| error.to_string())?;
        if value.is_zero() {
            return Ok(Self::ZERO);
        }
        let negative = exponent.starts_with('-');
        let exponent: isize = match exponent {
            "" => 0,
            _ => exponent.parse().unwrap_or(if negative { isize::MIN } else { isize::MAX }),
        };
        let exponent = exponent.saturating_sub_unsigned(decimals);
        // A long number is moved at most by its own length and the limit.
        if exponent.unsigned_abs() > DIGITS + digits.len() {
            return Err(if negative { too_small() } else { too_large() });
        }
        Self::exact(RBig::from(value) * decimal::ten_to(exponent))
    }

    pub(crate) fn value(&self) -> &RBig {
        &self.value
    }

    pub(crate) fn is_exact(&self) -> bool {
        self.exact
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.value.is_zero()
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.value.is_negative()
    }

    /// The integer that it is, if it is one of this type.
    pub(crate) fn integer<T: TryFrom<IBig>>(&self) -> Option<T> {
        self.value.is_int().then(|| T::try_from(self.value.numerator().clone()).ok()).flatten()
    }

    pub(crate) fn negate(&self) -> Self {
        Self { value: -self.value.clone(), exact: self.exact }
    }

    pub(crate) fn absolute(&self) -> Self {
        Self { value: self.value.clone().abs(), exact: self.exact }
    }

    pub(crate) fn add(&self, other: &Self) -> Fallible<Self> {
        let sum = &self.value + &other.value;
        let exact = self.exact && other.exact;
        // What is left of 2 - sqrt(2)^2 is only how far the root was rounded.
        if !exact && sum.clone().abs() < self.value.clone().abs().max(other.value.clone().abs()) * noise() {
            return Self::near(RBig::ZERO);
        }
        Self::new(sum, exact)
    }

    pub(crate) fn subtract(&self, other: &Self) -> Fallible<Self> {
        self.add(&other.negate())
    }

    pub(crate) fn multiply(&self, other: &Self) -> Fallible<Self> {
        // Nothing times whatever is nothing.
        let nothing = self.exact && self.is_zero() || other.exact && other.is_zero();
        Self::new(&self.value * &other.value, self.exact && other.exact || nothing)
    }

    pub(crate) fn divide(&self, other: &Self) -> Fallible<Self> {
        if other.is_zero() {
            return Err("a division by 0 has no result".to_owned());
        }
        Self::new(&self.value / &other.value, self.exact && other.exact)
    }

    /// What is left of a division, with the sign of the divisor.
    pub(crate) fn modulo(&self, other: &Self) -> Fallible<Self> {
        let whole = self.divide(other)?.floor();
        if !whole.exact {
            return Err("the remainder of a number that is not exact is not known".to_owned());
        }
        self.subtract(&whole.multiply(other)?)
    }

    pub(crate) fn floor(&self) -> Self {
        self.whole(RBig::floor)
    }

    pub(crate) fn ceil(&self) -> Self {
        self.whole(RBig::ceil)
    }

    pub(crate) fn trunc(&self) -> Self {
        self.whole(RBig::trunc)
    }

    /// To so many digits behind the point, or zeros before it; a half is rounded away from 0.
    pub(crate) fn round(&self, digits: isize) -> Fallible<Self> {
        if digits.unsigned_abs() > DIGITS {
            return Err(format!("a number is rounded to at most {DIGITS} digits"));
        }
        let moved = &self.value * decimal::ten_to(digits);
        Self::new(RBig::from(moved.round()) * decimal::ten_to(-digits), self.exact)
    }

    fn whole(&self, to: impl Fn(&RBig) -> IBig) -> Self {
        Self { value: RBig::from(to(&self.value)), exact: self.exact }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.value.partial_cmp(&other.value)
    }
}

/// The part of a number below which nothing is known of one that is not exact.
pub(crate) fn noise() -> RBig {
    decimal::ten_to(-NOISE.cast_signed())
}

/// The bits of the larger part of a fraction.
pub(crate) fn bits_of(value: &RBig) -> usize {
    bits(value.numerator()).max(value.denominator().bit_len())
}

fn bits(value: &IBig) -> usize {
    value.unsigned_abs().bit_len()
}

pub(crate) fn too_large() -> String {
    format!("the number is too large: it must have at most {DIGITS} digits before the point")
}

pub(crate) fn too_small() -> String {
    format!("the number is too small: it must not be nearer to 0 than 1e-{DIGITS}")
}
