//! Control tokens in everything that a client says, through every template.

use std::collections::BTreeMap;

use chat_template::{Content, Message, Origin, Piece, Request, Template, Tool, ToolCall, render_at};
use serde_json::Value;

use crate::golden::{folder, templates};

/// The tokens of the test models and those that the templates name.
struct Tokens {
    all: Vec<String>,
    /// All but those that differ in a number from others.
    distinct: Vec<String>,
}

fn tokens() -> Tokens {
    let file: Value = serde_json::from_slice(&std::fs::read(folder().join("tokens.json")).unwrap()).unwrap();
    let texts = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|token| token.as_str().unwrap().to_owned()).collect()
    };
    let mut distinct = texts(&file["templates"]);
    let mut numbered = Vec::new();
    for model in file["models"].as_object().unwrap().values() {
        distinct.extend(texts(&model["tokens"]));
        for (pattern, count) in model["numbered"].as_object().unwrap() {
            let first = 0..count.as_u64().unwrap();
            numbered.extend(first.map(|number| pattern.replace("{}", &number.to_string())));
        }
    }
    distinct
        .extend(["<|begin_of_text|>", "<s>", "</s>", "<unk>", "<|endoftext|>", "<|end_of_text|>"].map(str::to_owned));
    distinct.sort();
    distinct.dedup();
    let all = distinct.iter().chain(&numbered).cloned().collect();
    Tokens { all, distinct }
}

/// The places of a conversation that a client fills.
const FIELDS: [&str; 15] = [
    "system",
    "user",
    "part",
    "assistant",
    "reasoning",
    "name",
    "role",
    "call id",
    "call name",
    "argument key",
    "argument value",
    "result",
    "tool name",
    "tool description",
    "parameters",
];

/// A conversation that has something in every place, and `text` in some of them.
fn request(source: &str, text: &str, places: &[&str]) -> Request {
    let at = |place: &str| if places.contains(&place) { format!("a{text}b") } else { "ab".to_owned() };
    let object = |key: &str, value: &str| serde_json::json!({ key: value, "list": [value], "n": 1 }).to_string();
    let message = |role: &str, content: Content| Message {
        role: role.to_owned(),
        content,
        reasoning: None,
        name: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
    };
    let says = |role: &str, place: &str| message(role, Content::Text(at(place)));
    let id = if places.contains(&"call id") { at("call id") } else { "call00001".to_owned() };
    let calling = Message {
        reasoning: Some(at("reasoning")),
        tool_calls: vec![ToolCall {
            id: id.clone(),
            name: at("call name"),
            arguments: object(&at("argument key"), &at("argument value")),
        }],
        ..message("assistant", Content::None)
    };
    let result = Message { tool_call_id: Some(id), name: Some(at("call name")), ..says("tool", "result") };
    let mut messages = vec![
        says("system", "system"),
        Message { name: Some(at("name")), ..says("user", "user") },
        calling,
        result,
        Message { reasoning: Some(at("reasoning")), ..says("assistant", "assistant") },
        message("user", Content::Parts(vec![at("part"), at("part")])),
    ];
    if places.contains(&"role") {
        messages.push(says(&at("role"), "user"));
    }
    let parameters = serde_json::json!({
        "type": "object",
        "properties": { at("parameters"): { "type": "string", "description": at("parameters"), "enum": [at("parameters")] } },
        "required": [at("parameters")],
    });
    Request {
        template: Template {
            source: source.to_owned(),
            bos_token: Some("<s>".to_owned()),
            eos_token: Some("</s>".to_owned()),
        },
        messages,
        tools: vec![Tool {
            name: at("tool name"),
            description: Some(at("tool description")),
            parameters: Some(parameters.to_string()),
        }],
        add_generation_prompt: true,
        extra: Some(
            serde_json::json!({ "date_string": at("system"), "custom": { at("system"): at("user") } }).to_string(),
        ),
    }
}

/// How often each token is in the pieces that may name tokens.
fn named<'a>(pieces: &[Piece], tokens: &'a [String]) -> BTreeMap<&'a str, usize> {
    let own: Vec<&str> =
        pieces.iter().filter(|piece| piece.origin == Origin::Template).map(|piece| piece.text.as_str()).collect();
    let mut counts = BTreeMap::new();
    for token in tokens {
        let count = own.iter().map(|text| text.matches(token.as_str()).count()).sum::<usize>();
        if count > 0 {
            counts.insert(token.as_str(), count);
        }
    }
    counts
}

/// Tokens that are named more often than in a conversation without any.
fn gained(source: &str, text: &str, places: &[&str], tokens: &[String]) -> Option<Vec<String>> {
    let with = render_at(&request(source, text, places), 0).ok()?;
    let without = render_at(&request(source, "q", places), 0).ok()?;
    let before = named(&without, tokens);
    let more = |(token, count): (&str, usize)| {
        let base = before.get(token).copied().unwrap_or_default();
        (count > base).then(|| format!("{token} {count} times instead of {base}"))
    };
    Some(named(&with, tokens).into_iter().filter_map(more).collect())
}

#[test]
fn all_tokens_at_once_in_every_place_are_only_text() {
    let tokens = tokens();
    let joined = tokens.distinct.concat();
    let mut wrong = Vec::new();
    let mut rendered = 0;
    for (name, source) in templates("corpus").into_iter().chain(templates("templates")) {
        for place in FIELDS {
            if let Some(more) = gained(&source, &joined, &[place], &tokens.distinct) {
                rendered += 1;
                wrong.extend(more.iter().map(|more| format!("{name} / {place}: {more}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{} gained:\n{}", wrong.len(), wrong.join("\n"));
    assert!(rendered > 1000, "only {rendered} conversations were rendered");
}

#[test]
fn every_token_of_the_test_models_is_only_text() {
    let tokens = tokens();
    assert!(tokens.all.len() > 6_000, "{}", tokens.all.len());
    let joined = tokens.all.join(" ");
    for (name, source) in templates("corpus") {
        let more = gained(&source, &joined, &["user", "result"], &tokens.all).unwrap();
        assert!(more.is_empty(), "{name}: {more:?}");
    }
}

#[test]
fn each_token_alone_is_only_text() {
    let tokens = tokens();
    let mut wrong = Vec::new();
    for (name, source) in templates("corpus").into_iter().chain(templates("templates")) {
        for token in tokens.distinct.iter().filter(|token| source.contains(token.as_str())) {
            if let Some(more) = gained(&source, token, &FIELDS[..6], &tokens.distinct) {
                wrong.extend(more.iter().map(|more| format!("{name} / {token}: {more}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{} gained:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_template_keeps_its_own_tokens() {
    let goldens = crate::golden::Goldens::read();
    let tokens = tokens();
    let mut wrong = Vec::new();
    for (name, source) in templates("corpus").into_iter().chain(templates("templates")) {
        for conversation in ["question", "system", "system and tools", "call", "two calls", "parts", "thought"] {
            let Ok(pieces) = render_at(&goldens.request(&source, conversation), goldens.now) else { continue };
            let all: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
            let own = named(&pieces, &tokens.distinct);
            for token in tokens.distinct.iter().filter(|token| source.contains(token.as_str())) {
                let (is, should) =
                    (own.get(token.as_str()).copied().unwrap_or_default(), all.matches(token.as_str()).count());
                if is != should {
                    wrong.push(format!("{name} / {conversation}: {token} {is} times of {should}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} lost:\n{}", wrong.len(), wrong.join("\n"));
}
