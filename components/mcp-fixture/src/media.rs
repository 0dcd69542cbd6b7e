//! Tools that answer at once, with contents of each kind.

use nala_sdk::tools::{Answer, Body, Content, Contents, Error, Media};
use serde_json::Value;

use crate::{Known, NOTHING};

/// A picture of one red point.
pub(crate) const PNG: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00, 0x00,
    0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x02, 0x00, 0x00, 0x00, 0x90, 0x77, 0x53, 0xde, 0x00, 0x00, 0x00, 0x0c, 0x49,
    0x44, 0x41, 0x54, 0x08, 0xd7, 0x63, 0xf8, 0xcf, 0xc0, 0x00, 0x00, 0x03, 0x01, 0x01, 0x00, 0x18, 0xdd, 0x8d, 0xb0,
    0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];

/// Sound without any samples.
const WAV: &[u8] = b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x44\xac\0\0\x88\x58\x01\0\x02\0\x10\0data\0\0\0\0";

/// Features of JSON Schema that are passed on as they are.
const RICH: &str = r##"{
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}}
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"}
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": false
}"##;

/// An argument that is repeated in a header.
const MIRRORED: &str = r#"{"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}, "required": ["region"]}"#;

pub(crate) const TOOLS: &[Known] = &[
    Known { name: "test_x_mcp_header", description: "Takes a header.", schema: MIRRORED, call: simple },
    Known { name: "test_simple_text", description: "Answers a text.", schema: NOTHING, call: simple },
    Known { name: "test_image_content", description: "Answers a picture.", schema: NOTHING, call: image },
    Known { name: "test_audio_content", description: "Answers a sound.", schema: NOTHING, call: audio },
    Known { name: "test_embedded_resource", description: "Answers a resource.", schema: NOTHING, call: embedded },
    Known { name: "test_multiple_content_types", description: "Answers several.", schema: NOTHING, call: several },
    Known { name: "test_error_handling", description: "Always fails.", schema: NOTHING, call: fails },
    Known { name: "json_schema_2020_12_tool", description: "Has a rich schema.", schema: RICH, call: simple },
];

fn answered(content: Vec<Content>) -> Result<Answer, Error> {
    Ok(Answer { content, structured: None, is_error: false })
}

fn simple(_: &Value) -> Result<Answer, Error> {
    Ok(Answer::text("This is a simple text response for testing."))
}

pub(crate) fn picture() -> Content {
    Content::Image(Media { data: PNG.to_vec(), mime_type: "image/png".to_owned() })
}

fn image(_: &Value) -> Result<Answer, Error> {
    answered(vec![picture()])
}

fn audio(_: &Value) -> Result<Answer, Error> {
    answered(vec![Content::Audio(Media { data: WAV.to_vec(), mime_type: "audio/wav".to_owned() })])
}

fn embedded(_: &Value) -> Result<Answer, Error> {
    let contents = Contents::text("test://embedded-resource", "This is an embedded resource content.");
    answered(vec![Content::Resource(contents)])
}

fn several(_: &Value) -> Result<Answer, Error> {
    let contents = Contents {
        uri: "test://mixed-content-resource".to_owned(),
        mime_type: Some("application/json".to_owned()),
        body: Body::Text(r#"{"test":"data","value":123}"#.to_owned()),
    };
    answered(vec![Content::Text("Multiple content types test:".to_owned()), picture(), Content::Resource(contents)])
}

fn fails(_: &Value) -> Result<Answer, Error> {
    Ok(Answer::error("This tool intentionally returns an error for testing"))
}
