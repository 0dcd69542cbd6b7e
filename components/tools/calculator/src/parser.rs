//! What an expression means, by recursive descent. It is calculated as it is read.
//!
//! ```text
//! conversion = sum { ("to" | "in") unit }
//! sum        = product { ("+" | "-") product }
//! product    = signed { ("*" | "/" | "%" | "mod" | "of") signed }
//! signed     = { "-" | "+" } postfix [ "^" signed ]
//! postfix    = primary { "!" | "²" | "%" }
//! primary    = number [ units { number units } ] | units | constant
//!            | function "(" conversion { "," conversion } ")" | "(" conversion ")"
//! ```
//!
//! Units hold together more than what is calculated: `120 km / 60 km/h` is 2 h.

mod units;

use crate::function;
use crate::limits::{DEPTH, LENGTH};
use crate::number::Number;
use crate::problem::{Fallible, Problem};
use crate::quantity::Quantity;
use crate::token::{Kind, Token, split};
use crate::unit;

type Read<T> = Result<T, Problem>;

/// What an expression is.
pub(crate) fn read(text: &str) -> Read<Quantity> {
    // Before anything else, so that nothing is done for a long one.
    if text.chars().nth(LENGTH).is_some() {
        return Err(Problem::whole(format!("the expression has more than {LENGTH} characters; calculate it in parts")));
    }
    let mut parser = Parser { tokens: split(text)?, next: 0, depth: 0 };
    if *parser.kind(0) == Kind::End {
        return Err(Problem::whole("the expression is empty; write one such as (0.1 + 0.2) * 3"));
    }
    let whole = parser.conversion()?;
    match parser.kind(0) {
        Kind::End => Ok(whole),
        _ => Err(parser.unexpected()),
    }
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
}

impl Parser {
    /// What comes after so many others.
    fn kind(&self, ahead: usize) -> &Kind {
        self.tokens.get(self.next + ahead).map_or(&Kind::End, |token| &token.kind)
    }

    fn glued(&self, ahead: usize) -> bool {
        self.tokens.get(self.next + ahead).is_some_and(|token| token.glued)
    }

    /// Characters before the next token.
    fn at(&self) -> usize {
        self.tokens.get(self.next).or(self.tokens.last()).map_or(0, |token| token.at)
    }

    /// Takes the next token and tells where it stands.
    fn take(&mut self) -> usize {
        let at = self.at();
        self.next += 1;
        at
    }

    fn problem(&self, what: impl Into<String>) -> Problem {
        Problem::at(self.at(), what)
    }

    fn conversion(&mut self) -> Read<Quantity> {
        let mut left = self.sum()?;
        while matches!(self.kind(0), Kind::To | Kind::In) {
            let at = self.take();
            let target = self.target()?;
            left = placed(at, left.to(&target))?;
            if matches!(self.kind(0), Kind::Plus | Kind::Minus) {
                return Err(self.problem("a conversion comes last; to go on with it, put it in parentheses"));
            }
        }
        Ok(left)
    }

    fn sum(&mut self) -> Read<Quantity> {
        let mut left = self.product()?;
        loop {
            let with = match self.kind(0) {
                Kind::Plus => Quantity::add,
                Kind::Minus => Quantity::subtract,
                _ => return Ok(left),
            };
            let at = self.take();
            left = placed(at, with(&left, &self.product()?))?;
        }
    }

    fn product(&mut self) -> Read<Quantity> {
        let mut left = self.signed()?;
        loop {
            let with = match self.kind(0) {
                Kind::Times | Kind::Of => Quantity::multiply,
                Kind::Divide => Quantity::divide,
                Kind::Modulo | Kind::Percent => Quantity::modulo,
                _ => return Ok(left),
            };
            let at = self.take();
            left = placed(at, with(&left, &self.signed()?))?;
        }
    }

    /// All that is within something else comes through here.
    fn signed(&mut self) -> Read<Quantity> {
        if self.depth >= DEPTH {
            return Err(self.problem(format!("more than {DEPTH} levels are within each other; calculate it in parts")));
        }
        self.depth += 1;
        let mut negative = false;
        while matches!(self.kind(0), Kind::Plus | Kind::Minus) {
            negative ^= *self.kind(0) == Kind::Minus;
            self.take();
        }
        let mut value = self.postfix()?;
        if *self.kind(0) == Kind::Power {
            let at = self.take();
            value = placed(at, value.power(&self.signed()?))?;
        }
        self.depth -= 1;
        Ok(if negative { value.with(value.number().negate()) } else { value })
    }

