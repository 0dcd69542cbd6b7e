//! Forced calls: whatever a grammar lets through is read as calls with valid
//! arguments.

use crate::{Choice, Ended, Event, Forced, Format, Impossible, Parallel, Strict, Tool, force};
use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::ApproximateTokEnv;
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};

use crate::tests::answers::{events, tools};
use crate::tests::hostile::Chance;

fn factory() -> ParserFactory {
    let mut factory = ParserFactory::new_simple(&ApproximateTokEnv::single_byte_env()).unwrap();
    factory.quiet();
    factory
}

/// A text that a grammar lets through, chosen by chance.
fn walk(factory: &ParserFactory, grammar: &str, chance: &mut Chance) -> String {
    let parser = factory.create_parser(TopLevelGrammar::from_lark(grammar.to_owned()));
    let mut matcher = Matcher::new(Ok(parser.unwrap_or_else(|error| panic!("{error}\n{grammar}"))));
    let mut text = Vec::new();
    loop {
        if matcher.is_stopped() {
            return String::from_utf8(text).unwrap();
        }
        let mask = matcher.compute_mask().unwrap_or_else(|error| panic!("{error}\n{grammar}"));
        let accepting = matcher.is_accepting().unwrap();
        let mut allowed: Vec<u32> = (0..256).filter(|&byte| mask.is_allowed(byte)).collect();
        if allowed.is_empty() || (accepting && chance.below(3) == 0) {
            assert!(accepting, "{}", String::from_utf8_lossy(&text));
            return String::from_utf8(text).unwrap();
        }
        // Nobody can read numbers with such exponents as chance makes.
        if text.last().is_some_and(u8::is_ascii_digit) {
            allowed.retain(|byte| !b"eE".contains(&(*byte as u8)));
        }
        // Strings and the like come to an end.
        let likely: Vec<u32> = allowed.iter().copied().filter(|byte| b"\"}],0".contains(&(*byte as u8))).collect();
        if !likely.is_empty() && (chance.below(3) == 0 || text.len() > 400) {
            allowed = likely;
        }
        let byte = allowed[chance.below(allowed.len())];
        matcher.consume_token(byte).unwrap();
        text.push(byte as u8);
        assert!(text.len() < 20_000, "{}", String::from_utf8_lossy(&text));
    }
}

/// What these tests need of JSON Schema.
fn valid(schema: &Value, value: &Value) -> bool {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.contains(value);
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => {
            let Some(object) = value.as_object() else { return false };
            let properties = schema.get("properties").and_then(Value::as_object);
            let required = schema.get("required").and_then(Value::as_array);
            let has = |name: &Value| object.contains_key(name.as_str().unwrap());
            required.is_none_or(|names| names.iter().all(has))
                && object.iter().all(|(key, value)| match properties {
                    Some(properties) => match properties.get(key) {
                        Some(schema) => valid(schema, value),
                        None => schema.get("additionalProperties") != Some(&json!(false)),
                    },
                    None => true,
                })
        }
        Some("array") => value.as_array().is_some_and(|items| items.iter().all(|item| valid(&schema["items"], item))),
        Some("string") => value.is_string(),
        Some("integer") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        _ => true,
    }
}

fn forced_tools() -> Vec<Tool> {
    let mut tools = tools();
    tools.push(Tool {
        name: "set-mode".to_owned(),
        description: None,
        parameters: json!({
            "properties": {"mode": {"enum": ["a\"b", "ü", "<x>"]}, "level": {"$ref": "#/$defs/level"}},
            "required": ["mode"],
            "$defs": {"level": {"type": "integer", "minimum": 1, "maximum": 3}},
            "x-unknown": 1,
        })
        .as_object()
        .cloned(),
        strict: Strict::Enforced,
    });
    tools
}

