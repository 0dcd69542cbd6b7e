//! `[….limits]`: values with units, by the names of the one table.

use nala_tenant::{Limit, Limits, UNLIMITED, Unit};
use toml::{Spanned, Value};

use super::error::{self, Error};
use super::raw::LimitTable;
use super::source::Source;
use super::unknown;
use crate::quantity;

/// The limits of a table; what is not in it stays as in `defaults`.
///
/// # Errors
/// A limit that is not known, or a value that is not in its unit.
pub(super) fn read(table: &LimitTable, defaults: Limits, source: Source<'_>) -> Result<Limits, Error> {
    let mut limits = defaults;
    for (name, value) in table {
        let Some(limit) = Limit::by_name(name.get_ref()) else {
            let known: Vec<String> = Limit::all().map(|limit| limit.row().name.to_owned()).collect();
            let help = unknown::help(name.get_ref(), &known);
            return Err(error::at(source, name.span(), format!("there is no limit `{}`", name.get_ref()), help));
        };
        limits.set(limit, self::value(limit, value, source)?);
    }
    Ok(limits)
}

fn value(limit: Limit, value: &Spanned<Value>, source: Source<'_>) -> Result<u64, Error> {
    let unit = limit.row().unit;
    let read = match (value.get_ref(), unit) {
        // Nothing needs no unit.
        (Value::Integer(0), _) => Some(0),
        (Value::Integer(number), Unit::Count) => u64::try_from(*number).ok(),
        (Value::String(text), _) if text == "unlimited" => Some(UNLIMITED),
        (Value::String(text), Unit::Bytes) => quantity::bytes(text),
        (Value::String(text), Unit::Time) => {
            quantity::duration(text).and_then(|time| u64::try_from(time.as_micros()).ok())
        }
        _ => None,
    };
    read.ok_or_else(|| {
        let (wanted, example) = match unit {
            Unit::Count => ("number", "a whole number, such as 32"),
            Unit::Bytes => ("size", "for example \"64MiB\""),
            Unit::Time => ("duration", "for example \"500ms\", \"60s\" or \"1m\""),
        };
        let shown = value.get_ref().to_string();
        let message = format!("{shown} is no {wanted} for `{}`", limit.row().name);
        error::at(source, value.span(), message, format!("write {example}; 0 allows nothing, \"unlimited\" everything"))
    })
}
