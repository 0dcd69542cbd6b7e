//! Units in an expression: behind numbers, by themselves and as what is converted to.

use super::{Parser, Read, percent, placed};
use crate::function;
use crate::number::Number;
use crate::quantity::Quantity;
use crate::token::Kind;
use crate::unit;

impl Parser {
    /// A number that was read, with the unit behind it, if there is one; also `5 ft 11 in`.
    pub(super) fn measured(&mut self, number: Number) -> Read<Quantity> {
        if !self.is_unit(0) {
            return Ok(number.into());
        }
        let unit = self.units()?;
        let mut whole = unit.with(number);
        while let Kind::Number(part) = self.kind(0).clone() {
            if !self.is_unit(1) {
                break;
            }
            let at = self.take();
            let unit = self.units()?;
            whole = placed(at, whole.add(&unit.with(part)))?;
        }
        Ok(whole)
    }

    /// Whether what comes so far ahead, behind a number, is a unit.
    fn is_unit(&self, ahead: usize) -> bool {
        match self.kind(ahead) {
            Kind::Name(name) => *self.kind(ahead + 1) != Kind::Open && function::constant(name).is_none(),
            // An inch, unless it is followed by what can be converted to.
            Kind::In => !matches!(self.kind(ahead + 1), Kind::Name(_) | Kind::Number(_) | Kind::Open | Kind::Percent),
            _ => false,
        }
    }

    /// Units that belong together, such as km/h or N*m.
    pub(super) fn units(&mut self) -> Read<Quantity> {
        let mut product = self.unit()?;
        loop {
            let with = match self.kind(0) {
                Kind::Times => Quantity::multiply,
                Kind::Divide => Quantity::divide,
                _ => return Ok(product),
            };
            let goes_on = match self.kind(1) {
                Kind::Name(_) => self.is_unit(1),
                other => *other == Kind::In,
            };
            if !goes_on {
                return Ok(product);
            }
            let at = self.take();
            product = placed(at, with(&product, &self.unit()?))?;
        }
    }

    /// A unit, perhaps to a power: m^2, m², m2.
    fn unit(&mut self) -> Read<Quantity> {
        let name = match self.kind(0) {
            Kind::Name(name) => name.clone(),
            _ => "in".to_owned(),
        };
        let mut power = Number::ONE;
        let found = unit::find(&name).or_else(|| {
            let (base, digit) = name.split_at_checked(name.len().checked_sub(1)?)?;
            power = Number::exact(digit.parse::<u8>().ok().filter(|digit| matches!(digit, 2 | 3))?).ok()?;
            unit::find(base)
        });
        let Some(found) = found else {
            return Err(self.problem(unit::unknown(&name)));
        };
        let mut at = self.take();
        match *self.kind(0) {
            Kind::Raised(by) => {
                at = self.take();
                power = placed(at, Number::exact(by))?;
            }
            Kind::Power => {
                at = self.take();
                let by = self.signed()?;
                power = placed(at, by.plain())?;
            }
            _ => {}
        }
        let unit = Quantity::new(Number::ONE, found);
        if power == Number::ONE { Ok(unit) } else { placed(at, unit.power(&power.into())) }
    }

    /// What is converted to.
    pub(super) fn target(&mut self) -> Read<Quantity> {
        let at = self.at();
        if *self.kind(0) == Kind::Percent {
            self.take();
            return placed(at, percent(&Number::ONE.into()));
        }
        let target = self.product()?;
        if *target.number() == Number::ONE {
            return Ok(target);
        }
        placed(at, Err("what is converted to is a unit without a number, such as km/h".to_owned()))
    }
}
