//! Calls with an XML element for each argument, and elements in these for what is
//! nested (MiniMax-M3).

use std::future::Future;
use std::pin::Pin;

use crate::call::{self, Doubt, First};
use crate::json::quote;
use crate::notation::{Keys, Margin};
use crate::stream::{Failure, Stream};
use crate::tagged;
use crate::tool::Tool;
use crate::types::{Types, typed};

/// Before each tag.
pub(crate) const MARK: &str = "]<]minimax[>[";
const INVOKE: &str = "]<]minimax[>[<invoke name=\"";
const INVOKE_END: &str = "]<]minimax[>[</invoke>";
const OPEN: &str = "]<]minimax[>[<";
const CLOSE: &str = "]<]minimax[>[</";

/// How deep elements may be nested.
const NESTING: usize = 32;

/// Reads calls, up to what is none.
pub(crate) async fn calls(stream: &Stream, tools: &[Tool]) -> Result<(), Failure> {
    stream.first_column();
    stream.blanks().await?;
    if stream.must_peek().await? == '{' {
        return call::calls(stream, Keys::Fixed, Doubt::Marked).await;
    }
    let mut count = 0usize;
    while stream.eat(&[INVOKE]).await.is_some() {
        count += 1;
        let (name, _) = stream.name(&["\">"]).await?;
        stream.skip("\">");
        stream.start_call(&name, None);
        arguments(stream, tools, &name).await?;
        stream.blanks().await?;
    }
    match count {
        0 => stream.must_peek().await.and(Err(Failure::NotACall)),
        _ => Ok(()),
    }
}

async fn arguments(stream: &Stream, tools: &[Tool], name: &str) -> Result<(), Failure> {
    let mut first = First::Yes;
    loop {
        stream.blanks().await?;
        // The tag that ends the call begins as an argument's does.
        if stream.eat(&[INVOKE_END]).await.is_some() {
            stream.arguments(if first == First::Yes { "{}" } else { "}" });
            stream.end_call();
            return Ok(());
        }
        if stream.eat(&[OPEN]).await.is_none() {
            stream.must_peek().await?;
            return Err(stream.expected("the tag of an argument"));
        }
        let key = tag(stream).await?;
        stream.arguments(if first == First::Yes { "{" } else { "" });
        stream.arguments(&call::key(&key, first));
        first = First::No;
        let close = format!("{CLOSE}{key}>");
        let types = Types::of(tools, name, &key);
        if types.is_some_and(Types::only_string) {
            tagged::value(stream, types, &close, Margin::None).await?;
        } else {
            let json = element(stream, types, &close, NESTING).await?;
            stream.arguments(&json);
        }
    }
}

async fn tag(stream: &Stream) -> Result<String, Failure> {
    let (name, _) = stream.until(&[">"]).await.map_err(|failure| match failure {
        Failure::NotACall => stream.expected("the end of a tag"),
        failure => failure,
    })?;
    stream.skip(">");
    Ok(name)
}

type Reading<'a> = Pin<Box<dyn Future<Output = Result<String, Failure>> + Send + 'a>>;

/// Reads what is in an element, and its end tag; gives JSON.
fn element<'a>(stream: &'a Stream, types: Option<Types>, close: &'a str, nesting: usize) -> Reading<'a> {
    Box::pin(async move {
        let Some(nesting) = nesting.checked_sub(1) else {
            return Err(stream.expected("an element that is nested less deep"));
        };
        let mut text = String::new();
        while stream.ahead(&[MARK]).await.is_none() {
            text.push(stream.take().await?);
        }
        if stream.eat(&[close]).await.is_some() {
            return Ok(typed(&text, types));
        }
        let mut items = Vec::new();
        let mut fields = Vec::new();
        while stream.eat(&[close]).await.is_none() {
            if stream.eat(&[OPEN]).await.is_none() {
                stream.must_peek().await?;
                return Err(stream.expected(&format!("`{close}`")));
            }
            let name = tag(stream).await?;
            if name.starts_with('/') {
                return Err(stream.wrong(&format!("expected `{close}`")));
            }
            let end = format!("{CLOSE}{name}>");
            let value = element(stream, None, &end, nesting).await?;
            stream.blanks().await?;
            match name.as_str() {
                "item" => items.push(value),
                _ => fields.push(format!("{}:{value}", quote(&name))),
            }
        }
        Ok(if fields.is_empty() { format!("[{}]", items.join(",")) } else { format!("{{{}}}", fields.join(",")) })
    })
}
