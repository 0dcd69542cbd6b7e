//! The functions and constants, by name.

use std::cmp::Ordering;

use crate::number::Number;
use crate::power::{cube_root, factorial, square_root};
use crate::problem::Fallible;
use crate::quantity::Quantity;
use crate::series;

/// Name, and how it is written.
const FUNCTIONS: &[(&str, &str)] = &[
    ("sqrt", "sqrt(x)"),
    ("cbrt", "cbrt(x)"),
    ("abs", "abs(x)"),
    ("floor", "floor(x)"),
    ("ceil", "ceil(x)"),
    ("trunc", "trunc(x)"),
    ("round", "round(x) or round(x, digits)"),
    ("min", "min(a, b, ...)"),
    ("max", "max(a, b, ...)"),
    ("sum", "sum(a, b, ...)"),
    ("avg", "avg(a, b, ...)"),
    ("mean", "mean(a, b, ...)"),
    ("pow", "pow(a, b) or a ^ b"),
    ("ln", "ln(x)"),
    ("log", "log(x, base), or ln(x), log10(x) or log2(x)"),
    ("log10", "log10(x)"),
    ("log2", "log2(x)"),
    ("exp", "exp(x)"),
    ("sin", "sin(x)"),
    ("cos", "cos(x)"),
    ("tan", "tan(x)"),
    ("asin", "asin(x)"),
    ("acos", "acos(x)"),
    ("atan", "atan(x)"),
    ("factorial", "factorial(n) or n!"),
];

/// Whether there is a function of this name.
pub(crate) fn is_known(name: &str) -> bool {
    FUNCTIONS.iter().any(|(known, _)| *known == name)
}

/// How a function is written; none if there is no such function.
pub(crate) fn usage(name: &str) -> Option<&'static str> {
    FUNCTIONS.iter().find(|(known, _)| *known == name).map(|(_, usage)| *usage)
}

/// Why there is no function of a name, with what there is instead.
pub(crate) fn unknown(name: &str) -> String {
    let shown: String = name.chars().take(40).collect();
    let known: Vec<&str> = FUNCTIONS.iter().map(|(known, _)| *known).collect();
    format!("there is no function `{shown}`; there are {}", known.join(", "))
}

/// A constant.
pub(crate) fn constant(name: &str) -> Option<Fallible<Number>> {
    match name {
        "pi" | "π" | "PI" | "Pi" => Some(series::pi()),
        "e" => Some(series::e()),
        _ => None,
    }
}

/// What a function is of its arguments.
pub(crate) fn call(name: &str, arguments: &[Quantity]) -> Fallible<Quantity> {
    match (name, arguments) {
        ("sqrt", [x]) => root(x, 2, square_root),
        ("cbrt", [x]) => root(x, 3, cube_root),
        ("abs", [x]) => Ok(x.with(x.number().absolute())),
        ("floor", [x]) => Ok(x.with(x.number().floor())),
        ("ceil", [x]) => Ok(x.with(x.number().ceil())),
        ("trunc", [x]) => Ok(x.with(x.number().trunc())),
        ("round", [x]) => Ok(x.with(x.number().round(0)?)),
        ("round", [x, digits]) => {
            let digits = digits.plain()?.integer().ok_or("the digits to round to are a small integer")?;
            Ok(x.with(x.number().round(digits)?))
        }
        ("min", [first, rest @ ..]) => best(first, rest, Ordering::Less),
        ("max", [first, rest @ ..]) => best(first, rest, Ordering::Greater),
        ("sum", [first, rest @ ..]) => rest.iter().try_fold(first.clone(), |sum, x| sum.add(&x.to(&sum)?)),
        ("avg" | "mean", [first, rest @ ..]) => average(first, rest),
        ("pow", [a, b]) => a.power(b),
        ("log", [x, base]) => Ok(series::logarithm(&x.plain()?, &base.plain()?)?.into()),
        ("ln", [x]) => of(series::ln, x),
        ("log10", [x]) => of(series::log10, x),
        ("log2", [x]) => of(series::log2, x),
        ("exp", [x]) => of(series::exp, x),
        ("sin", [x]) => of(series::sin, x),
        ("cos", [x]) => of(series::cos, x),
        ("tan", [x]) => of(series::tan, x),
        ("asin", [x]) => of(series::asin, x),
        ("acos", [x]) => of(series::acos, x),
        ("atan", [x]) => of(series::atan, x),
        ("factorial", [x]) => of(factorial, x),
        _ => Err(match usage(name) {
            Some(usage) => format!("`{name}` is not for {} arguments; write {usage}", arguments.len()),
            None => unknown(name),
        }),
    }
}

fn of(function: fn(&Number) -> Fallible<Number>, x: &Quantity) -> Fallible<Quantity> {
    Ok(function(&x.plain()?)?.into())
}

/// The root of a number is looked for without a logarithm; the one of its unit is a power.
fn root(x: &Quantity, by: i32, function: fn(&Number) -> Fallible<Number>) -> Fallible<Quantity> {
    if x.unit().is_none() {
        return of(function, x);
    }
    let exponent = Number::ONE.divide(&Number::exact(by)?)?;
    let unit = x.with(Number::ONE).power(&exponent.into())?;
    unit.multiply(&function(x.number())?.into())
}

fn best(first: &Quantity, rest: &[Quantity], wanted: Ordering) -> Fallible<Quantity> {
    let mut best = first;
    for x in rest {
        if x.to(best)?.number().partial_cmp(best.number()) == Some(wanted) {
            best = x;
        }
    }
    Ok(best.clone())
}

/// In the unit of the first one. It may be that of a scale, because the weights add up to 1.
fn average(first: &Quantity, rest: &[Quantity]) -> Fallible<Quantity> {
    let mut sum = first.number().clone();
    for x in rest {
        sum = sum.add(x.to(first)?.number())?;
    }
    Ok(first.with(sum.divide(&Number::exact(rest.len() + 1)?)?))
}
