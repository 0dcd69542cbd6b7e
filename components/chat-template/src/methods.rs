//! The methods of Python's strings that minijinja's own compatibility lacks or
//! has otherwise than Python.

use minijinja::value::{Tuple, Value, from_args};
use minijinja::{Error, ErrorKind, State};

/// The most characters that a single method may pad to or format a value to.
/// Nothing that is read by a model is wider.
const MAX_WIDTH: usize = 4096;

/// Calls a method that a value does not have of itself.
pub(crate) fn call(state: &mut State<'_, '_>, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    match value.as_str() {
        Some(text) => match string(text, method, args)? {
            Some(result) => Ok(result),
            None => minijinja_contrib::pycompat::unknown_method_callback(state, value, method, args),
        },
        None => minijinja_contrib::pycompat::unknown_method_callback(state, value, method, args),
    }
}

/// A method of a string; none where minijinja's own is right.
fn string(text: &str, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    Ok(Some(match method {
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            Value::from(text.strip_prefix(prefix).unwrap_or(text))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            Value::from(text.strip_suffix(suffix).unwrap_or(text))
        }
        "partition" => {
            let (separator,): (&str,) = from_args(args)?;
            let (before, after) = text.split_once(filled(separator)?).unwrap_or((text, ""));
            parts(before, if before.len() == text.len() { "" } else { separator }, after)
        }
        "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            match text.rsplit_once(filled(separator)?) {
                Some((before, after)) => parts(before, separator, after),
                None => parts("", "", text),
            }
        }
        "rsplit" => {
            let (separator, limit): (Option<&str>, Option<i64>) = from_args(args)?;
            Value::from(rsplit(text, separator, limit.and_then(|limit| usize::try_from(limit).ok()))?)
        }
        "zfill" => {
            let (width,): (i64,) = from_args(args)?;
            let (sign, digits) = match text.strip_prefix(['+', '-']) {
                Some(digits) => text.split_at(text.len() - digits.len()),
                None => ("", text),
            };
            Value::from(format!("{sign}{}{digits}", "0".repeat(missing(text, width)?)))
        }
        "ljust" => {
            let (width, fill): (i64, Option<char>) = from_args(args)?;
            let padding = padding(fill, missing(text, width)?);
            Value::from(format!("{text}{padding}"))
        }
        "rjust" => {
            let (width, fill): (i64, Option<char>) = from_args(args)?;
            let padding = padding(fill, missing(text, width)?);
            Value::from(format!("{padding}{text}"))
        }
        "center" => {
            let (width, fill): (i64, Option<char>) = from_args(args)?;
            let missing = missing(text, width)?;
            // Where it does not come out even, CPython puts one more on the left
            // if the width is odd.
            let left = missing / 2 + (missing & usize::try_from(width).unwrap_or(0) & 1);
            Value::from(format!("{}{text}{}", padding(fill, left), padding(fill, missing - left)))
        }
        "casefold" => {
            let () = from_args(args)?;
            Value::from(text.to_lowercase())
        }
        "swapcase" => {
            let () = from_args(args)?;
            let swapped = text.chars().flat_map(|c| -> Vec<char> {
                if c.is_lowercase() { c.to_uppercase().collect() } else { c.to_lowercase().collect() }
            });
            Value::from(swapped.collect::<String>())
        }
        "index" | "rindex" => {
            let (part,): (&str,) = from_args(args)?;
            let found = if method == "index" { text.find(part) } else { text.rfind(part) };
            let before = found.and_then(|at| text.get(..at)).ok_or_else(|| refuse("substring not found"))?;
            Value::from(before.chars().count())
        }
        "format" => {
            narrow(text)?;
            return Ok(None);
        }
        _ => return Ok(None),
    }))
}

fn parts(before: &str, separator: &str, after: &str) -> Value {
    Value::from(Tuple::from([Value::from(before), Value::from(separator), Value::from(after)]))
}

/// A separator, which Python wants to have at least a character.
fn filled(separator: &str) -> Result<&str, Error> {
    if separator.is_empty() { Err(refuse("empty separator")) } else { Ok(separator) }
}

/// How many characters a text lacks to a width.
fn missing(text: &str, width: i64) -> Result<usize, Error> {
    let width = usize::try_from(width).unwrap_or(0);
    let missing = width.saturating_sub(text.chars().count());
    if missing > MAX_WIDTH {
        return Err(refuse(&format!("a text is padded by {missing} characters, the most are {MAX_WIDTH}")));
    }
    Ok(missing)
}

fn padding(fill: Option<char>, count: usize) -> String {
    std::iter::repeat_n(fill.unwrap_or(' '), count).collect()
}

/// Splits from the right, at most `limit` times; at white space where no
/// separator is given.
fn rsplit(text: &str, separator: Option<&str>, limit: Option<usize>) -> Result<Vec<Value>, Error> {
    let limit = limit.unwrap_or(usize::MAX);
    let mut found: Vec<Value> = Vec::new();
    let mut rest = Some(match separator {
        Some(_) => text,
        None => text.trim_end(),
    });
    while let Some(left) = rest {
        let cut = if found.len() == limit {
            None
        } else {
            match separator {
                Some(separator) => left.rsplit_once(filled(separator)?),
                None => left.rsplit_once(char::is_whitespace).map(|(before, last)| (before.trim_end(), last)),
            }
        };
        match cut {
            Some((before, last)) => {
                found.push(Value::from(last));
                rest = Some(before);
            }
            None => {
                if separator.is_some() || !left.trim().is_empty() {
                    found.push(Value::from(left));
                }
                rest = None;
            }
        }
    }
    // Leading white space is a separator without anything before it.
    if separator.is_none() {
        found.retain(|part| part.as_str().is_some_and(|part| !part.is_empty()));
    }
    found.reverse();
    Ok(found)
}

/// Refuses the widths and precisions of a format for `str.format` that would
/// take a lot of memory.
pub(crate) fn narrow(format: &str) -> Result<(), Error> {
    let numbers = format.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    for digits in numbers {
        if digits.parse::<usize>().is_ok_and(|number| number <= MAX_WIDTH) {
            continue;
        }
        return Err(refuse(&format!("the format {format:?} has a number above {MAX_WIDTH}")));
    }
    Ok(())
}

fn refuse(reason: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, reason.to_owned())
}
