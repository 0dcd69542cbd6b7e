//! How deep values may be nested.
//!
//! minijinja walks over values, compares them and frees them by recursion, so a
//! template that puts a list into a list ten thousand times over would use up the
//! stack. [`crate::source`] passes what a template writes down of other values,
//! `[x]`, `{'a': x}`, `(x, y)` and `namespace(a=x)`, through the filter [`FILTER`],
//! which looks, and what is assigned to an attribute by its name, `{% set ns.a = x
//! %}`, through [`ASSIGNED`].

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

/// The name of the filter, which no template uses.
pub(crate) const FILTER: &str = "__not_too_deep";

/// The name of the filter for a value that is assigned.
pub(crate) const ASSIGNED: &str = "__not_too_deep_for_an_attribute";

/// More than JSON from outside has, which is 128 levels.
const MAX_DEPTH: usize = 200;

/// The filter: the value as it is.
pub(crate) fn checked(state: &State<'_, '_>, value: &Value) -> Result<Value, Error> {
    look(state, value, 0)?;
    Ok(value.clone())
}

/// The filter for a value that is assigned to an attribute: a namespace in a
/// namespace would go unseen. Lists were looked at when they were written down, and
/// may be long.
pub(crate) fn assigned(state: &State<'_, '_>, value: &Value) -> Result<Value, Error> {
    if value.kind() == ValueKind::Map { checked(state, value) } else { Ok(value.clone()) }
}

fn look(state: &State<'_, '_>, value: &Value, depth: usize) -> Result<(), Error> {
    // One list may stand in another many times.
    state.consume_fuel(1)?;
    if depth > MAX_DEPTH {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            format!("values are nested deeper than {MAX_DEPTH} levels"),
        ));
    }
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => value.try_iter()?.try_for_each(|item| look(state, &item, depth + 1)),
        ValueKind::Map if value.as_object().is_some() => {
            value.try_iter()?.try_for_each(|key| look(state, &value.get_item(&key)?, depth + 1))
        }
        _ => Ok(()),
    }
}
