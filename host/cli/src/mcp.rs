//! `nala-host mcp`: an application's tools for clients that start their servers themselves.

mod bridge;
mod login;
mod message;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use nala_wasm::{Capabilities, Grant, Limits, Source, Toolbox};
use tokio::io::{AsyncBufReadExt, BufReader};

use self::bridge::Bridge;
use crate::args::{McpArgs, McpVerb};
use crate::builtin;
use crate::console::Console;
use crate::tool::{self, Tools};

/// The longest message that is read, in bytes; the component takes no longer ones either.
const LONGEST: usize = 4 << 20;

/// What a request may take.
const AN_HOUR: Duration = Duration::from_secs(60 * 60);
const A_MINUTE: Duration = Duration::from_secs(60);

/// What the component is told of how it is reached.
const TRANSPORT: (&str, &str) = ("MCP_TRANSPORT", "stdio");

/// Runs the verb, until standard input ends.
///
/// # Errors
/// The tools cannot be loaded, or standard input cannot be read.
pub(crate) fn main(args: &McpArgs, console: Console) -> anyhow::Result<()> {
    if let Some(McpVerb::Login(login)) = &args.verb {
        return login::main(login, console);
    }
    let runtime = tool::runtime()?;
    let _entered = runtime.enter();
    let tools = Tools::load(&args.from, console)?;
    let environment = [(TRANSPORT.0.to_owned(), TRANSPORT.1.into())].into();
    let grant = Grant {
        tools: Arc::new(Toolbox::new(tools.providers().to_vec())?.with_elsewhere(tools.elsewhere().to_vec())),
        capabilities: Capabilities { environment, ..Capabilities::default() },
        // The tools have limits of their own, and a person may think about a question.
        limits: Limits { wall: AN_HOUR, cpu: A_MINUTE, ..Limits::default() },
        ..Grant::default()
    };
    let compiled = tools.runtime().compile("mcp", Source::Bytes(builtin::MCP))?;
    let app = tools.runtime().load(&compiled, grant)?;
    runtime.block_on(serve(Bridge::new(app)))
}

/// Answers each line of standard input.
async fn serve(mut bridge: Bridge) -> anyhow::Result<()> {
    let mut input = BufReader::new(tokio::io::stdin());
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = read_line(&mut input, &mut line).await.context("standard input cannot be read")?;
        match read {
            Line::End => break,
            Line::TooLong => bridge.refuse("the message is too long"),
            Line::Whole if line.iter().all(u8::is_ascii_whitespace) => {}
            Line::Whole => bridge.take(&line).await,
        }
    }
    bridge.finish().await;
    Ok(())
}

/// What was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Whole,
    TooLong,
    End,
}

/// Reads a line; what is too long is read and forgotten.
async fn read_line(input: &mut (impl AsyncBufReadExt + Unpin), line: &mut Vec<u8>) -> std::io::Result<Line> {
    let mut is_long = false;
    let mut has_any = false;
    loop {
        let part = input.fill_buf().await?;
        if part.is_empty() {
            return Ok(if has_any { Line::Whole } else { Line::End });
        }
        has_any = true;
        let end = part.iter().position(|byte| *byte == b'\n');
        let taken = part.get(..end.unwrap_or(part.len())).unwrap_or_default();
        is_long |= line.len() + taken.len() > LONGEST;
        if is_long {
            line.clear();
        } else {
            line.extend_from_slice(taken);
        }
        let used = end.map_or(part.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(if is_long { Line::TooLong } else { Line::Whole });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_read_whole_and_long_ones_are_skipped() {
        let long = vec![b'x'; LONGEST + 1];
        let text = [b"a\n\nb".as_slice(), b"c\n", &long, b"\nd"].concat();
        let mut input = BufReader::new(text.as_slice());
        let mut line = Vec::new();
        for (kind, expected) in [
            (Line::Whole, b"a".as_slice()),
            (Line::Whole, b""),
            (Line::Whole, b"bc"),
            (Line::TooLong, b""),
            (Line::Whole, b"d"),
            (Line::End, b""),
        ] {
            line.clear();
            assert_eq!((read_line(&mut input, &mut line).await.unwrap(), line.as_slice()), (kind, expected));
        }
    }
}
