//! Numbers of something, and how one calculates with them.

use crate::measure::Measure;
use crate::number::Number;
use crate::power::power;
use crate::problem::Fallible;
use crate::unit::{Dimension, Unit};

/// A number in a unit.
#[derive(Clone, Debug)]
pub(crate) struct Quantity {
    number: Number,
    measure: Measure,
}

impl From<Number> for Quantity {
    fn from(number: Number) -> Self {
        Self { number, measure: Measure::default() }
    }
}

impl Quantity {
    pub(crate) fn new(number: Number, unit: Unit) -> Self {
        Self { number, measure: Measure::of(unit) }
    }

    pub(crate) fn number(&self) -> &Number {
        &self.number
    }

    /// The name of its unit; none for a plain number.
    pub(crate) fn unit(&self) -> Option<String> {
        self.measure.name()
    }

    /// What it is of, for a message.
    pub(crate) fn described(&self) -> String {
        self.measure.described()
    }

    /// Whether it is a scale that does not begin at its 0, such as °C.
    pub(crate) fn is_scale(&self) -> bool {
        self.measure.offset().is_some()
    }

    /// The same unit with another number.
    pub(crate) fn with(&self, number: Number) -> Self {
        Self { number, measure: self.measure.clone() }
    }

    /// The same thing in the unit of another one.
    pub(crate) fn to(&self, other: &Self) -> Fallible<Self> {
        if self.measure.dimension() != other.measure.dimension() {
            return Err(format!("{} cannot be converted to {}", self.described(), other.described()));
        }
        if self.measure == other.measure {
            return Ok(self.clone());
        }
        let mut number = self.number.clone();
        if let Some(offset) = self.measure.offset() {
            number = number.add(&Number::exact(offset.clone())?)?;
        }
        number = number.multiply(&self.measure.factor().over(&other.measure.factor())?)?;
        if let Some(offset) = other.measure.offset() {
            number = number.subtract(&Number::exact(offset.clone())?)?;
        }
        Ok(other.with(number))
    }

    /// The number of something that has no dimension, such as 20 % or 30 deg.
    pub(crate) fn plain(&self) -> Fallible<Number> {
        if self.measure.dimension() != Dimension::default() {
            return Err(format!("a plain number is needed, not {}", self.described()));
        }
        Ok(self.to(&Number::ONE.into())?.number)
    }

    pub(crate) fn add(&self, other: &Self) -> Fallible<Self> {
        if other.measure.is_percent() && !self.measure.is_percent() {
            self.no_scale()?;
            return self.multiply(&Number::ONE.add(&other.plain()?)?.into());
        }
        self.same("added", other)?;
        if other.is_scale() {
            return Err(format!(
                "two temperatures of {} cannot be added; write the difference in K, as in 20 °C + 5 K",
                other.described()
            ));
        }
        if let Some(scale) = self.scale_step() {
            // 5 K more are 5 °C more, or 9 °F.
            return Ok(self.with(self.number.add(&other.to(&scale)?.number)?));
        }
        Ok(self.with(self.number.add(&other.to(self)?.number)?))
    }

    pub(crate) fn subtract(&self, other: &Self) -> Fallible<Self> {
        if self.is_scale() && other.is_scale() {
            // The difference of two temperatures is no temperature: it is told in K.
            let kelvin = kelvin()?;
            let other = other.to(&kelvin)?;
            return Ok(kelvin.with(self.to(&kelvin)?.number.subtract(&other.number)?));
        }
        if !other.measure.is_percent() {
            self.same("subtracted", other)?;
        }
        if other.is_scale() {
            return Err(format!("{} cannot be subtracted from {}", other.described(), self.described()));
        }
        self.add(&other.with(other.number.negate()))
    }

    pub(crate) fn multiply(&self, other: &Self) -> Fallible<Self> {
        self.product(other, 1)
    }

    pub(crate) fn divide(&self, other: &Self) -> Fallible<Self> {
        self.product(other, -1)
    }

    fn product(&self, other: &Self, sign: i32) -> Fallible<Self> {
        let (one, two) = (self.without_percent()?, other.without_percent()?);
        one.no_scale()?;
        two.no_scale()?;
        let (measure, left) = one.measure.times(&two.measure, sign)?;
        let number = if sign < 0 { one.number.divide(&two.number) } else { one.number.multiply(&two.number) };
        Ok(Self { number: number?.multiply(&left)?, measure })
    }

    /// What is left of a division, in the unit of what was divided.
    pub(crate) fn modulo(&self, other: &Self) -> Fallible<Self> {
        self.same("divided with a remainder", other)?;
        self.no_scale()?;
        Ok(self.with(self.number.modulo(&other.to(self)?.number)?))
    }

    pub(crate) fn power(&self, exponent: &Self) -> Fallible<Self> {
        let base = self.without_percent()?;
        base.no_scale()?;
        let exponent = exponent.plain()?;
        if base.measure.is_plain() {
            return Ok(power(&base.number, &exponent)?.into());
        }
        let (above, below) = (exponent.value().numerator(), exponent.value().denominator());
        let measure = i32::try_from(above.clone()).ok().zip(i32::try_from(below.clone()).ok());
        let measure = measure.and_then(|(above, below)| base.measure.to_the(above, below));
        let measure = measure.ok_or_else(|| format!("there is no such power of {}", base.described()))?;
        Ok(Self { number: power(&base.number, &exponent)?, measure })
    }

    fn without_percent(&self) -> Fallible<Self> {
        if self.measure.is_percent() { Ok(self.plain()?.into()) } else { Ok(self.clone()) }
    }

    /// One step of a scale as a difference, such as 1 K for °C.
    fn scale_step(&self) -> Option<Self> {
        self.measure.offset()?;
        Some(Self { number: Number::ONE, measure: self.measure.without_offset() })
    }

    fn no_scale(&self) -> Fallible<()> {
        if self.is_scale() {
            return Err(format!("one does not calculate with {}; convert it to K first", self.described()));
        }
        Ok(())
    }

    fn same(&self, done: &str, other: &Self) -> Fallible<()> {
        if self.measure.dimension() == other.measure.dimension() {
            return Ok(());
        }
        Err(format!("{} and {} cannot be {done}: they are not of one kind", self.described(), other.described()))
    }
}

fn kelvin() -> Fallible<Quantity> {
    let unit = crate::unit::find("K").ok_or_else(|| crate::unit::unknown("K"))?;
    Ok(Quantity::new(Number::ONE, unit))
}
