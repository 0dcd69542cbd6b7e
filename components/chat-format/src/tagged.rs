//! Calls whose names and arguments are in tags.
//!
//! The values are plain text: the tool's schema tells what they are.

use crate::call::{self, Doubt, First};
use crate::json::escape;
use crate::notation::{Keys, Margin, Pairs, Tagged};
use crate::stream::{Failure, Stream};
use crate::tool::Tool;
use crate::types::{Types, typed};

/// Reads calls in tags, up to what is none.
pub(crate) async fn calls(stream: &Stream, tools: &[Tool], tags: &Tagged) -> Result<(), Failure> {
    stream.first_column();
    let Some(open) = tags.call else { return one(stream, tools, tags).await };
    stream.blanks().await?;
    if stream.must_peek().await? == '{' {
        // Forced calls are JSON, and small models write it on their own.
        return call::calls(stream, Keys::Fixed, Doubt::Marked).await;
    }
    let mut count = 0usize;
    while stream.eat(&[open]).await.is_some() {
        count += 1;
        one(stream, tools, tags).await?;
        stream.blanks().await?;
    }
    match count {
        // The text may have ended within the tag.
        0 => stream.must_peek().await.and(Err(Failure::NotACall)),
        _ => Ok(()),
    }
}

/// Reads a call from its name on.
async fn one(stream: &Stream, tools: &[Tool], tags: &Tagged) -> Result<(), Failure> {
    let (name, _) = stream.name(&[tags.name_end]).await?;
    attributes(stream, tags).await?;
    let json = tags.json.map_or(tags.call_close, |(open, _)| open);
    stream.blanks().await?;
    if stream.ahead(&[tags.argument, tags.call_close, json]).await.is_none() {
        // The text may have ended within the tag.
        return stream.must_peek().await.and(Err(Failure::NotACall));
    }
    stream.start_call(&name, None);
    let mut first = First::Yes;
    loop {
        stream.blanks().await?;
        match stream.eat(&[tags.argument, tags.call_close, json]).await {
            Some(0) => {
                let (key, attributes) = key(stream, tags).await.map_err(|failure| tag(stream, failure))?;
                let types = told(&attributes).or_else(|| Types::of(tools, &name, &key));
                stream.arguments(if first == First::Yes { "{" } else { "" });
                stream.arguments(&call::key(&key, first));
                first = First::No;
                value(stream, types, tags.argument_close, tags.margin).await?;
            }
            Some(1) => {
                stream.arguments(if first == First::Yes { "{}" } else { "}" });
                stream.end_call();
                return Ok(());
            }
            Some(_) => {
                call::arguments(stream).await?;
                // The object is the whole call, whether or not the tags are closed.
                stream.end_call();
                for close in tags.json.iter().map(|(_, close)| *close).chain([tags.call_close]) {
                    stream.blanks().await?;
                    stream.eat(&[close]).await;
                }
                return Ok(());
            }
            None => {
                stream.must_peek().await?;
                return Err(stream.expected(&format!("`{}` or `{}`", tags.argument, tags.call_close)));
            }
        }
    }
}

/// Within a call, what is no tag is an error.
fn tag(stream: &Stream, failure: Failure) -> Failure {
    match failure {
        Failure::NotACall => stream.expected("the end of the tag with the argument's name"),
        failure => failure,
    }
}

/// Reads the name of an argument in a tag, and the tag's other attributes.
async fn key(stream: &Stream, tags: &Tagged) -> Result<(String, String), Failure> {
    let (name, _) = stream.until(&[tags.name_end]).await?;
    Ok((name.trim().to_owned(), attributes(stream, tags).await?))
}

/// Reads what follows a name up to the end of its tag.
async fn attributes(stream: &Stream, tags: &Tagged) -> Result<String, Failure> {
    stream.skip(tags.name_end);
    let Some(end) = tags.tag_end else { return Ok(String::new()) };
    let (attributes, _) = stream.until(&[end]).await?;
    stream.skip(end);
    Ok(attributes)
}

