//! The arguments of a call while they come.
//!
//! Clients parse what they have of a call's arguments as it comes (the official one
//! does, in `lib/streaming/_messages.py`), and fail as a whole when it is no
//! beginning of a JSON text. So nothing is sent that would make it none.

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

#[cfg(test)]
mod tests {
    use super::*;

    /// What of a text may be sent, in pieces of a size, and the object it makes.
    fn taken(text: &str, size: usize) -> (String, String) {
        let mut arguments = Arguments::new();
        let mut sent = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            let cut = (size..=rest.len()).find(|at| rest.is_char_boundary(*at)).unwrap_or(rest.len());
            let (piece, after) = rest.split_at(cut);
            sent.push_str(arguments.push(piece));
            rest = after;
        }
        assert_eq!(arguments.written(), text);
        (sent, arguments.object())
    }

    const GOOD: [&str; 6] = [
        "{}",
        " { } ",
        r#"{"a":1,"b":[-0.5e+3,0,10,[],{}],"c":{"d":null,"e":true,"f":false}}"#,
        r#"{ "ü\n\"\\\/" : "世🌍\u00e4\ud83c\udf0d\uFFFF" , "x" : [ 1 , 2 ] }"#,
        "{\"a\":\n12345678901234567890123\n}",
        r#"{"a":1E5,"a":0e-1}"#,
    ];

    #[test]
    fn an_object_passes_as_it_is_however_it_is_cut() {
        for text in GOOD {
            for size in [1, 2, 3, 1000] {
                assert_eq!(taken(text, size), (text.to_owned(), text.to_owned()), "by {size}");
            }
        }
    }

    #[test]
    fn what_makes_it_no_json_stays_behind() {
        for (text, good) in [
            ("[1]", ""),
            ("oops", ""),
            ("{}x", "{}"),
            ("{\"a\":1}}", "{\"a\":1}"),
            ("{a:1}", "{"),
            ("{'a':1}", "{"),
            ("{\"a\" 1}", "{\"a\" "),
            ("{\"a\":1,}", "{\"a\":1,"),
            ("{\"a\":01}", "{\"a\":0"),
            ("{\"a\":1.}", "{\"a\":1."),
            ("{\"a\":-}", "{\"a\":-"),
            ("{\"a\":1e+}", "{\"a\":1e+"),
            ("{\"a\":.5}", "{\"a\":"),
            ("{\"a\":trve}", "{\"a\":tr"),
            ("{\"a\":\"b\nc\"}", "{\"a\":\"b"),
            ("{\"a\":\"\\x\"}", "{\"a\":\"\\"),
            ("{\"a\":\"\\u00g0\"}", "{\"a\":\"\\u00"),
            ("{\"a\":\"\\udc00\"}", "{\"a\":\"\\udc0"),
            ("{\"a\":\"\\ud800x\"}", "{\"a\":\"\\ud800"),
            ("{\"a\":\"\\ud800\\u0041\"}", "{\"a\":\"\\ud800\\u004"),
            ("{\"a\":[1}", "{\"a\":[1"),
            ("{\"a\":{\"b\":1]", "{\"a\":{\"b\":1"),
            ("{\"a\":1 ö}", "{\"a\":1 "),
        ] {
            for size in [1, 1000] {
                let (sent, object) = taken(text, size);
                assert_eq!(sent, good, "{text:?} by {size}");
                assert!(serde_json::from_str::<Map<String, Value>>(&object).is_ok(), "{text:?}: {object:?}");
            }
        }
    }

    #[test]
    fn the_checker_and_the_parser_agree_about_every_beginning() {
        // A beginning passes whole, and is an object only at the very end.
        for text in GOOD {
            for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
                let (sent, object) = taken(&text[..cut], 1);
                assert_eq!(sent, text[..cut]);
                assert!(serde_json::from_str::<Map<String, Value>>(&object).is_ok(), "{object:?}");
            }
        }
    }

    #[test]
    fn it_is_whole_exactly_where_a_parser_reads_an_object() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut below = |most: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % most as u64).unwrap()
        };
        let mut wholes = 0;
        for _ in 0..200_000 {
            let mut text: Vec<char> = GOOD[below(GOOD.len())].chars().collect();
            let letters: Vec<char> = "{}[]\":,\\ud8c9-+.0e tfn\n".chars().collect();
            let at = below(text.len());
            match below(3) {
                0 => text[at] = letters[below(letters.len())],
                1 => text.insert(at, letters[below(letters.len())]),
                _ => drop(text.remove(at)),
            }
            let text: String = text.into_iter().collect();
            let mut arguments = Arguments::new();
            let sent = arguments.push(&text);
            let whole = sent == text && arguments.next == Next::Nothing;
            let parsed = serde_json::from_str::<Map<String, Value>>(&text);
            // What a parser has no room for is JSON nevertheless.
            let large = parsed.as_ref().is_err_and(|error| error.to_string().contains("out of range"));
            assert!(large || whole == parsed.is_ok(), "{text:?}: {whole}, {parsed:?}");
            wholes += u32::from(whole);
        }
        assert!((20_000..180_000).contains(&wholes), "both cases are there: {wholes}");
    }

    #[test]
    fn of_arguments_that_break_off_the_whole_members_are_left() {
        for (text, object) in [
            ("", "{}"),
            ("{", "{}"),
            ("{\"a\"", "{}"),
            ("{\"a\":\"b", "{}"),
            ("{\"a\":\"b\"", "{\"a\":\"b\"}"),
            ("{\"a\":\"b\",\"c\":[1,2", "{\"a\":\"b\"}"),
            ("{\"a\":12", "{}"),
            ("{\"a\":12 ", "{\"a\":12}"),
            ("{\"a\":12,\"b", "{\"a\":12}"),
            ("{\"b\":true,\"a\":nul", "{\"b\":true}"),
            ("{\"z\":1,\"a\":2,oops", "{\"z\":1,\"a\":2}"),
        ] {
            assert_eq!(taken(text, 1).1, object, "{text:?}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let deep = format!("{{\"a\":{}", "[".repeat(10_000));
        let (sent, object) = taken(&deep, 1000);
        assert_eq!((sent.len(), object.as_str()), (5 + MAX_DEPTH - 1, "{}"));
    }
}
