//! What a schema says about a value that is written as plain text.

use serde_json::{Map, Value};

use crate::json::quote;
use crate::tool::Tool;

/// The types that a value may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Types {
    string: Allowed,
    number: Allowed,
    boolean: Allowed,
    null: Allowed,
    array: Allowed,
    object: Allowed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Allowed {
    Yes,
    No,
}

/// How deep schemas are looked into.
const DEPTH: usize = 16;

/// How many parts of a schema are looked at: references can make few of them many.
const PARTS: usize = 1000;

impl Types {
    const NONE: Self = Self {
        string: Allowed::No,
        number: Allowed::No,
        boolean: Allowed::No,
        null: Allowed::No,
        array: Allowed::No,
        object: Allowed::No,
    };

    /// Strings, and nothing else.
    pub(crate) const STRING: Self = Self { string: Allowed::Yes, ..Self::NONE };

    /// Anything but a string.
    pub(crate) const NO_STRING: Self = Self {
        string: Allowed::No,
        number: Allowed::Yes,
        boolean: Allowed::Yes,
        null: Allowed::Yes,
        array: Allowed::Yes,
        object: Allowed::Yes,
    };

    /// Of an argument of one of some tools. None: nothing is known about it.
    pub(crate) fn of(tools: &[Tool], name: &str, argument: &str) -> Option<Self> {
        let root = tools.iter().find(|tool| tool.name == name)?.parameters.as_ref()?;
        let schema = property(root, root, argument, DEPTH, &mut { PARTS })?;
        let mut types = Self::NONE;
        types.add(root, schema, DEPTH, &mut { PARTS });
        (types != Self::NONE).then_some(types)
    }

    /// Of what is in a value of these types: what is under a key, or in an array.
    pub(crate) fn only_string(self) -> bool {
        self == Self::STRING
    }

    fn add(&mut self, root: &Map<String, Value>, schema: &Value, depth: usize, parts: &mut usize) {
        let (Some(schema), Some(depth), Some(left)) = (schema.as_object(), depth.checked_sub(1), parts.checked_sub(1))
        else {
            return;
        };
        *parts = left;
        match schema.get("type") {
            Some(Value::String(name)) => self.add_named(name),
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).for_each(|name| self.add_named(name)),
            _ => {
                if let Some(Value::Array(values)) = schema.get("enum") {
                    values.iter().for_each(|value| self.add_value(value));
                }
                if let Some(value) = schema.get("const") {
                    self.add_value(value);
                }
                for keyword in ["anyOf", "oneOf", "allOf"] {
                    if let Some(Value::Array(schemas)) = schema.get(keyword) {
                        schemas.iter().for_each(|schema| self.add(root, schema, depth, parts));
                    }
                }
                if let Some(schema) = schema.get("$ref").and_then(Value::as_str).and_then(|path| at(root, path)) {
                    self.add(root, schema, depth, parts);
                }
            }
        }
    }

    fn add_named(&mut self, name: &str) {
        match name {
            "string" => self.string = Allowed::Yes,
            "number" | "integer" => self.number = Allowed::Yes,
            "boolean" => self.boolean = Allowed::Yes,
            "null" => self.null = Allowed::Yes,
            "array" => self.array = Allowed::Yes,
            "object" => self.object = Allowed::Yes,
            _ => {}
        }
    }

    fn add_value(&mut self, value: &Value) {
        *self.slot(value) = Allowed::Yes;
    }

    fn slot(&mut self, value: &Value) -> &mut Allowed {
        match value {
            Value::String(_) => &mut self.string,
            Value::Number(_) => &mut self.number,
            Value::Bool(_) => &mut self.boolean,
            Value::Null => &mut self.null,
            Value::Array(_) => &mut self.array,
            Value::Object(_) => &mut self.object,
        }
    }

    fn allows(mut self, value: &Value) -> bool {
        *self.slot(value) == Allowed::Yes
    }
}

