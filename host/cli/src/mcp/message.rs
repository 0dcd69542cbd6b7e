//! What of a message the bridge has to know.

use serde_json::Value;

/// A message of a client.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Message {
    /// Its id as JSON, if it wants an answer or gives one.
    pub(super) id: Option<String>,
    pub(super) method: Option<String>,
    /// The version that it names, if it is of the protocol without sessions.
    pub(super) version: Option<String>,
    /// The request that it is to end.
    pub(super) cancels: Option<String>,
}

impl Message {
    /// Reads what can be read; the component tells what is wrong with the rest.
    pub(super) fn read(line: &[u8]) -> Self {
        let message: Value = serde_json::from_slice(line).unwrap_or_default();
        let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
        let version = message.pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion");
        let is_cancel = method.as_deref() == Some("notifications/cancelled");
        Self {
            id: message.get("id").map(Value::to_string),
            version: version.and_then(Value::as_str).map(str::to_owned),
            cancels: message.pointer("/params/requestId").filter(|_| is_cancel).map(Value::to_string),
            method,
        }
    }
}

/// The messages in server-sent events, as they come in.
#[derive(Debug, Default)]
pub(super) struct Events {
    rest: Vec<u8>,
}

impl Events {
    /// Takes a part of the stream, and gives the messages that are whole by now.
    pub(super) fn take(&mut self, part: &[u8]) -> Vec<Vec<u8>> {
        self.rest.extend_from_slice(part);
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return Vec::new() };
        let rest = self.rest.split_off(end + 1);
        let lines = std::mem::replace(&mut self.rest, rest);
        // The component writes each message as one line of data.
        lines.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data: ")).map(<[u8]>::to_vec).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_is_read_and_nothing_fails() {
        let message = Message::read(
            br#"{"id": "a", "method": "m", "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "v"}}}"#,
        );
        assert_eq!((message.id.as_deref(), message.method.as_deref()), (Some("\"a\""), Some("m")));
        assert_eq!((message.version.as_deref(), message.cancels), (Some("v"), None));
        let cancel = Message::read(br#"{"method": "notifications/cancelled", "params": {"requestId": 3}}"#);
        assert_eq!(cancel.cancels.as_deref(), Some("3"));
        assert_eq!(Message::read(b"{").method, None);
    }

    #[test]
    fn messages_are_found_however_the_stream_is_cut() {
        let stream = b"event: message\ndata: {\"a\": 1}\n\n: still here\n\nevent: message\ndata: {}\n\n";
        for at in 0..stream.len() {
            let mut events = Events::default();
            let mut all = events.take(&stream[..at]);
            all.extend(events.take(&stream[at..]));
            assert_eq!(all, [b"{\"a\": 1}".to_vec(), b"{}".to_vec()], "{at}");
        }
    }
}
