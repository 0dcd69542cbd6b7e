//! Products of units, such as kg*m/s^2.

use dashu_ratio::RBig;

use crate::limits::UNITS;
use crate::number::Number;
use crate::power::power;
use crate::problem::Fallible;
use crate::series;
use crate::unit::{Dimension, Unit, quantity};

/// What a number is of; empty for a plain one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Measure {
    units: Vec<(Unit, i32)>,
}

/// How large a measure is, without a loss: a fraction, times a power of pi.
pub(crate) struct Factor {
    value: RBig,
    pi: i32,
}

impl Measure {
    pub(crate) fn of(unit: Unit) -> Self {
        Self { units: vec![(unit, 1)] }
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.units.is_empty()
    }

    pub(crate) fn is_percent(&self) -> bool {
        matches!(self.units.as_slice(), [(unit, 1)] if unit.name == "%")
    }

    /// What a scale adds before its factor, such as that of °C.
    pub(crate) fn offset(&self) -> Option<&RBig> {
        match self.units.as_slice() {
            [(unit, 1)] => unit.offset.as_ref(),
            _ => None,
        }
    }

    /// As a difference on its scale.
    pub(crate) fn without_offset(&self) -> Self {
        let units = self.units.iter().map(|(unit, power)| (Unit { offset: None, ..unit.clone() }, *power));
        Self { units: units.collect() }
    }

    pub(crate) fn dimension(&self) -> Dimension {
        let mut sum = Dimension::default();
        for (unit, power) in &self.units {
            for (sum, part) in sum.iter_mut().zip(unit.dimension) {
                *sum += part * power;
            }
        }
        sum
    }

    pub(crate) fn factor(&self) -> Factor {
        let one = Factor { value: RBig::ONE, pi: 0 };
        self.units.iter().fold(one, |product, (unit, power)| product.times(&factor(unit, *power)))
    }

    /// With another measure's units to a power of 1 or -1, and what is left of their size:
    /// units of one kind become one, so that km * m is 0.001 km^2.
    pub(crate) fn times(&self, other: &Self, sign: i32) -> Fallible<(Self, Number)> {
        let mut units = self.units.clone();
        let mut left = Factor { value: RBig::ONE, pi: 0 };
        for (unit, power) in &other.units {
            let power = power * sign;
            let plain = unit.dimension == Dimension::default();
            let same = |(known, _): &&mut (Unit, i32)| {
                known.name == unit.name || (!plain && known.dimension == unit.dimension)
            };
            match units.iter_mut().find(same) {
                Some((known, sum)) => {
                    if known.name != unit.name {
                        left = left.times(&factor(unit, power)).times(&factor(known, -power));
                    }
                    *sum += power;
                }
                None => units.push((unit.clone(), power)),
            }
        }
        units.retain(|(_, power)| *power != 0);
        let mut product = Self { units }.checked()?;
        // Hz * s is nothing but a number.
        if product.units.len() > 1 && product.dimension() == Dimension::default() {
            left = left.times(&product.factor());
            product = Self::default();
        }
        Ok((product, left.number()?))
    }

    /// To a power that is a fraction of small integers: the root of m^2 is m.
    pub(crate) fn to_the(&self, above: i32, below: i32) -> Option<Self> {
        let units = self.units.iter().map(|(unit, power)| {
            let power = power.checked_mul(above)?;
            (power.checked_rem(below)? == 0).then(|| (unit.clone(), power / below))
        });
        Self { units: units.collect::<Option<_>>()? }.checked().ok()
    }

    fn checked(self) -> Fallible<Self> {
        let limit = i32::try_from(UNITS).unwrap_or(i32::MAX);
        if self.units.len() > UNITS || self.units.iter().any(|(_, power)| power.abs() > limit) {
            return Err(format!("at most {UNITS} units are multiplied, each to a power of at most {UNITS}"));
        }
        Ok(self)
    }

    /// As it is told, such as `W/(m^2*K)`; none for a plain number.
    pub(crate) fn name(&self) -> Option<String> {
        let part = |sign: i32| {
            let named =
                self.units.iter().filter(|(_, power)| power.signum() == sign).map(|(unit, power)| match power {
                    1 | -1 => unit.name.clone(),
                    _ => format!("{}^{}", unit.name, power.abs()),
                });
            named.collect::<Vec<_>>()
        };
        let (above, below) = (part(1), part(-1));
        let above_line = if above.is_empty() { "1".to_owned() } else { above.join("*") };
        Some(match below.as_slice() {
            [] if above.is_empty() => return None,
            [] => above_line,
            [one] => format!("{above_line}/{one}"),
            several => format!("{above_line}/({})", several.join("*")),
        })
    }

    /// For a message: `km` (length).
    pub(crate) fn described(&self) -> String {
        match (self.name(), quantity(self.dimension())) {
            (None, _) => "a plain number".to_owned(),
            (Some(name), Some(kind)) => format!("`{name}` ({kind})"),
            (Some(name), None) => format!("`{name}`"),
        }
    }
}

impl Factor {
    fn times(&self, other: &Self) -> Self {
        Self { value: &self.value * &other.value, pi: self.pi + other.pi }
    }

    pub(crate) fn over(&self, other: &Self) -> Fallible<Number> {
        Self { value: &self.value / &other.value, pi: self.pi - other.pi }.number()
    }

    pub(crate) fn number(&self) -> Fallible<Number> {
        let value = Number::exact(self.value.clone())?;
        if self.pi == 0 { Ok(value) } else { value.multiply(&power(&series::pi()?, &Number::exact(self.pi)?)?) }
    }
}

/// The size of a unit to a power within the limit.
fn factor(unit: &Unit, power: i32) -> Factor {
    let pi = if unit.pi { power } else { 0 };
    Factor { value: unit.factor.pow(isize::try_from(power).unwrap_or_default()), pi }
}
