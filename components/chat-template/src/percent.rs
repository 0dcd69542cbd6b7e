//! Python's `'…' % values`.
//!
//! minijinja has the filter `format` and no operator for it, so
//! [`crate::source`] rewrites `'…' % values` to a filter of ours.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

/// The name of the filter, which no template uses.
pub(crate) const FILTER: &str = "__percent";

/// The filter: formats the values of a tuple or a single one.
pub(crate) fn format(state: &mut State<'_, '_>, format: &str, values: &Value) -> Result<Value, Error> {
    let mut args = vec![Value::from(format)];
    if values.is_tuple() {
        args.extend(values.try_iter()?);
    } else {
        args.push(values.clone());
    }
    if args.iter().any(Value::is_undefined) {
        return Err(Error::new(ErrorKind::UndefinedError, format!("an undefined value for the format {format:?}")));
    }
    let formatted = state.apply_filter("format", &args)?;
    debug_assert_eq!(formatted.kind(), ValueKind::String, "the filter makes texts");
    Ok(formatted)
}
