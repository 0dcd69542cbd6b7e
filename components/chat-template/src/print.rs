//! How values print: as Python's `str` and `repr` print them.
//!
//! minijinja prints numbers like `1e-07` in another way, and some templates print
//! the schemas of tools as Python's dictionaries.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, Output, State};

use crate::json;

/// The name of the filter that is Python's `str`, which no template uses.
pub(crate) const FILTER: &str = "__text";

/// How deep values may be nested.
const MAX_DEPTH: usize = 64;

/// What `{{ … }}` does with a value.
pub(crate) fn expression(
    mark: Option<char>,
    out: &mut Output<'_>,
    state: &State<'_, '_>,
    value: &Value,
) -> Result<(), Error> {
    let written = match value.as_str() {
        Some(text) => out.write_str(text),
        None => out.write_str(&string(mark, state, value)?),
    };
    written.map_err(|_| Error::new(ErrorKind::WriteFailure, "the prompt cannot be written"))
}

/// Both the filter `string` and [`FILTER`].
pub(crate) fn filter(mark: Option<char>, state: &State<'_, '_>, value: &Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::String => Ok(value.clone()),
        _ => string(mark, state, value).map(Value::from),
    }
}

/// Python's `str`.
pub(crate) fn string(mark: Option<char>, state: &State<'_, '_>, value: &Value) -> Result<String, Error> {
    match value.kind() {
        ValueKind::Undefined => Ok(String::new()),
        ValueKind::String => Ok(value.as_str().unwrap_or_default().to_owned()),
        _ => {
            let mut printer = Printer { mark, state, out: String::new(), paid: 0 };
            printer.repr(value, 0)?;
            Ok(printer.out)
        }
    }
}

struct Printer<'a, 'b, 'c> {
    mark: Option<char>,
    state: &'a State<'b, 'c>,
    out: String,
    /// The length of the text that fuel was taken for.
    paid: usize,
}

impl Printer<'_, '_, '_> {
    fn repr(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        self.state.consume_fuel(((self.out.len() - self.paid) / 64 + 1) as u64)?;
        self.paid = self.out.len();
        if depth > MAX_DEPTH {
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                format!("a value that is printed is nested deeper than {MAX_DEPTH} levels"),
            ));
        }
        match value.kind() {
            ValueKind::Undefined => self.out.push_str("Undefined"),
            ValueKind::None => self.out.push_str("None"),
            ValueKind::Number => self.out.push_str(&json::number(value)),
            ValueKind::String => self.quoted(value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => {
                let tuple = value.is_tuple();
                self.out.push(if tuple { '(' } else { '[' });
                let mut count = 0_usize;
                for item in value.try_iter()? {
                    if count > 0 {
                        self.out.push_str(", ");
                    }
                    self.repr(&item, depth + 1)?;
                    count += 1;
                }
                if tuple && count == 1 {
                    self.out.push(',');
                }
                self.out.push(if tuple { ')' } else { ']' });
            }
            ValueKind::Map if value.as_object().is_some_and(|object| object.try_iter_pairs().is_some()) => {
                self.out.push('{');
                for (index, key) in value.try_iter()?.enumerate() {
                    if index > 0 {
                        self.out.push_str(", ");
                    }
                    self.repr(&key, depth + 1)?;
                    self.out.push_str(": ");
                    self.repr(&value.get_item(&key)?, depth + 1)?;
                }
                self.out.push('}');
            }
            // Truth values, and things that no template prints.
            _ => self.out.push_str(&value.to_string()),
        }
        Ok(())
    }

    /// A string in quotes, as Python chooses and escapes them.
    fn quoted(&mut self, text: &str) {
        let mark = self.mark.filter(|mark| text.contains(*mark));
        let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
        self.out.push(quote);
        for c in text.chars() {
            if Some(c) == mark {
                self.out.push(c);
                continue;
            }
            let escape = match c {
                '\\' => "\\\\".to_owned(),
                '\n' => "\\n".to_owned(),
                '\r' => "\\r".to_owned(),
                '\t' => "\\t".to_owned(),
                _ if c == quote => format!("\\{c}"),
                _ if prints(c) => {
                    self.out.push(c);
                    continue;
                }
                _ => match u32::from(c) {
                    code @ ..0x100 => format!("\\x{code:02x}"),
                    code @ ..0x1_0000 => format!("\\u{code:04x}"),
                    code => format!("\\U{code:08x}"),
                },
            };
            // An escape has several characters, of which the source marked at
            // most the last.
            for part in escape.chars() {
                self.out.push(part);
                self.out.extend(mark);
            }
        }
        self.out.push(quote);
    }
}

/// Whether Python's `repr` leaves a character as it is: blanks other than the space,
/// controls and what is not assigned are escaped.
fn prints(c: char) -> bool {
    if c == ' ' || c.is_ascii_graphic() {
        return true;
    }
    // Behind another character, the standard library escapes what it cannot print
    // and nothing else.
    !c.is_whitespace()
        && !c.is_control()
        && c != '\u{ad}'
        && !['a', c].iter().collect::<String>().escape_debug().eq(escaped(c))
}

/// How the standard library escapes a character that it cannot print, behind an `a`.
fn escaped(c: char) -> impl Iterator<Item = char> {
    std::iter::once('a').chain(c.escape_unicode())
}

#[cfg(test)]
mod tests {
    use minijinja::Environment;
    use minijinja::value::Tuple;

    use super::*;

    fn printed(value: &Value) -> String {
        let environment = Environment::new();
        let state = environment.empty_state();
        string(None, &state, value).unwrap()
    }

    #[test]
    fn values_print_as_in_python() {
        let text = "a'b\n\u{1f}\u{a0}é\u{e000}世🌍\u{301}";
        let list = Value::from(vec![
            Value::from(text),
            Value::from(1e-7),
            Value::from(1e20),
            Value::from(true),
            Value::from(()),
        ]);
        assert_eq!(printed(&list), "[\"a'b\\n\\x1f\\xa0é\\ue000世🌍\u{301}\", 1e-07, 1e+20, True, None]");
        let both = Value::from(vec![Value::from("'\""), Value::from(Tuple::from([Value::from(1)]))]);
        assert_eq!(printed(&both), "['\\'\"', (1,)]");
        let map = Value::from_pairs([("a", Value::from(1.0)), ("b", Value::from(Vec::<Value>::new()))]);
        assert_eq!(printed(&map), "{'a': 1.0, 'b': []}");
        assert_eq!(printed(&Value::from("a'")), "a'");
        assert_eq!(printed(&Value::UNDEFINED), "");
    }

    #[test]
    fn what_is_nested_too_deeply_is_refused() {
        let deep = (0..100).fold(Value::from(1), |inner, _| Value::from(vec![inner]));
        let environment = Environment::new();
        assert!(string(None, &environment.empty_state(), &deep).is_err());
    }
}
