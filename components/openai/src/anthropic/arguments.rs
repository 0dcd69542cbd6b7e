//! The arguments of a call while they come.
//!
//! Clients parse what they have of a call's arguments as it comes (the official one
//! does, in `lib/streaming/_messages.py`), and fail as a whole when it is no
//! beginning of a JSON text. So nothing is sent that would make it none.

#[cfg(test)]
mod tests;

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

/// Deeper values are not followed. `serde_json` and the official client's parser
/// end a little further on.
const MAX_DEPTH: usize = 100;

/// Arguments, as far as they are there.
#[derive(Debug)]
pub(super) struct Arguments {
    /// As the model wrote them.
    written: String,
    /// How much of that is a beginning of a JSON object.
    good: usize,
    next: Next,
    /// What is open: `{` or `[`.
    open: Vec<u8>,
}

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The object that the arguments are.
    Object,
    /// A name, or the end of an object that is empty.
    NameOrEnd,
    Name,
    Colon,
    Value,
    /// A value, or the end of a list that is empty.
    ValueOrEnd,
    /// A comma, or the end of what is open.
    CommaOrEnd,
    /// More of a text.
    Text(Text),
    /// What is behind a backslash.
    Escape(Text),
    /// Digits of a `\u` and what they have made, after the first half of a pair or
    /// not.
    Hex {
        text: Text,
        left: u8,
        made: u32,
        half: Half,
    },
    /// A backslash and a `u`: a first half needs a second one.
    Backslash(Text),
    LetterU(Text),
    /// The rest of `true`, `false` or `null`.
    Word(&'static [u8]),
    Number(Number),
    /// Nothing but blanks.
    Nothing,
    /// It is no JSON.
    Broken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Name,
    Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    First,
    Second,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Sign,
    Zero,
    Digits,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

impl Arguments {
    pub(super) fn new() -> Self {
        Self { written: String::new(), good: 0, next: Next::Object, open: Vec::new() }
    }

    /// Takes more, and returns what of it may be sent.
    pub(super) fn push<'a>(&mut self, piece: &'a str) -> &'a str {
        self.written.push_str(piece);
        for (at, byte) in piece.bytes().enumerate() {
            self.next = self.after(byte);
            if self.next == Next::Broken {
                // Characters of several bytes are fine in texts, and nothing else
                // begins with one.
                let good = piece.get(..at).unwrap_or_default();
                self.good += good.len();
                return good;
            }
        }
        self.good += piece.len();
        piece
    }

    /// All that the model wrote.
    pub(super) fn written(&self) -> &str {
        &self.written
    }

    /// A JSON object: the arguments themselves if they are one, else the members that
    /// are whole.
    pub(super) fn object(&self) -> String {
        let good = self.written.get(..self.good).unwrap_or_default();
        match self.next {
            Next::Nothing => good.to_owned(),
            _ => Value::Object(members(good)).to_string(),
        }
    }

    fn after(&mut self, byte: u8) -> Next {
        use Next::{
            Broken, Colon, CommaOrEnd, Escape, Hex, Name, NameOrEnd, Nothing, Object, Text as In, Value as Any,
            ValueOrEnd,
        };
        let blank = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        match self.next {
            Next::Number(number) => match after_digit(number, byte) {
                Some(number) => Next::Number(number),
                None if number.is_whole() => {
                    self.next = CommaOrEnd;
                    self.after(byte)
                }
                None => Broken,
            },
            In(text) => match byte {
                b'"' if text == Text::Name => Colon,
                b'"' => CommaOrEnd,
                b'\\' => Escape(text),
                0..0x20 => Broken,
                _ => In(text),
            },
            Escape(text) => match byte {
                b'u' => Hex { text, left: 4, made: 0, half: Half::First },
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => In(text),
                _ => Broken,
            },
            Hex { text, left, made, half } => match char::from(byte).to_digit(16) {
                Some(digit) => after_hex(text, left - 1, made * 16 + digit, half),
                None => Broken,
            },
            Next::Backslash(text) if byte == b'\\' => Next::LetterU(text),
            Next::LetterU(text) if byte == b'u' => Hex { text, left: 4, made: 0, half: Half::Second },
            Next::Word(rest) => match rest.split_first() {
                Some((wanted, [])) if *wanted == byte => CommaOrEnd,
                Some((wanted, rest)) if *wanted == byte => Next::Word(rest),
                _ => Broken,
            },
            next @ (Object | NameOrEnd | Name | Colon | Any | ValueOrEnd | CommaOrEnd | Nothing) if blank => next,
            Object if byte == b'{' => self.begin(byte),
            NameOrEnd if byte == b'}' => self.end(byte),
            NameOrEnd | Name if byte == b'"' => In(Text::Name),
            Colon if byte == b':' => Any,
            ValueOrEnd if byte == b']' => self.end(byte),
            Any | ValueOrEnd => match byte {
                b'{' | b'[' => self.begin(byte),
                b'"' => In(Text::Value),
                b't' => Next::Word(b"rue"),
                b'f' => Next::Word(b"alse"),
                b'n' => Next::Word(b"ull"),
                b'-' => Next::Number(Number::Sign),
                b'0' => Next::Number(Number::Zero),
                b'1'..=b'9' => Next::Number(Number::Digits),
                _ => Broken,
            },
            CommaOrEnd => match (byte, self.open.last()) {
                (b',', Some(b'{')) => Name,
                (b',', Some(_)) => Any,
                _ => self.end(byte),
            },
            Object | NameOrEnd | Name | Colon | Nothing | Next::Backslash(_) | Next::LetterU(_) | Broken => Broken,
        }
    }

    fn begin(&mut self, byte: u8) -> Next {
        if self.open.len() == MAX_DEPTH {
            return Next::Broken;
        }
        self.open.push(byte);
        if byte == b'{' { Next::NameOrEnd } else { Next::ValueOrEnd }
    }

    fn end(&mut self, byte: u8) -> Next {
        match (self.open.pop(), byte) {
            (Some(b'{'), b'}') | (Some(b'['), b']') if self.open.is_empty() => Next::Nothing,
            (Some(b'{'), b'}') | (Some(b'['), b']') => Next::CommaOrEnd,
            _ => Next::Broken,
        }
    }
}