/// The schema of a property.
fn property<'a>(
    root: &'a Map<String, Value>,
    schema: &'a Map<String, Value>,
    name: &str,
    depth: usize,
    left: &mut usize,
) -> Option<&'a Value> {
    let depth = depth.checked_sub(1)?;
    *left = left.checked_sub(1)?;
    if let Some(found) = schema.get("properties").and_then(|properties| properties.get(name)) {
        return Some(found);
    }
    let parts = ["allOf", "anyOf", "oneOf"].iter().filter_map(|keyword| schema.get(*keyword)?.as_array()).flatten();
    let referred = schema.get("$ref").and_then(Value::as_str).and_then(|path| at(root, path));
    parts.chain(referred).filter_map(Value::as_object).find_map(|part| property(root, part, name, depth, left))
}

/// What a reference within a schema points to.
fn at<'a>(root: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let mut parts = path.strip_prefix("#/")?.split('/').map(|part| part.replace("~1", "/").replace("~0", "~"));
    let first = root.get(&parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(&part))
}

/// Plain text as JSON. Where nothing is known of its type, it is JSON if it reads
/// as such, and text otherwise.
pub(crate) fn typed(text: &str, types: Option<Types>) -> String {
    let trimmed = text.trim();
    let written = match trimmed {
        // As Python writes them, and so do some templates.
        "True" => "true",
        "False" => "false",
        "None" => "null",
        other => other,
    };
    let parsed = serde_json::from_str::<Value>(written).ok();
    let json = match (parsed, types) {
        (Some(value), Some(types)) if types.allows(&value) => Some(value),
        (Some(_), Some(types)) if types.string == Allowed::Yes => None,
        // Not of the right type; but a string would be wrong too.
        (Some(value), Some(_)) => Some(value),
        // `True` alone may well be a word.
        (Some(value), None) => (written == trimmed).then_some(value),
        (None, _) => None,
    };
    match json {
        // A quoted string is taken for its text only where no string is expected.
        Some(Value::String(_)) if types.is_none_or(|types| types.string == Allowed::Yes) => quote(text),
        Some(_) => written.to_owned(),
        None => quote(text),
    }
}

/// The names of a tool's arguments, in the order of its schema.
pub(crate) fn argument_names<'a>(tools: &'a [Tool], name: &str) -> Vec<&'a str> {
    let tool = tools.iter().find(|tool| tool.name == name);
    let properties = tool.and_then(|tool| tool.parameters.as_ref()?.get("properties")?.as_object());
    properties.into_iter().flatten().map(|(key, _)| key.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Strict;

    fn tools() -> Vec<Tool> {
        let parameters = json!({
            "$defs": {"colour": {"enum": ["red", 1]}, "loop": {"$ref": "#/$defs/loop"}},
            "properties": {
                "s": {"type": "string"}, "n": {"type": "integer"}, "b": {"type": "boolean"},
                "l": {"type": "array"}, "o": {"anyOf": [{"type": "object"}, {"type": "null"}]},
                "sn": {"type": ["string", "null"]}, "c": {"$ref": "#/$defs/colour"},
                "r": {"$ref": "#/$defs/loop"}, "x": {},
            },
        });
        let parameters = parameters.as_object().cloned();
        vec![Tool { name: "f".to_owned(), description: None, parameters, strict: Strict::Lenient }]
    }

    fn read(argument: &str, text: &str) -> Value {
        let json = typed(text, Types::of(&tools(), "f", argument));
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn the_schema_decides() {
        assert_eq!(read("s", "5"), json!("5"));
        assert_eq!(read("s", "true"), json!("true"));
        assert_eq!(read("n", " 5 "), json!(5));
        assert_eq!(read("n", "five"), json!("five"));
        assert_eq!(read("b", "True"), json!(true));
        assert_eq!(read("b", "false"), json!(false));
        assert_eq!(read("l", "[1, \"a\"]"), json!([1, "a"]));
        assert_eq!(read("o", "{\"a\": 1}"), json!({"a": 1}));
        assert_eq!(read("o", "None"), json!(null));
        assert_eq!(read("sn", "null"), json!(null));
        assert_eq!(read("sn", "12"), json!("12"));
        assert_eq!(read("c", "1"), json!(1));
        assert_eq!(read("c", "red"), json!("red"));
    }

    #[test]
    fn without_a_type_the_text_decides() {
        for argument in ["x", "r", "unknown"] {
            assert_eq!(read(argument, "12"), json!(12));
            assert_eq!(read(argument, "012"), json!("012"));
            assert_eq!(read(argument, "None"), json!("None"));
            assert_eq!(read(argument, "\"quoted\""), json!("\"quoted\""));
        }
    }
}
