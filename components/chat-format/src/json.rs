//! JSON, character by character.

/// Follows one JSON value and knows where it ends.
#[derive(Debug)]
pub(crate) struct Json {
    /// What is open around the place.
    open: Vec<Open>,
    want: Want,
    /// The first half of a surrogate pair was read, and the second has to follow.
    half: bool,
}

/// How deep values may be nested. As serde_json.
const NESTING: usize = 127;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Object,
    Array,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Want {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    Text(Text),
    Escape(Text),
    /// So many digits of a code point, and its value so far.
    Digits(Text, u8, u32),
    /// After the first half of a surrogate pair.
    Half(Text),
    HalfEscape(Text),
    Number(Number),
    /// What has to follow of `true`, `false` or `null`.
    Word(&'static str),
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Key,
    Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    E,
    ESign,
    Exponent,
}

/// What a character was to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Took {
    /// A part of it.
    Part,
    /// Its last part.
    Last,
    /// Nothing: it had ended before.
    Nothing,
}

impl Json {
    /// Before a value.
    pub(crate) fn new() -> Self {
        Self { open: Vec::new(), want: Want::Value, half: false }
    }

    /// Whether the place is within a string.
    pub(crate) fn in_string(&self) -> bool {
        matches!(self.want, Want::Text(_))
    }

    /// Takes in the next character.
    ///
    /// # Errors
    /// What should be there instead.
    pub(crate) fn feed(&mut self, c: char) -> Result<Took, &'static str> {
        match self.want {
            Want::Value => self.value(c),
            Want::ValueOrEnd if c == ']' => Ok(self.close()),
            Want::ValueOrEnd => self.value(c),
            Want::Key | Want::KeyOrEnd => match c {
                '"' => self.go(Want::Text(Text::Key)),
                '}' if self.want == Want::KeyOrEnd => Ok(self.close()),
                c if blank(c) => Ok(Took::Part),
                _ if self.want == Want::Key => Err("a key in double quotes"),
                _ => Err("a key in double quotes, or `}`"),
            },
            Want::Colon => match c {
                ':' => self.go(Want::Value),
                c if blank(c) => Ok(Took::Part),
                _ => Err("`:` after a key"),
            },
            Want::CommaOrEnd => self.after(c),
            Want::Text(text) => match c {
                '"' => Ok(self.string_ends(text)),
                '\\' => self.go(Want::Escape(text)),
                c if c < ' ' => Err("an escape such as `\\n`: a string has no raw control characters"),
                _ => Ok(Took::Part),
            },
            Want::Escape(text) => match c {
                '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' => self.go(Want::Text(text)),
                'u' => self.go(Want::Digits(text, 0, 0)),
                _ => Err("one of `\"\\/bfnrtu` after a backslash"),
            },
            Want::Digits(text, count, value) => {
                let digit = c.to_digit(16).ok_or("a hexadecimal digit")?;
                let (count, value) = (count + 1, value * 16 + digit);
                if count < 4 {
                    return self.go(Want::Digits(text, count, value));
                }
                let second = std::mem::take(&mut self.half);
                match value {
                    0xDC00..0xE000 if second => self.go(Want::Text(text)),
                    _ if second => Err("the second half of a surrogate pair"),
                    0xD800..0xDC00 => {
                        self.half = true;
                        self.go(Want::Half(text))
                    }
                    0xDC00..0xE000 => Err("the first half of a surrogate pair before the second"),
                    _ => self.go(Want::Text(text)),
                }
            }
            Want::Half(text) if c == '\\' => self.go(Want::HalfEscape(text)),
            Want::HalfEscape(text) if c == 'u' => self.go(Want::Digits(text, 0, 0)),
            Want::Half(_) | Want::HalfEscape(_) => Err("the second half of a surrogate pair"),
            Want::Number(number) => self.number(number, c),
            Want::Word(word) => {
                let rest = word.strip_prefix(c).ok_or("`true`, `false` or `null`")?;
                if rest.is_empty() { Ok(self.ends()) } else { self.go(Want::Word(rest)) }
            }
            Want::Nothing => Ok(Took::Nothing),
        }
    }

    fn go(&mut self, want: Want) -> Result<Took, &'static str> {
        self.want = want;
        Ok(Took::Part)
    }

    fn value(&mut self, c: char) -> Result<Took, &'static str> {
        match c {
            '{' | '[' if self.open.len() >= NESTING => Err("a value that is nested less deep"),
            '{' => {
                self.open.push(Open::Object);
                self.go(Want::KeyOrEnd)
            }
            '[' => {
                self.open.push(Open::Array);
                self.go(Want::ValueOrEnd)
            }
            '"' => self.go(Want::Text(Text::Value)),
            '-' => self.go(Want::Number(Number::Minus)),
            '0' => self.go(Want::Number(Number::Zero)),
            '1'..='9' => self.go(Want::Number(Number::Whole)),
            't' => self.go(Want::Word("rue")),
            'f' => self.go(Want::Word("alse")),
            'n' => self.go(Want::Word("ull")),
            c if blank(c) => Ok(Took::Part),
            _ => Err("a JSON value"),
        }
    }

    /// After a value in an object or array.
    fn after(&mut self, c: char) -> Result<Took, &'static str> {
        match (self.open.last(), c) {
            (_, c) if blank(c) => Ok(Took::Part),
            (Some(Open::Object), ',') => self.go(Want::Key),
            (Some(Open::Array), ',') => self.go(Want::Value),
            (Some(Open::Object), '}') | (Some(Open::Array), ']') => Ok(self.close()),
            (Some(Open::Object), _) => Err("`,` or `}` after a value"),
            (Some(Open::Array), _) => Err("`,` or `]` after a value"),
            (None, _) => Ok(Took::Nothing),
        }
    }

    fn number(&mut self, number: Number, c: char) -> Result<Took, &'static str> {
        use Number::{E, ESign, Exponent, Fraction, Minus, Point, Whole, Zero};
        let next = match (number, c) {
            (Minus, '0') => Zero,
            (Minus, '1'..='9') | (Whole, '0'..='9') => Whole,
            (Zero | Whole, '.') => Point,
            (Point | Fraction, '0'..='9') => Fraction,
            (Zero | Whole | Fraction, 'e' | 'E') => E,
            (E, '+' | '-') => ESign,
            (E | ESign | Exponent, '0'..='9') => Exponent,
            (Minus | Point | E | ESign, _) => return Err("a digit"),
            (Zero | Whole | Fraction | Exponent, _) => {
                // A number ends with what comes after it.
                return match self.ends() {
                    Took::Last => Ok(Took::Nothing),
                    _ => self.after(c),
                };
            }
        };
        self.go(Want::Number(next))
    }

    fn string_ends(&mut self, text: Text) -> Took {
        match text {
            Text::Key => {
                self.want = Want::Colon;
                Took::Part
            }
            Text::Value => self.ends(),
        }
    }

    fn close(&mut self) -> Took {
        self.open.pop();
        self.ends()
    }

    /// A value has ended.
    fn ends(&mut self) -> Took {
        if self.open.is_empty() {
            self.want = Want::Nothing;
            Took::Last
        } else {
            self.want = Want::CommaOrEnd;
            Took::Part
        }
    }
}

