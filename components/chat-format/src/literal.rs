//! Calls with values in notations close to JSON: Python's, and Gemma 4's.

use std::future::Future;
use std::pin::Pin;

use serde_json::Value;

use crate::call::{self, Doubt, First};
use crate::json::escape;
use crate::notation::Keys;
use crate::stream::{Failure, Stream};
use crate::tool::Tool;
use crate::types::argument_names;

/// Whose literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    /// Strings in single or double quotes; `True`, `None`; lists, tuples, dicts.
    Python,
    /// Strings in `<|"|>`, or in double quotes; keys without quotes.
    Gemma,
}

/// What Gemma 4 quotes strings with.
pub(crate) const GEMMA_QUOTE: &str = "<|\"|>";

/// How deep values may be nested.
const NESTING: usize = 64;

/// Reads calls in brackets, as Python writes them, with the brackets.
pub(crate) async fn python_calls(stream: &Stream, tools: &[Tool], doubt: Doubt) -> Result<(), Failure> {
    stream.first_column();
    stream.blanks().await?;
    if stream.eat(&["["]).await.is_none() {
        // Some leave the brackets out, and forced calls are JSON.
        return match stream.must_peek().await? {
            '{' => call::calls(stream, Keys::Fixed, doubt).await,
            _ => python_call(stream, tools).await,
        };
    }
    stream.blanks().await?;
    if stream.must_peek().await? == '{' {
        return call::calls(stream, Keys::Fixed, doubt).await;
    }
    loop {
        python_call(stream, tools).await?;
        stream.blanks().await?;
        match stream.must_peek().await? {
            ',' => stream.pass().await?,
            ']' => break stream.pass().await?,
            _ => return Err(stream.expected("`,` or `]` after a call")),
        }
        stream.blanks().await?;
        if stream.must_peek().await? == ']' {
            break stream.pass().await?;
        }
    }
    Ok(())
}

/// Reads `name(key=value, ..)`.
async fn python_call(stream: &Stream, tools: &[Tool]) -> Result<(), Failure> {
    let name = identifier(stream).await?;
    if name.is_empty() || stream.must_peek().await? != '(' {
        return Err(Failure::NotACall);
    }
    stream.take().await?;
    stream.blanks().await?;
    // Up to here it may be a link or the like.
    let mut key = match stream.must_peek().await? {
        ')' => None,
        _ => Some(keyword(stream).await?),
    };
    let known = argument_names(tools, &name);
    if matches!(key, Some(None)) && known.is_empty() {
        return Err(Failure::NotACall);
    }
    stream.start_call(&name, None);
    let mut first = First::Yes;
    let mut names = known.into_iter();
    while let Some(this) = key {
        let this = match this.as_deref().or_else(|| names.next()) {
            Some(this) => this.to_owned(),
            None => return Err(stream.expected("`name=` before the value")),
        };
        stream.arguments(if first == First::Yes { "{" } else { "" });
        stream.arguments(&call::key(&this, first));
        first = First::No;
        literal(stream, Dialect::Python, NESTING).await?;
        stream.blanks().await?;
        match stream.must_peek().await? {
            ',' => stream.pass().await?,
            ')' => break,
            _ => return Err(stream.expected("`,` or `)` after a value")),
        }
        stream.blanks().await?;
        key = match stream.must_peek().await? {
            ')' => None,
            _ => Some(keyword(stream).await?),
        };
    }
    stream.take().await?;
    stream.arguments(if first == First::Yes { "{}" } else { "}" });
    stream.end_call();
    Ok(())
}

/// Reads `name=`, if that is what comes next. What comes else is not taken, as
/// long as it cannot be a name: a quote, a digit, a bracket.
async fn keyword(stream: &Stream) -> Result<Option<String>, Failure> {
    let next = stream.must_peek().await?;
    if !(next.is_alphabetic() || next == '_') {
        return Ok(None);
    }
    let name = identifier(stream).await?;
    stream.blanks().await?;
    if stream.must_peek().await? != '=' {
        return Err(match stream.in_call() {
            true => stream.expected("`=` after an argument's name"),
            false => Failure::NotACall,
        });
    }
    stream.take().await?;
    stream.blanks().await?;
    Ok(Some(name))
}

