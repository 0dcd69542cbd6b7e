//! What a component says of its tools, checked once when it is loaded.

use std::collections::BTreeSet;

use serde_json::Value;

use super::bindings::nala::tools::types::Tool;

/// The tools that a component may have.
const MOST_TOOLS: usize = 128;
/// The longest name, as the Model Context Protocol has it.
const LONGEST_NAME: usize = 128;
/// The longest description or schema, in bytes: models and clients have to read it.
const LONGEST_TEXT: usize = 64 << 10;

/// Finds what is wrong with what a component says of its tools.
pub(super) fn check(tools: &[Tool]) -> Result<(), String> {
    if tools.is_empty() {
        return Err("it has no tools".into());
    }
    if tools.len() > MOST_TOOLS {
        return Err(format!("it has {} tools; at most {MOST_TOOLS} are allowed", tools.len()));
    }
    let mut names = BTreeSet::new();
    for tool in tools {
        let Tool { name, input_schema, output_schema, .. } = tool;
        check_name(name)?;
        if !names.insert(name) {
            return Err(format!("it has two tools named `{name}`"));
        }
        let of = |why: String| format!("the tool `{name}` {why}");
        let texts = [&tool.description, input_schema].into_iter().chain(&tool.title).chain(output_schema);
        if let Some(long) = texts.map(String::len).find(|length| *length > LONGEST_TEXT) {
            return Err(of(format!("has a text of {long} bytes; at most {LONGEST_TEXT} are allowed")));
        }
        check_schema(input_schema).map_err(|why| of(format!("has an input schema that {why}")))?;
        if let Some(schema) = output_schema {
            check_schema(schema).map_err(|why| of(format!("has an output schema that {why}")))?;
        }
    }
    Ok(())
}

pub(super) fn check_name(name: &str) -> Result<(), String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_allowed) {
        let name: String = name.chars().take(LONGEST_NAME).collect();
        return Err(format!(
            "{name:?} cannot be the name of a tool: write 1 to {LONGEST_NAME} of the letters and digits of ASCII, `_`, \
             `-` and `.`"
        ));
    }
    Ok(())
}

/// A schema of an object. Clients and grammars have no use for others.
fn check_schema(text: &str) -> Result<(), String> {
    let schema: Value = serde_json::from_str(text).map_err(|error| format!("is no JSON: {error}"))?;
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => Ok(()),
        _ => Err("does not say \"type\": \"object\"".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::bindings::nala::tools::types::Annotations;
    use super::*;

    fn tool(name: &str, input_schema: &str) -> Tool {
        Tool {
            name: name.into(),
            title: None,
            description: "d".into(),
            input_schema: input_schema.into(),
            output_schema: None,
            annotations: Annotations { read_only: None, destructive: None, idempotent: None, open_world: None },
        }
    }

    const OBJECT: &str = r#"{"type": "object"}"#;

    #[test]
    fn what_can_be_called_is_taken() {
        let longest = "n".repeat(128);
        let tools = [tool("a", OBJECT), tool("A-z_0.9", OBJECT), tool(&longest, OBJECT)];
        assert_eq!(check(&tools), Ok(()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let with = |change: fn(&mut Tool)| {
            let mut tool = tool("a", OBJECT);
            change(&mut tool);
            tool
        };
        for (tools, said) in [
            (vec![], "no tools"),
            (vec![tool("", OBJECT)], "name of a tool"),
            (vec![tool("a b", OBJECT)], "\"a b\""),
            (vec![tool("ä", OBJECT)], "ASCII"),
            (vec![tool(&"n".repeat(129), OBJECT)], "1 to 128"),
            (vec![tool("a\n", OBJECT)], "\"a\\n\""),
            (vec![tool("a", OBJECT), tool("a", OBJECT)], "two tools named `a`"),
            (vec![tool("a", "")], "`a` has an input schema that is no JSON"),
            (vec![tool("a", "[]")], "\"type\": \"object\""),
            (vec![tool("a", &"[".repeat(10_000))], "is no JSON"),
            (vec![with(|tool| tool.output_schema = Some("{}".into()))], "output schema"),
            (vec![with(|tool| tool.description = "d".repeat(70_000))], "70000 bytes"),
            (vec![with(|tool| tool.title = Some("d".repeat(70_000)))], "70000 bytes"),
            ((0..129).map(|n| tool(&format!("a{n}"), OBJECT)).collect(), "129 tools"),
        ] {
            let error = check(&tools).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