impl Number {
    fn is_whole(self) -> bool {
        matches!(self, Self::Zero | Self::Digits | Self::Fraction | Self::ExponentDigits)
    }
}

fn after_digit(number: Number, byte: u8) -> Option<Number> {
    use Number::{Digits, Exponent, ExponentDigits, ExponentSign, Fraction, Point, Sign, Zero};
    match (number, byte) {
        (Sign, b'0') => Some(Zero),
        (Sign, b'1'..=b'9') | (Digits, b'0'..=b'9') => Some(Digits),
        (Zero | Digits, b'.') => Some(Point),
        (Point | Fraction, b'0'..=b'9') => Some(Fraction),
        (Zero | Digits | Fraction, b'e' | b'E') => Some(Exponent),
        (Exponent, b'+' | b'-') => Some(ExponentSign),
        (Exponent | ExponentSign | ExponentDigits, b'0'..=b'9') => Some(ExponentDigits),
        _ => None,
    }
}

/// Halves of a pair stand for a character together, and for none alone.
fn after_hex(text: Text, left: u8, made: u32, half: Half) -> Next {
    match (left, made, half) {
        (0, 0xd800..0xdc00, Half::First) => Next::Backslash(text),
        (0, 0xdc00..0xe000, Half::First) => Next::Broken,
        (0, 0xdc00..0xe000, Half::Second) | (0, _, Half::First) => Next::Text(text),
        (0, _, Half::Second) => Next::Broken,
        _ => Next::Hex { text, left, made, half },
    }
}

/// The members of an object that breaks off, as far as they are whole.
fn members(text: &str) -> Map<String, Value> {
    let mut map = Map::new();
    // How it breaks off is of no interest.
    let _ = serde_json::Deserializer::from_str(text).deserialize_map(Members(&mut map));
    // More digits could have come.
    let number = |byte: u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
    if text.bytes().next_back().is_some_and(number)
        && let Some((name, Value::Number(_))) = map.iter().next_back()
    {
        let name = name.clone();
        map.remove(&name);
    }
    map
}

struct Members<'a>(&'a mut Map<String, Value>);

impl<'de> Visitor<'de> for Members<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((name, value)) = map.next_entry()? {
            self.0.insert(name, value);
        }
        Ok(())
    }
}
