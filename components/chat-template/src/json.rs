//! `tojson` exactly as the reference has it.
//!
//! transformers replaces Jinja's own filter by Python's `json.dumps(value,
//! ensure_ascii=False)`: nothing is escaped for HTML, items are separated by
//! `", "` and `": "`, keys keep their order, and floats print as Python prints
//! them. Models were trained on that text, so every byte counts.

use minijinja::value::{Kwargs, Serde, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

/// How deep values may be nested.
const MAX_DEPTH: usize = 64;

/// How `json.dumps` was asked to write.
struct Style {
    ascii: bool,
    indent: Option<String>,
    between: String,
    colon: String,
    sorted: bool,
    /// The code point that marks text from outside; see [`crate::origin`].
    mark: Option<char>,
}

/// The filter, `tojson(ensure_ascii=False, indent=None, separators=None,
/// sort_keys=False)`.
pub(crate) fn tojson(
    mark: Option<char>,
    state: &State<'_, '_>,
    value: &Value,
    args: &[Value],
    kwargs: &Kwargs,
) -> Result<String, Error> {
    let arg = |index: usize, name: &str| -> Result<Value, Error> {
        let named: Option<Value> = kwargs.get(name)?;
        let given = named.or_else(|| args.get(index).cloned());
        Ok(given.filter(|value| !value.is_undefined()).unwrap_or(Value::from(())))
    };
    let ascii = arg(0, "ensure_ascii")?.is_true();
    let indent = arg(1, "indent")?;
    let indent = match indent.kind() {
        ValueKind::None => None,
        ValueKind::String => indent.as_str().map(str::to_owned),
        _ => {
            let width = i64::try_from(indent)?;
            Some(" ".repeat(usize::try_from(width.clamp(0, 32)).unwrap_or(0)))
        }
    };
    let separators = arg(2, "separators")?;
    let (between, colon) = if separators.is_none() {
        (if indent.is_some() { "," } else { ", " }.to_owned(), ": ".to_owned())
    } else {
        (separators.get_item_by_index(0)?.to_string(), separators.get_item_by_index(1)?.to_string())
    };
    let sorted = arg(3, "sort_keys")?.is_true();
    kwargs.assert_all_used()?;

    let style = Style { ascii, indent, between, colon, sorted, mark };
    let mut out = Writer { text: String::new(), state: Some(state), paid: 0 };
    style.value(value, 0, &mut out)?;
    Ok(out.text)
}

/// An object as the filter writes it without arguments, of which nothing is marked.
pub(crate) fn object(object: &serde_json::Map<String, serde_json::Value>) -> String {
    let style = Style {
        ascii: false,
        indent: None,
        between: ", ".to_owned(),
        colon: ": ".to_owned(),
        sorted: false,
        mark: None,
    };
    let mut out = Writer { text: String::new(), state: None, paid: 0 };
    // What is nested too deeply for the filter is written all the same.
    match style.value(&Value::from(Serde(object)), 0, &mut out) {
        Ok(()) => out.text,
        Err(_) => serde_json::Value::Object(object.clone()).to_string(),
    }
}

/// The filter `from_json`: a value from JSON text. transformers lacks it; some
/// templates call it, as engines other than transformers offer it.
pub(crate) fn from_json(text: &str) -> Result<Value, Error> {
    let parsed: Result<serde_json::Value, _> = serde_json::from_str(text);
    parsed
        .map(|value| Value::from(Serde(value)))
        .map_err(|error| Error::new(ErrorKind::InvalidOperation, format!("from_json: not JSON: {error}")))
}

/// What is written, and who pays for it.
struct Writer<'a, 'b, 'c> {
    text: String,
    /// Where fuel is taken from, if from anywhere.
    state: Option<&'a State<'b, 'c>>,
    /// The length of the text that fuel was taken for.
    paid: usize,
}

impl Writer<'_, '_, '_> {
    fn pay(&mut self) -> Result<(), Error> {
        let fuel = (self.text.len() - self.paid) / 64 + 1;
        self.paid = self.text.len();
        self.state.map_or(Ok(()), |state| state.consume_fuel(fuel as u64))
    }

    fn push(&mut self, c: char) {
        self.text.push(c);
    }

    fn push_str(&mut self, text: &str) {
        self.text.push_str(text);
    }
}

