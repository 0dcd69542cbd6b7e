//! Tools and answers as JSON, in the words of the Model Context Protocol.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nala_wasm::{Answer, Body, Content, Contents, Tool};
use serde_json::{Map, Value, json};

/// What is known of a tool.
pub(super) fn tool(tool: &Tool) -> Value {
    let Tool { name, title, description, input_schema, output_schema, annotations } = tool;
    // They were read as JSON when the tool was loaded.
    let schema = |text: &String| serde_json::from_str(text).unwrap_or(Value::Null);
    let hints = [
        ("readOnlyHint", annotations.read_only),
        ("destructiveHint", annotations.destructive),
        ("idempotentHint", annotations.idempotent),
        ("openWorldHint", annotations.open_world),
    ];
    let hints: Map<String, Value> =
        hints.into_iter().filter_map(|(key, hint)| Some((key.to_owned(), hint?.into()))).collect();
    let mut all = Map::from_iter([
        ("name".to_owned(), json!(name)),
        ("description".to_owned(), json!(description)),
        ("inputSchema".to_owned(), schema(input_schema)),
    ]);
    if let Some(title) = title {
        all.insert("title".to_owned(), json!(title));
    }
    if let Some(output) = output_schema {
        all.insert("outputSchema".to_owned(), schema(output));
    }
    if !hints.is_empty() {
        all.insert("annotations".to_owned(), Value::Object(hints));
    }
    Value::Object(all)
}

/// Adds something to an object.
pub(super) fn insert(object: &mut Value, key: &str, value: Value) {
    if let Value::Object(object) = object {
        object.insert(key.to_owned(), value);
    }
}

/// What a tool answered.
pub(super) fn answer(answer: &Answer) -> Value {
    let content: Vec<Value> = answer.content.iter().map(content).collect();
    let mut all = json!({ "content": content, "isError": answer.is_error });
    if let Some(structured) = answer.structured.as_deref().and_then(|text| serde_json::from_str(text).ok()) {
        insert(&mut all, "structuredContent", structured);
    }
    all
}

fn content(content: &Content) -> Value {
    let media = |kind: &str, data: &[u8], mime_type: &str| json!({ "type": kind, "data": STANDARD.encode(data), "mimeType": mime_type });
    match content {
        Content::Text(text) => json!({ "type": "text", "text": text }),
        Content::Image(one) => media("image", &one.data, &one.mime_type),
        Content::Audio(one) => media("audio", &one.data, &one.mime_type),
        Content::Resource(one) => json!({ "type": "resource", "resource": contents(one) }),
        Content::Link(one) => {
            let mut all = json!({ "type": "resource_link", "uri": one.uri, "name": one.name });
            for (key, value) in [("description", &one.description), ("mimeType", &one.mime_type)] {
                if let Some(value) = value {
                    insert(&mut all, key, json!(value));
                }
            }
            all
        }
    }
}

fn contents(contents: &Contents) -> Value {
    let mut all = match &contents.body {
        Body::Text(text) => json!({ "uri": contents.uri, "text": text }),
        Body::Bytes(bytes) => json!({ "uri": contents.uri, "blob": STANDARD.encode(bytes) }),
    };
    if let Some(mime_type) = &contents.mime_type {
        insert(&mut all, "mimeType", json!(mime_type));
    }
    all
}

/// The first sentence of a description.
pub(super) fn brief(description: &str) -> String {
    let line = description.lines().next().unwrap_or_default();
    plain(line.split_once(". ").map_or(line, |(sentence, _)| sentence).trim_end_matches('.'))
}

/// A text without what would command a terminal.
pub(super) fn plain(text: &str) -> String {
    let plain = |c: char| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c };
    text.chars().map(plain).collect()
}

/// A part of an answer for a terminal, which control characters in it cannot reach.
pub(super) fn shown(content: &Content) -> String {
    match content {
        Content::Text(text) => plain(text),
        Content::Image(one) | Content::Audio(one) => plain(&format!("[{}, {} bytes]", one.mime_type, one.data.len())),
        Content::Link(one) => plain(&one.uri),
        Content::Resource(Contents { uri, body, .. }) => match body {
            Body::Text(text) => plain(text),
            Body::Bytes(bytes) => plain(&format!("[{uri}, {} bytes]", bytes.len())),
        },
    }
}

#[cfg(test)]
mod tests {
    use nala_wasm::{Annotations, Media};

    use super::*;

    #[test]
    fn answers_and_tools_are_written_as_the_protocol_has_them() {
        let media = Media { data: vec![0, 255], mime_type: "image/png".to_owned() };
        let all = Answer {
            content: vec![Content::Text("a\u{1b}[31m\tb".to_owned()), Content::Image(media)],
            structured: Some("{\"n\": 18446744073709551615}".to_owned()),
            is_error: false,
        };
        let expected = json!({
            "content": [
                { "type": "text", "text": "a\u{1b}[31m\tb" },
                { "type": "image", "data": "AP8=", "mimeType": "image/png" },
            ],
            "isError": false,
            "structuredContent": { "n": 18_446_744_073_709_551_615_u64 },
        });
        assert_eq!(answer(&all), expected);
        let shown: Vec<String> = all.content.iter().map(shown).collect();
        assert_eq!(shown, ["a\u{fffd}[31m\tb", "[image/png, 2 bytes]"]);
        assert_eq!(brief("Adds. And more."), "Adds");
        assert_eq!(brief("Costs 1.5.\nMore"), "Costs 1.5");
        let annotations = Annotations { read_only: Some(true), destructive: None, idempotent: None, open_world: None };
        let one = Tool {
            name: "a".to_owned(),
            title: None,
            description: "d".to_owned(),
            input_schema: "{\"type\": \"object\"}".to_owned(),
            output_schema: None,
            annotations,
        };
        let expected = json!({
            "name": "a", "description": "d", "inputSchema": { "type": "object" }, "annotations": { "readOnlyHint": true },
        });
        assert_eq!(tool(&one), expected);
    }
}
