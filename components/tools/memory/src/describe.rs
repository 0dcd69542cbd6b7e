//! What a model is told of the tools.

use nala_sdk::tools::Tool;

pub(crate) const REMEMBER: &str = "remember";
pub(crate) const RECALL: &str = "recall";
pub(crate) const FORGET: &str = "forget";
pub(crate) const LIST: &str = "list_memories";
pub(crate) const NAMES: [&str; 4] = [REMEMBER, RECALL, FORGET, LIST];

const KEY: &str = r#"{
  "type": "object",
  "properties": {
    "key": {"type": "string", "minLength": 1, "maxLength": 256, "description": "The key, of at most 256 bytes"}
  },
  "required": ["key"],
  "additionalProperties": false
}"#;

const KEY_AND_VALUE: &str = r#"{
  "type": "object",
  "properties": {
    "key": {"type": "string", "minLength": 1, "maxLength": 256, "description": "The key, of at most 256 bytes, such as user/name"},
    "value": {"type": "string", "maxLength": 65536, "description": "The text, of at most 65536 bytes"}
  },
  "required": ["key", "value"],
  "additionalProperties": false
}"#;

const PREFIX: &str = r#"{
  "type": "object",
  "properties": {
    "prefix": {"type": "string", "maxLength": 256, "description": "What the keys begin with; all keys if it is left out"}
  },
  "additionalProperties": false
}"#;

const REMEMBERED: &str = r#"{
  "type": "object",
  "properties": {
    "key": {"type": "string"},
    "bytes": {"type": "integer", "description": "How long the text is"},
    "replaced": {"type": "boolean", "description": "Whether there was another text under the key, which is gone"}
  },
  "required": ["key", "bytes", "replaced"],
  "additionalProperties": false
}"#;

const RECALLED: &str = r#"{
  "type": "object",
  "properties": {
    "key": {"type": "string"},
    "found": {"type": "boolean"},
    "value": {"type": ["string", "null"], "description": "The text, null if there is none"}
  },
  "required": ["key", "found", "value"],
  "additionalProperties": false
}"#;

const FORGOTTEN: &str = r#"{
  "type": "object",
  "properties": {
    "key": {"type": "string"},
    "found": {"type": "boolean", "description": "Whether there was a text under the key"}
  },
  "required": ["key", "found"],
  "additionalProperties": false
}"#;

const LISTED: &str = r#"{
  "type": "object",
  "properties": {
    "keys": {"type": "array", "items": {"type": "string"}},
    "truncated": {"type": "boolean", "description": "Whether there are more; name a longer prefix to see them"}
  },
  "required": ["keys", "truncated"],
  "additionalProperties": false
}"#;

pub(crate) fn tools() -> Vec<Tool> {
    let remember = "Keeps a text under a key for later calls and conversations. Replaces what was kept under the key.";
    let recall = "Gives the text that was kept under a key.";
    let forget = "Removes what was kept under a key, for good.";
    let list = "Lists the keys under which texts are kept, up to 1000 of them.";

    let mut remember = Tool::new(REMEMBER, remember, KEY_AND_VALUE).titled("Remember").answering(REMEMBERED);
    let recall = Tool::new(RECALL, recall, KEY).titled("Recall").answering(RECALLED).read_only();
    let mut forget = Tool::new(FORGET, forget, KEY).titled("Forget").answering(FORGOTTEN);
    let list = Tool::new(LIST, list, PREFIX).titled("List memories").answering(LISTED).read_only();
    for tool in [&mut remember, &mut forget] {
        tool.annotations.read_only = Some(false);
        tool.annotations.idempotent = Some(true);
        // A text that is replaced is as lost as one that is removed.
        tool.annotations.destructive = Some(true);
    }
    let mut tools = vec![remember, recall, forget, list];
    for tool in &mut tools {
        tool.annotations.open_world = Some(false);
    }
    tools
}