/// The type that a tag tells.
fn told(attributes: &str) -> Option<Types> {
    if attributes.contains("string=\"true\"") || attributes.contains("type=\"string\"") {
        Some(Types::STRING)
    } else if attributes.contains("string=\"false\"") || attributes.contains("type=\"") {
        Some(Types::NO_STRING)
    } else {
        None
    }
}

/// Reads a value and its closing tag.
pub(crate) async fn value(stream: &Stream, types: Option<Types>, close: &str, margin: Margin) -> Result<(), Failure> {
    if margin == Margin::Line && stream.peek().await == Some('\n') {
        stream.take().await?;
    }
    let cdata = margin == Margin::CData && stream.eat(&["<![CDATA["]).await.is_some();
    let end = if cdata { "]]>" } else { close };
    if types.is_some_and(Types::only_string) {
        stream.arguments("\"");
        text(stream, end, margin).await?;
        stream.skip(end);
        stream.arguments("\"");
    } else {
        let mut written = String::new();
        while stream.ahead(&[end]).await.is_none() {
            written.push(stream.take().await?);
        }
        stream.skip(end);
        let written = match margin {
            Margin::Line => written.strip_suffix('\n').unwrap_or(&written),
            Margin::None | Margin::CData => &written,
        };
        stream.arguments(&typed(written, types));
    }
    if cdata {
        stream.blanks().await?;
        if stream.eat(&[close]).await.is_none() {
            return Err(stream.expected(&format!("`{close}`")));
        }
    }
    Ok(())
}

/// Gives out a text as the inside of a JSON string, up to `end`, which stays.
async fn text(stream: &Stream, end: &str, margin: Margin) -> Result<(), Failure> {
    // The line break before the end tag is known only with that tag.
    let mut line = "";
    while stream.ahead(&[end]).await.is_none() {
        let c = stream.take().await?;
        let mut piece = line.to_owned();
        line = "";
        if c == '\n' && margin == Margin::Line {
            line = "\\n";
        } else {
            escape(c, &mut piece);
        }
        stream.arguments(&piece);
    }
    Ok(())
}

/// Reads a call with its name and pairs of tags, up to `close`, which stays.
pub(crate) async fn pairs(stream: &Stream, tools: &[Tool], tags: &Pairs, close: &str) -> Result<(), Failure> {
    stream.first_column();
    stream.blanks().await?;
    if stream.must_peek().await? == '{' {
        return call::calls(stream, Keys::Fixed, Doubt::Marked).await;
    }
    let (name, _) = stream.name(&["\n", tags.separator, tags.key.0, close]).await?;
    let name = name.as_str();
    stream.eat(&[tags.separator]).await;
    stream.blanks().await?;
    if stream.ahead(&[tags.key.0, close]).await.is_none() {
        return stream.must_peek().await.and(Err(Failure::NotACall));
    }
    stream.start_call(name, None);
    let mut first = First::Yes;
    loop {
        stream.blanks().await?;
        match stream.ahead(&[tags.key.0, close]).await {
            Some(0) => {
                stream.skip(tags.key.0);
                let (key, _) = stream.until(&[tags.key.1]).await.map_err(|failure| tag(stream, failure))?;
                stream.skip(tags.key.1);
                stream.blanks().await?;
                if stream.eat(&[tags.value.0]).await.is_none() {
                    stream.must_peek().await?;
                    return Err(stream.expected(&format!("`{}`", tags.value.0)));
                }
                let key = key.trim();
                stream.arguments(if first == First::Yes { "{" } else { "" });
                stream.arguments(&call::key(key, first));
                first = First::No;
                value(stream, Types::of(tools, name, key), tags.value.1, Margin::None).await?;
            }
            Some(_) => {
                stream.arguments(if first == First::Yes { "{}" } else { "}" });
                stream.end_call();
                return Ok(());
            }
            None => {
                stream.must_peek().await?;
                return Err(stream.expected(&format!("`{}` or `{close}`", tags.key.0)));
            }
        }
    }
}