/// Calls by force, and what was read.
fn check(format: Format, tools: &[Tool], forced: &Forced, tail: &str, text: &str) -> Vec<String> {
    let context = format!("{format:?}: {} + {text}", forced.prefix);
    let tail = format!("{tail}{}", forced.prefix);
    let mut names = Vec::new();
    let mut arguments = String::new();
    let mut ended = 0;
    for event in events(format, tools, &tail, text.split_inclusive(|_: char| true), Ended::Complete) {
        match event {
            Event::CallStart { name, .. } => {
                names.push(name);
                arguments.clear();
            }
            Event::CallArguments { text, .. } => arguments.push_str(&text),
            Event::CallEnd { .. } => {
                ended += 1;
                let value: Value =
                    serde_json::from_str(&arguments).unwrap_or_else(|error| panic!("{error}: {context}"));
                let name = names.last().unwrap();
                let tool = tools.iter().find(|tool| tool.name == *name).unwrap_or_else(|| panic!("{name}: {context}"));
                let mut schema = Value::Object(tool.parameters.clone().unwrap_or_default());
                schema["type"] = json!("object");
                assert!(valid(&schema, &value), "{arguments} of {context}");
            }
            other => panic!("{other:?} of {context}"),
        }
    }
    assert!(!names.is_empty() && names.len() == ended, "{names:?} of {context}");
    names
}

#[test]
fn what_the_grammar_lets_through_is_a_valid_call() {
    let factory = factory();
    let tools = forced_tools();
    let mut chance = Chance(5);
    for &format in Format::ALL {
        let tails: &[&str] = match format {
            Format::Functionary32 => &["<|end_header_id|>\n\n>>>"],
            Format::Harmony | Format::MuseGlimmer => &["<|end|><|start|>assistant"],
            Format::GigaChat3 => &["assistant<|role_sep|>\n"],
            _ => &["", "<|im_start|>assistant\n", "<think>\n"],
        };
        let mut seen = std::collections::HashSet::new();
        for parallel in [Parallel::Allowed, Parallel::Single] {
            let forced = force(format, &tools, &Choice::Required, parallel).unwrap().unwrap();
            for round in 0..12 {
                let text = walk(&factory, &forced.grammar, &mut chance);
                let tail = tails[round % tails.len()];
                let tail = match format.end_of_thought(tail) {
                    Some(end) => format!("{tail}{end}\n\n"),
                    None => tail.to_owned(),
                };
                let names = check(format, &tools, &forced, &tail, &text);
                assert!(parallel == Parallel::Allowed || names.len() == 1, "{names:?}");
                seen.extend(names);
            }
        }
        assert!(seen.len() > 2, "{format:?} {seen:?}");
        for tool in &tools {
            let forced = force(format, &tools, &Choice::Named(tool.name.clone()), Parallel::Single).unwrap().unwrap();
            for _ in 0..2 {
                let text = walk(&factory, &forced.grammar, &mut chance);
                assert_eq!(check(format, &tools, &forced, tails[0], &text), [tool.name.as_str()]);
            }
        }
    }
}

#[test]
fn several_calls_where_the_notation_has_them_in_text() {
    let factory = factory();
    let mut chance = Chance(6);
    let tools = vec![tools().remove(2)];
    for (format, several) in [
        (Format::Hermes, true),
        (Format::Generic, true),
        (Format::MistralOld, true),
        (Format::Llama3, false),
        (Format::Mistral, false),
    ] {
        let forced = force(format, &tools, &Choice::Required, Parallel::Allowed).unwrap().unwrap();
        let most = (0..40).map(|_| {
            let text = walk(&factory, &forced.grammar, &mut chance);
            check(format, &tools, &forced, "", &text).len()
        });
        assert_eq!(most.max() > Some(1), several, "{format:?}");
    }
}

/// Whether a grammar lets a text through.
fn accepts(grammar: &str, text: &str) -> bool {
    let parser = factory().create_parser(TopLevelGrammar::from_lark(grammar.to_owned())).unwrap();
    let mut matcher = Matcher::new(Ok(parser));
    let tokens: Vec<u32> = text.bytes().map(u32::from).collect();
    matcher.try_consume_tokens(&tokens).unwrap() == tokens.len() && matcher.is_accepting().unwrap()
}