    fn postfix(&mut self) -> Read<Quantity> {
        let mut value = self.primary()?;
        loop {
            value = match *self.kind(0) {
                Kind::Factorial => placed(self.take(), function::call("factorial", &[value]))?,
                Kind::Raised(power) => {
                    let at = self.take();
                    placed(at, Number::exact(power).and_then(|power| value.power(&power.into())))?
                }
                Kind::Percent if self.is_percentage()? => {
                    let at = self.take();
                    placed(at, percent(&value))?
                }
                _ => return Ok(value),
            };
        }
    }

    /// Whether the `%` that comes next is no remainder.
    fn is_percentage(&self) -> Read<bool> {
        match self.kind(1) {
            Kind::Number(_) | Kind::Name(_) | Kind::Open => Ok(false),
            // `20% - 5` is clear; `10 % -3` and `10%-3` may be meant either way.
            sign @ (Kind::Plus | Kind::Minus) if !self.glued(0) || self.glued(1) => Err(self.problem(format!(
                "`%` before {sign} may be meant in two ways: for a percentage write (20%) - 5, \
                 for a remainder 10 mod (-3)"
            ))),
            _ => Ok(true),
        }
    }

    fn primary(&mut self) -> Read<Quantity> {
        match self.kind(0).clone() {
            Kind::Number(number) => {
                self.take();
                self.measured(number)
            }
            Kind::Open => {
                self.take();
                let inner = self.conversion()?;
                self.close()?;
                Ok(inner)
            }
            Kind::In => self.units(),
            Kind::Name(name) => {
                let at = self.at();
                if *self.kind(1) == Kind::Open {
                    return self.call(&name);
                }
                if let Some(constant) = function::constant(&name) {
                    self.take();
                    return Ok(placed(at, constant)?.into());
                }
                if let Some(usage) = function::usage(&name).filter(|_| unit::find(&name).is_none()) {
                    return Err(self.problem(format!("write {usage}, with parentheses")));
                }
                self.units()
            }
            _ => Err(self.unexpected()),
        }
    }

    /// A function, whose name and parenthesis come next.
    fn call(&mut self, name: &str) -> Read<Quantity> {
        if !function::is_known(name) {
            return Err(self.problem(match unit::find(name) {
                Some(_) => format!("put an operator such as `*` between `{name}` and `(`"),
                None => function::unknown(name),
            }));
        }
        let at = self.take();
        self.take();
        let mut arguments = Vec::new();
        if *self.kind(0) != Kind::Close {
            arguments.push(self.conversion()?);
            while *self.kind(0) == Kind::Comma {
                self.take();
                arguments.push(self.conversion()?);
            }
        }
        self.close()?;
        placed(at, function::call(name, &arguments))
    }

    fn close(&mut self) -> Read<()> {
        match self.kind(0) {
            Kind::Close => {
                self.take();
                Ok(())
            }
            Kind::End => Err(self.problem("a `)` is missing")),
            _ => Err(self.unexpected()),
        }
    }

    /// What is wrong with what comes next.
    fn unexpected(&self) -> Problem {
        let before = self.next.checked_sub(1).and_then(|index| self.tokens.get(index)).map(|token| &token.kind);
        let ends = matches!(before, Some(Kind::Number(_) | Kind::Name(_) | Kind::Close | Kind::Factorial | Kind::In));
        self.problem(match self.kind(0) {
            Kind::Comma => "`,` stands between the arguments of a function; thousands are written with `_`, \
                            as 1_234, and decimals with `.`"
                .to_owned(),
            Kind::Close if ends => "there is no `(` for this `)`".to_owned(),
            operand @ (Kind::Number(_) | Kind::Name(_) | Kind::Open) => {
                format!("put an operator such as `*` before {operand}")
            }
            other => format!("a number, a function or a unit is expected, not {other}"),
        })
    }
}

fn percent(value: &Quantity) -> Fallible<Quantity> {
    match (value.unit(), unit::find("%")) {
        (None, Some(percent)) => Ok(Quantity::new(value.number().clone(), percent)),
        _ => Err(format!("`%` follows a plain number, not {}", value.described())),
    }
}

fn placed<T>(at: usize, result: Fallible<T>) -> Read<T> {
    result.map_err(|what| Problem::at(at, what))
}
