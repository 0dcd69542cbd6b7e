//! The words and signs of an expression.

use std::fmt;

use crate::number::Number;
use crate::problem::Problem;

/// A word or sign.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Number(Number),
    /// Of a function, a constant or a unit.
    Name(String),
    Plus,
    Minus,
    Times,
    Divide,
    Percent,
    Power,
    /// `²` or `³`.
    Raised(u8),
    Factorial,
    Comma,
    Open,
    Close,
    /// `mod`.
    Modulo,
    /// `of`.
    Of,
    /// `to`, `as`, `into` or an arrow.
    To,
    /// A conversion or an inch.
    In,
    End,
}

/// A word or sign in its place.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// Characters before it.
    pub(crate) at: usize,
    /// Whether nothing stands between it and what is before it.
    pub(crate) glued: bool,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number(_) => "a number",
            Self::Name(name) => return write!(f, "`{name}`"),
            Self::Plus => "`+`",
            Self::Minus => "`-`",
            Self::Times => "`*`",
            Self::Divide => "`/`",
            Self::Percent => "`%`",
            Self::Power => "`^`",
            Self::Raised(2) => "`²`",
            Self::Raised(_) => "`³`",
            Self::Factorial => "`!`",
            Self::Comma => "`,`",
            Self::Open => "`(`",
            Self::Close => "`)`",
            Self::Modulo => "`mod`",
            Self::Of => "`of`",
            Self::To => "`to`",
            Self::In => "`in`",
            Self::End => "the end",
        })
    }
}

/// Splits an expression, which is ended by [`Kind::End`].
pub(crate) fn split(text: &str) -> Result<Vec<Token>, Problem> {
    let signs: Vec<char> = text.chars().collect();
    let mut rest = signs.as_slice();
    let mut tokens = Vec::new();
    let mut glued = false;
    while let Some(first) = rest.first() {
        let at = signs.len() - rest.len();
        if first.is_whitespace() {
            rest = rest.get(1..).unwrap_or_default();
            glued = false;
            continue;
        }
        let (kind, length) = one(rest).map_err(|what| Problem::at(at, what))?;
        tokens.push(Token { kind, at, glued });
        rest = rest.get(length..).unwrap_or_default();
        glued = true;
    }
    tokens.push(Token { kind: Kind::End, at: signs.len(), glued: false });
    Ok(tokens)
}

/// The first token and how many characters it has.
fn one(rest: &[char]) -> Result<(Kind, usize), String> {
    let next = rest.get(1).copied().unwrap_or_default();
    let first = rest.first().copied().unwrap_or_default();
    let kind = match first {
        '0'..='9' => return number(rest),
        '.' if next.is_ascii_digit() => return number(rest),
        '*' if next == '*' => return Ok((Kind::Power, 2)),
        '-' if next == '>' => return Ok((Kind::To, 2)),
        '+' => Kind::Plus,
        '-' | '−' | '–' => Kind::Minus,
        '*' | '×' | '·' | '⋅' => Kind::Times,
        '/' | '÷' => Kind::Divide,
        '%' => Kind::Percent,
        '^' => Kind::Power,
        '²' => Kind::Raised(2),
        '³' => Kind::Raised(3),
        '!' => Kind::Factorial,
        ',' | ';' => Kind::Comma,
        '(' => Kind::Open,
        ')' => Kind::Close,
        '→' => Kind::To,
        _ if begins_name(first) => {
            let name: String = rest.iter().take_while(|sign| goes_on_name(**sign)).collect();
            let length = name.chars().count();
            return Ok((word(name), length));
        }
        '=' => return Err("leave `=` out: only what is to be calculated is written".to_owned()),
        '$' | '€' | '£' | '¥' => return Err(format!("leave `{first}` out: money is calculated as plain numbers")),
        '[' | '{' => return Err(format!("write `(` instead of `{first}`")),
        ']' | '}' => return Err(format!("write `)` instead of `{first}`")),
        _ => {
            return Err(format!(
                "`{}` means nothing here; there are numbers, names, units, + - * / % ^ ! and parentheses",
                first.escape_debug()
            ));
        }
    };
    Ok((kind, 1))
}

fn begins_name(sign: char) -> bool {
    sign.is_alphabetic() || sign == '°'
}

fn goes_on_name(sign: char) -> bool {
    begins_name(sign) || sign.is_ascii_digit() || sign == '_'
}

fn word(name: String) -> Kind {
    match name.as_str() {
        "of" => Kind::Of,
        "mod" => Kind::Modulo,
        "per" => Kind::Divide,
        "in" => Kind::In,
        "to" | "as" | "into" => Kind::To,
        _ => Kind::Name(name),
    }
}

/// A number such as 1_234.5e-6. An `e` without digits after it is no part of it, so that
/// `5 eV` may be written without a space.
fn number(rest: &[char]) -> Result<(Kind, usize), String> {
    let mut digits = String::new();
    let mut exponent = String::new();
    let mut decimals = None;
    let mut length = 0;
    let mut signs = rest.iter().copied().peekable();
    while let Some(sign) = signs.next() {
        let next = signs.peek().copied().unwrap_or_default();
        match sign {
            '0'..='9' => {
                digits.push(sign);
                decimals = decimals.map(|count: usize| count + 1);
            }
            '_' if next.is_ascii_digit() => {}
            '.' if decimals.is_none() => decimals = Some(0),
            '.' => return Err("a number has one decimal point; thousands are written with `_`, as 1_234".to_owned()),
            'e' | 'E' => {
                let signed = matches!(next, '+' | '-' | '−');
                let from = length + 1 + usize::from(signed);
                exponent.extend(rest.iter().skip(from).take_while(|sign| sign.is_ascii_digit()));
                if !exponent.is_empty() {
                    length = from + exponent.len();
                    if signed && next != '+' {
                        exponent.insert(0, '-');
                    }
                }
                break;
            }
            _ => break,
        }
        length += 1;
    }
    let number = Number::read(&digits, decimals.unwrap_or_default(), &exponent)?;
    Ok((Kind::Number(number), length))
}
