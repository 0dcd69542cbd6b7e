//! What an expression may cost. All work is a product of these, whatever is asked.

/// Characters of an expression: a list of some hundred numbers fits.
pub(crate) const LENGTH: usize = 4_000;

/// Parentheses, functions, signs and powers within each other: each takes some of the stack.
pub(crate) const DEPTH: usize = 64;

/// A number is less than ten to this power and, unless it is 0, more than ten to minus this
/// power; an exact one has no more digits above or below the line of its fraction.
pub(crate) const DIGITS: usize = 5_000;

/// [`DIGITS`] in bits: a digit has 3.322.
pub(crate) const BITS: usize = DIGITS * 3_322 / 1_000;

/// Digits that a number is held in which is not exact.
pub(crate) const HELD: usize = 80;

/// Digits that are told of such a number: those of an IEEE 754 decimal of 128 bits. Sums and
/// functions may lose all of the difference to [`HELD`] before a wrong digit is told.
pub(crate) const TOLD: usize = 34;

/// Digits of an exact fraction that are told; one with more is rounded, because a
/// model has little use for the 731 digits of `1.01^365`.
pub(crate) const FRACTION: usize = 100;

/// What is left of a difference, as a power of ten of what was there, is noise below this.
pub(crate) const NOISE: usize = 60;

/// A unit may be taken to this power, and this many different ones may be multiplied.
pub(crate) const UNITS: usize = 8;
