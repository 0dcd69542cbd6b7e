//! Messages with a header that tells whom they are for (harmony, and the like).

use crate::call::whole;
use crate::notation::Header;
use crate::stream::{Failure, Stream};

/// What ends a message's text.
pub(crate) const ENDS: &[&str] = &["<|end|>", "<|eom|>", "<|return|>", "<|call|>"];

const MESSAGE: &str = "<|message|>";
const CHANNEL: &str = "<|channel|>";
/// Markers within a header.
const INNER: [&str; 2] = [CHANNEL, "<|constrain|>"];
const LONGEST: usize = 256;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Message {
    /// A call; it was read.
    Call,
    /// Text for the user, which follows.
    Text,
    /// A thought, which follows.
    Thought,
}

/// Reads a header after its first marker, and the call if it is one.
pub(crate) async fn read(stream: &Stream, kind: Header, open: &str) -> Result<Message, Failure> {
    stream.first_column();
    let mut header = open.to_owned();
    if open != CHANNEL && !matches!(stream.must_peek().await?, ' ' | '<') {
        // No header: the model was made to write something else.
        return Err(Failure::NotACall);
    }
    loop {
        if stream.eat(&[MESSAGE]).await.is_some() {
            break;
        }
        if let Some(marker) = stream.eat(&INNER).await {
            header.push_str(INNER.get(marker).copied().unwrap_or_default());
            continue;
        }
        stream.skip_cut_off(&[MESSAGE, CHANNEL, "<|constrain|>"]);
        let next = stream.must_peek().await?;
        if !(next.is_alphanumeric() || " ._-=:/".contains(next)) || header.len() > LONGEST {
            return Err(Failure::NotACall);
        }
        header.push(stream.take().await?);
    }
    let recipient = header.rsplit_once("to=").map(|(_, rest)| word(rest));
    let channel = header.rsplit_once(CHANNEL).map_or("", |(_, rest)| word(rest.trim_start()));
    match (kind, recipient) {
        (Header::Muse, Some("self")) => Ok(Message::Thought),
        (Header::Muse, _) => Ok(Message::Text),
        (Header::Harmony, Some(recipient)) if !matches!(recipient, "" | "assistant" | "user" | "all") => {
            let name = recipient.strip_prefix("functions.").unwrap_or(recipient);
            stream.blanks().await?;
            whole(stream, name, None).await?;
            Ok(Message::Call)
        }
        (Header::Harmony, _) if channel == "analysis" => Ok(Message::Thought),
        (Header::Harmony, _) => Ok(Message::Text),
    }
}

/// A text up to white space or a marker.
fn word(text: &str) -> &str {
    text.split([' ', '<']).next().unwrap_or_default()
}