async fn identifier(stream: &Stream) -> Result<String, Failure> {
    let mut name = String::new();
    loop {
        let next = stream.must_peek().await?;
        if !(next.is_alphanumeric() || matches!(next, '_' | '.' | '-')) || name.len() > 256 {
            return Ok(name);
        }
        name.push(stream.take().await?);
    }
}

/// Reads `call:NAME{key:value,..}`.
pub(crate) async fn gemma_call(stream: &Stream) -> Result<(), Failure> {
    stream.first_column();
    stream.blanks().await?;
    if stream.eat(&["call:"]).await.is_none() {
        stream.must_peek().await?;
        return Err(Failure::NotACall);
    }
    let (name, _) = stream.name(&["{"]).await?;
    stream.start_call(&name, None);
    literal(stream, Dialect::Gemma, NESTING).await?;
    stream.end_call();
    Ok(())
}

type Reading<'a> = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + 'a>>;

/// Reads a value and gives it out as JSON.
fn literal(stream: &Stream, dialect: Dialect, nesting: usize) -> Reading<'_> {
    Box::pin(async move {
        let Some(nesting) = nesting.checked_sub(1) else {
            return Err(stream.expected("a value that is nested less deep"));
        };
        if dialect == Dialect::Gemma && stream.eat(&[GEMMA_QUOTE]).await.is_some() {
            return gemma_string(stream, Output::Value).await.map(drop);
        }
        match (stream.must_peek().await?, dialect) {
            ('"', Dialect::Gemma) => {
                stream.arguments(&call::value(stream).await?);
                Ok(())
            }
            ('"' | '\'', Dialect::Python) => {
                stream.arguments("\"");
                python_string(stream, Output::Value).await?;
                stream.arguments("\"");
                Ok(())
            }
            ('[', _) => list(stream, dialect, ']', nesting).await,
            ('(', Dialect::Python) => list(stream, dialect, ')', nesting).await,
            ('{', _) => dict(stream, dialect, nesting).await,
            _ => word(stream, dialect).await,
        }
    })
}

async fn list(stream: &Stream, dialect: Dialect, close: char, nesting: usize) -> Result<(), Failure> {
    stream.take().await?;
    stream.arguments("[");
    let mut first = First::Yes;
    loop {
        stream.blanks().await?;
        if stream.must_peek().await? == close {
            break;
        }
        if first == First::No {
            stream.arguments(",");
        }
        first = First::No;
        literal(stream, dialect, nesting).await?;
        stream.blanks().await?;
        match stream.must_peek().await? {
            ',' => stream.pass().await?,
            c if c == close => break,
            _ => return Err(stream.expected(&format!("`,` or `{close}` after a value"))),
        }
    }
    stream.take().await?;
    stream.arguments("]");
    Ok(())
}

async fn dict(stream: &Stream, dialect: Dialect, nesting: usize) -> Result<(), Failure> {
    stream.take().await?;
    stream.arguments("{");
    let mut first = First::Yes;
    loop {
        stream.blanks().await?;
        let next = stream.must_peek().await?;
        if next == '}' {
            break;
        }
        let key = match (next, dialect) {
            ('"' | '\'', Dialect::Python) => python_string(stream, Output::Key).await?,
            ('"', Dialect::Gemma) => {
                serde_json::from_str(&call::value(stream).await?).map_err(|_| stream.wrong("expected a key"))?
            }
            (_, Dialect::Gemma) if stream.eat(&[GEMMA_QUOTE]).await.is_some() => {
                gemma_string(stream, Output::Key).await?
            }
            (_, Dialect::Gemma) => stream.until(&[":", "}", ","]).await?.0.trim().to_owned(),
            _ => return Err(stream.expected("a key in quotes")),
        };
        stream.blanks().await?;
        if stream.must_peek().await? != ':' {
            return Err(stream.expected("`:` after a key"));
        }
        stream.take().await?;
        stream.blanks().await?;
        stream.arguments(&call::key(&key, first));
        first = First::No;
        literal(stream, dialect, nesting).await?;
        stream.blanks().await?;
        match stream.must_peek().await? {
            ',' => stream.pass().await?,
            '}' => break,
            _ => return Err(stream.expected("`,` or `}` after a value")),
        }
    }
    stream.take().await?;
    stream.arguments("}");
    Ok(())
}