/// White space in JSON.
pub(crate) fn blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

/// Appends a character as it stands in a JSON string.
pub(crate) fn escape(c: char, into: &mut String) {
    match c {
        '"' => into.push_str("\\\""),
        '\\' => into.push_str("\\\\"),
        '\n' => into.push_str("\\n"),
        '\r' => into.push_str("\\r"),
        '\t' => into.push_str("\\t"),
        c if c < ' ' => into.push_str(&format!("\\u{:04x}", u32::from(c))),
        c => into.push(c),
    }
}

/// A text as a JSON string, with its quotes.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    text.chars().for_each(|c| escape(c, &mut quoted));
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a value ends, as this sees it.
    fn end(text: &str) -> Result<Option<usize>, &'static str> {
        let mut json = Json::new();
        for (at, c) in text.char_indices() {
            match json.feed(c)? {
                Took::Part => {}
                Took::Last => return Ok(Some(at + c.len_utf8())),
                Took::Nothing => return Ok(Some(at)),
            }
        }
        Ok(None)
    }

    #[test]
    fn a_value_ends_where_it_ends() {
        for value in [
            r#"{}"#,
            r#"[]"#,
            r#""a\"b""#,
            "-0.5e+10",
            "true",
            "null",
            r#"{"a":[1,2,{"b":null}],"c":"\ud83d\ude00\u0041"}"#,
            " [ 1 , -2.5 , { } , [ ] ] ",
        ] {
            let value = value.trim_end();
            assert_eq!(end(&format!("{value} x")), Ok(Some(value.len())), "{value}");
        }
        assert_eq!(end("{\"a\":"), Ok(None));
    }

    #[test]
    fn it_takes_and_refuses_what_serde_does() {
        let alphabet =
            ["{", "}", "[", "]", ",", ":", "\"", "a", "1", "0", ".", "-", "e", "\\", "u", "d83d", "true", " "];
        let mut seed = 1u64;
        let mut valid = 0;
        for _ in 0..300_000 {
            let mut text = String::new();
            for _ in 0..1 + seed % 7 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.push_str(alphabet[(seed >> 33) as usize % alphabet.len()]);
            }
            let ours = match end(&format!("{text}\n")) {
                // A number may be followed by anything; serde looks at the rest.
                Ok(Some(end)) => text.get(end..).unwrap_or_default().trim().is_empty(),
                Ok(None) | Err(_) => false,
            };
            let theirs = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            assert_eq!(ours, theirs, "{text:?}");
            valid += usize::from(theirs);
        }
        assert!(valid > 1000, "{valid}");
    }

    #[test]
    fn quoting_is_undone_by_reading() {
        let text = "a\"b\\c\nd\u{1}e\u{7f}ü";
        assert_eq!(serde_json::from_str::<String>(&quote(text)).unwrap(), text);
    }
}