#[test]
fn hermes_as_it_is_told_in_words() {
    let tools = tools();
    let forced = force(Format::Generic, &tools, &Choice::Required, Parallel::Single).unwrap().unwrap();
    assert_eq!(forced.prefix, "<tool_call>\n");
    let call = |arguments: &str| format!("{{\"name\": \"weather\", \"arguments\": {arguments}}}\n</tool_call>");
    assert!(accepts(&forced.grammar, &call("{\"city\": \"Köln\", \"days\": 3}")));
    assert!(accepts(&forced.grammar, &call("{\n  \"city\": \"Köln\"\n}")));
    for wrong in
        ["{}", "{\"city\": 1}", "{\"city\": \"a\", \"more\": 1}", "{\"city\":    \"a\"}", "{\n\n\"city\": \"a\"}"]
    {
        assert!(!accepts(&forced.grammar, &call(wrong)), "{wrong}");
    }
    assert!(!accepts(&forced.grammar, "{\"name\": \"other\", \"arguments\": {}}\n</tool_call>"));
    assert!(accepts(&forced.grammar, "{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"));
    assert!(accepts(&forced.grammar, "{\"name\": \"any\", \"arguments\": {\"x\": [1]}}\n</tool_call>"));
}

#[test]
fn who_declares_no_parameters_is_given_no_arguments() {
    let tools = [Tool { name: "now".to_owned(), description: None, parameters: None, strict: Strict::Lenient }];
    let forced = force(Format::Generic, &tools, &Choice::Required, Parallel::Single).unwrap().unwrap();
    let call = |arguments: &str| format!("{{\"name\": \"now\", \"arguments\": {arguments}}}\n</tool_call>");
    assert!(accepts(&forced.grammar, &call("{}")));
    assert!(!accepts(&forced.grammar, &call("{\"x\": 1}")));
}

#[test]
fn the_name_is_in_the_prefix_where_it_is_known() {
    let tools = tools();
    let named = Choice::Named("now".to_owned());
    for (format, prefix) in [
        (Format::Mistral, "[TOOL_CALLS]now[ARGS]"),
        (Format::Harmony, "<|channel|>commentary to=functions.now <|constrain|>json<|message|>"),
        (Format::Functionary32, "now\n"),
    ] {
        let forced = force(format, &tools, &named, Parallel::Single).unwrap().unwrap();
        assert_eq!(forced.prefix, prefix);
        assert!(accepts(&forced.grammar, "{}"));
        assert!(!accepts(&forced.grammar, "{\"a\": 1}"));
    }
}

#[test]
fn strictness_decides_about_what_cannot_be_enforced() {
    let parameters = json!({"type": "object", "properties": {"a": {"type": "array", "uniqueItems": true}}});
    let tool =
        |strict| Tool { name: "f".to_owned(), description: None, parameters: parameters.as_object().cloned(), strict };
    for (strict, compiles) in [(Strict::Lenient, true), (Strict::Enforced, false)] {
        let forced = force(Format::Hermes, &[tool(strict)], &Choice::Required, Parallel::Single).unwrap().unwrap();
        let parser = factory().create_parser(TopLevelGrammar::from_lark(forced.grammar));
        assert_eq!(parser.is_ok(), compiles, "{strict:?}");
    }
}

#[test]
fn what_cannot_be_forced() {
    let tools = tools();
    let forced = |tools: &[Tool], choice: Choice| force(Format::Hermes, tools, &choice, Parallel::Single);
    assert_eq!(forced(&[], Choice::Required), Err(Impossible::NoTools));
    assert_eq!(forced(&[], Choice::Auto), Ok(None));
    assert_eq!(forced(&tools, Choice::None), Ok(None));
    let unknown = "nothing".to_owned();
    assert_eq!(forced(&tools, Choice::Named(unknown.clone())), Err(Impossible::UnknownTool(unknown)));
}
