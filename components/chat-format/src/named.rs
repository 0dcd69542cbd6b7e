//! Calls that begin with a name and go on with the arguments as JSON.

use crate::call::{Doubt, calls, whole};
use crate::notation::{Keys, Naming};
use crate::stream::{Failure, Stream};
use crate::tool::Tool;

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    /// Calls.
    Calls,
    /// A message to the user follows.
    Text,
}

/// Reads a call, without what ends it.
pub(crate) async fn call(stream: &Stream, tools: &[Tool], naming: Naming) -> Result<Read, Failure> {
    stream.first_column();
    match naming {
        Naming::Mistral => mistral(stream).await?,
        Naming::DeepSeek => deepseek(stream).await?,
        Naming::Kimi => kimi(stream).await?,
        Naming::Solar => {
            let (id, _) = stream.until(&["<|tool_call:name|>"]).await?;
            stream.skip("<|tool_call:name|>");
            let (name, _) = stream.name(&["<|tool_call:args|>"]).await?;
            stream.skip("<|tool_call:args|>");
            json(stream, &name, Some(id)).await?;
        }
        Naming::Tag => {
            let (name, _) = stream.name(&[">"]).await?;
            stream.skip(">");
            stream.blanks().await?;
            if stream.must_peek().await? != '{' {
                return Err(Failure::NotACall);
            }
            json(stream, &name, None).await?;
        }
        Naming::Recipient => return recipient(stream, tools).await,
    }
    Ok(Read::Calls)
}

/// Reads arguments after a name.
async fn json(stream: &Stream, name: &str, id: Option<String>) -> Result<(), Failure> {
    stream.blanks().await?;
    whole(stream, name, id.filter(|id| !id.is_empty())).await
}

async fn mistral(stream: &Stream) -> Result<(), Failure> {
    const ID: &str = "[CALL_ID]";
    const ARGUMENTS: &str = "[ARGS]";
    stream.blanks().await?;
    if stream.ahead(&["{", "[{", "[ ", "[\n", "[]"]).await.is_some() {
        return calls(stream, Keys::Fixed, Doubt::Marked).await;
    }
    let (name, end) = stream.name(&[ID, ARGUMENTS, "{"]).await?;
    let mut id = None;
    if end == 0 {
        stream.skip(ID);
        id = Some(stream.until(&[ARGUMENTS]).await?.0);
    }
    stream.eat(&[ARGUMENTS]).await;
    json(stream, &name, id).await
}

async fn deepseek(stream: &Stream) -> Result<(), Failure> {
    const SEPARATOR: &str = "<｜tool▁sep｜>";
    let (mut name, _) = stream.name(&[SEPARATOR]).await?;
    stream.skip(SEPARATOR);
    stream.blanks().await?;
    if stream.must_peek().await? != '{' {
        name = stream.name(&["\n", "```", "{"]).await?.0;
        stream.blanks().await?;
    }
    let fenced = stream.eat(&["```"]).await.is_some();
    if fenced {
        stream.eat(&["json"]).await;
    }
    json(stream, &name, None).await?;
    if fenced {
        stream.blanks().await?;
        stream.eat(&["```"]).await;
    }
    Ok(())
}

async fn kimi(stream: &Stream) -> Result<(), Failure> {
    const ARGUMENTS: &str = "<|tool_call_argument_begin|>";
    let (id, _) = stream.name(&[ARGUMENTS]).await?;
    stream.skip(ARGUMENTS);
    let name = id.strip_prefix("functions.").unwrap_or(&id);
    let name = match name.rsplit_once(':') {
        Some((name, index)) if index.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => name,
    };
    json(stream, name, Some(id.clone())).await
}

async fn recipient(stream: &Stream, tools: &[Tool]) -> Result<Read, Failure> {
    let (name, _) = stream.name(&["\n"]).await?;
    if name == "all" {
        stream.skip("\n");
        return Ok(Read::Text);
    }
    // A quoted prompt of Python's looks the same, so the name has to be known, or
    // arguments have to follow.
    stream.blanks().await?;
    if stream.must_peek().await? != '{' && !tools.iter().any(|tool| tool.name == name) {
        return Err(Failure::NotACall);
    }
    json(stream, &name, None).await?;
    Ok(Read::Calls)
}