impl Style {
    fn value(&self, value: &Value, depth: usize, out: &mut Writer<'_, '_, '_>) -> Result<(), Error> {
        out.pay()?;
        if depth > MAX_DEPTH {
            return Err(refuse(format!("a value is nested deeper than {MAX_DEPTH} levels")));
        }
        match value.kind() {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => out.push_str(&number(value)),
            ValueKind::String => self.string(value.as_str().unwrap_or_default(), &mut out.text),
            ValueKind::Seq | ValueKind::Iterable => {
                let items = value.try_iter()?.collect::<Vec<_>>();
                self.all(['[', ']'], &items, depth, out, |item, out| self.value(item, depth + 1, out))?;
            }
            ValueKind::Map => {
                let mut items = Vec::new();
                for key in value.try_iter()? {
                    items.push((key.clone(), value.get_item(&key)?));
                }
                if self.sorted {
                    items.sort_by(|a, b| a.0.cmp(&b.0));
                }
                self.all(['{', '}'], &items, depth, out, |(key, value), out| {
                    match key.kind() {
                        ValueKind::String => self.string(key.as_str().unwrap_or_default(), &mut out.text),
                        ValueKind::None | ValueKind::Bool | ValueKind::Number => {
                            out.push('"');
                            self.value(key, depth + 1, out)?;
                            out.push('"');
                        }
                        other => return Err(refuse(format!("{other} cannot be a key"))),
                    }
                    out.push_str(&self.colon);
                    self.value(value, depth + 1, out)
                })?;
            }
            other => return Err(refuse(format!("a value of type {other} has no JSON form"))),
        }
        Ok(())
    }

    fn all<T>(
        &self,
        [open, close]: [char; 2],
        items: &[T],
        depth: usize,
        out: &mut Writer<'_, '_, '_>,
        mut write: impl FnMut(&T, &mut Writer<'_, '_, '_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        out.push(open);
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                out.push_str(&self.between);
            }
            self.line(depth + 1, out);
            write(item, out)?;
        }
        if !items.is_empty() {
            self.line(depth, out);
        }
        out.push(close);
        Ok(())
    }

    fn line(&self, depth: usize, out: &mut Writer<'_, '_, '_>) {
        if let Some(indent) = &self.indent {
            out.push('\n');
            for _ in 0..depth {
                out.push_str(indent);
            }
        }
    }

    fn string(&self, text: &str, out: &mut String) {
        let mark = self.mark.filter(|mark| text.contains(*mark));
        out.push('"');
        for c in text.chars() {
            let before = out.len();
            match c {
                _ if Some(c) == mark => {
                    out.push(c);
                    continue;
                }
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                '\0'..='\u{1f}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
                _ if self.ascii && !c.is_ascii() => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                _ => out.push(c),
            }
            // An escape has several characters, of which the source marked at
            // most the last.
            if let Some(mark) = mark
                && out.len() - before > c.len_utf8()
            {
                let written = out.split_off(before);
                for part in written.chars() {
                    out.extend([part, mark]);
                }
            }
        }
        out.push('"');
    }
}

/// A number as `repr` of Python prints it.
pub(crate) fn number(value: &Value) -> String {
    match f64::try_from(value.clone()) {
        Ok(float) if !value.is_integer() => python_float(float),
        _ => value.to_string(),
    }
}

/// Python's `repr` of a float: the shortest digits that read back as the same,
/// with an exponent below 1e-4 and from 1e16.
fn python_float(float: f64) -> String {
    if float.is_nan() {
        return "NaN".to_owned();
    }
    if float.is_infinite() {
        return if float > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let scientific = format!("{float:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>().unwrap_or(0) {
        exponent @ -4..16 => {
            let plain = format!("{float}");
            if exponent >= 0 && !plain.contains('.') { format!("{plain}.0") } else { plain }
        }
        exponent => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.abs())
        }
    }
}

fn refuse(reason: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("tojson: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_in_python() {
        for (float, text) in [
            (1.0, "1.0"),
            (-0.5, "-0.5"),
            (0.1, "0.1"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (1e-7, "1e-07"),
            (123_456.789, "123456.789"),
            (0.0, "0.0"),
        ] {
            assert_eq!(python_float(float), text);
        }
    }
}