/// Where a string goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    /// To the client, as the inside of a JSON string.
    Value,
    /// Back to whoever asked.
    Key,
}

impl Output {
    fn put(self, stream: &Stream, c: char, key: &mut String) {
        match self {
            Self::Value => {
                let mut piece = String::new();
                escape(c, &mut piece);
                stream.arguments(&piece);
            }
            Self::Key => key.push(c),
        }
    }
}

async fn gemma_string(stream: &Stream, output: Output) -> Result<String, Failure> {
    let mut key = String::new();
    if output == Output::Value {
        stream.arguments("\"");
    }
    while stream.eat(&[GEMMA_QUOTE]).await.is_none() {
        let c = stream.take().await?;
        output.put(stream, c, &mut key);
    }
    if output == Output::Value {
        stream.arguments("\"");
    }
    Ok(key)
}

/// Reads a string of Python's with its quotes.
async fn python_string(stream: &Stream, output: Output) -> Result<String, Failure> {
    let mut key = String::new();
    let long = stream.eat(&["\"\"\"", "'''"]).await;
    let quote = match long {
        Some(0) => "\"\"\"",
        Some(_) => "'''",
        None if stream.take().await? == '"' => "\"",
        None => "'",
    };
    while stream.eat(&[quote]).await.is_none() {
        let c = stream.take().await?;
        if c != '\\' {
            output.put(stream, c, &mut key);
            continue;
        }
        match stream.take().await? {
            '\n' => {}
            'n' => output.put(stream, '\n', &mut key),
            't' => output.put(stream, '\t', &mut key),
            'r' => output.put(stream, '\r', &mut key),
            '0' => output.put(stream, '\0', &mut key),
            'x' => output.put(stream, code_point(stream, 2).await?, &mut key),
            'u' => output.put(stream, code_point(stream, 4).await?, &mut key),
            'U' => output.put(stream, code_point(stream, 8).await?, &mut key),
            c @ ('\\' | '\'' | '"') => output.put(stream, c, &mut key),
            c => {
                // Python leaves a backslash that escapes nothing.
                output.put(stream, '\\', &mut key);
                output.put(stream, c, &mut key);
            }
        }
    }
    Ok(key)
}

async fn code_point(stream: &Stream, digits: usize) -> Result<char, Failure> {
    let mut value = 0u32;
    for _ in 0..digits {
        let digit = stream.must_peek().await?.to_digit(16).ok_or_else(|| stream.expected("a hexadecimal digit"))?;
        stream.take().await?;
        value = value.wrapping_mul(16).wrapping_add(digit);
    }
    // A half of a surrogate pair is no character.
    Ok(char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER))
}

/// Reads a number, a truth value, or nothing.
async fn word(stream: &Stream, dialect: Dialect) -> Result<(), Failure> {
    let mut text = String::new();
    loop {
        let next = stream.must_peek().await?;
        if matches!(next, ',' | ')' | ']' | '}' | '=' | ':' | '(') || next.is_whitespace() {
            break;
        }
        text.push(stream.take().await?);
    }
    let json = match text.as_str() {
        "True" | "true" => "true".to_owned(),
        "False" | "false" => "false".to_owned(),
        "None" | "null" => "null".to_owned(),
        _ => match (number(&text), dialect) {
            (Some(number), _) => number,
            (None, Dialect::Gemma) if !text.is_empty() => crate::json::quote(&text),
            _ => return Err(stream.wrong(&format!("expected a value instead of `{text}`"))),
        },
    };
    stream.arguments(&json);
    Ok(())
}

/// A number of Python's as JSON.
fn number(text: &str) -> Option<String> {
    if let Ok(Value::Number(_)) = serde_json::from_str(text) {
        return Some(text.to_owned());
    }
    let plain = text.replace('_', "");
    let plain = plain.strip_prefix('+').unwrap_or(&plain);
    if let Ok(whole) = plain.parse::<i64>() {
        return Some(whole.to_string());
    }
    if !plain.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-')) {
        return None;
    }
    let number = serde_json::Number::from_f64(plain.parse().ok()?)?;
    Some(number.to_string())
}
