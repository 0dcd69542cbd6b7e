//! Whole requests, with all the fixing up that a template needs.

use crate::golden::{Goldens, Outcome, templates};
use chat_template::{Error, render_at};
use serde_json::Value;

/// Templates that refuse a role that no model knows.
const REFUSE_ROLES: [&str; 12] = [
    "Apertus-8B-Instruct",
    "Mistral-Small-3.2-24B-Instruct-2506",
    "Qwen3.5-4B",
    "Spark2.5",
    "fireworks-ai-llama-3-firefunction-v2",
    "gemma",
    "google-gemma-2-2b-it",
    "inst",
    "mistralai-Ministral-3-14B-Reasoning-2512",
    "mistralai-Mistral-Nemo-Instruct-2407",
    "openbmb-MiniCPM5-1B",
    "unsloth-mistral-Devstral-Small-2507",
];

/// Templates that know no tools: the tools are told of in words.
const NO_TOOLS: [&str; 11] = [
    "HuggingFaceTB-SmolLM3-3B",
    "chatml",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B",
    "deepseek-ai-DeepSeek-V3.1",
    "gemma",
    "google-gemma-2-2b-it",
    "inst",
    "llama-cpp-rwkv-world",
    "microsoft-Phi-3.5-mini-instruct",
    "smollm2",
];

/// Templates that know tools and leave out the calls of the history, or do not
/// show them well: these are written out.
const NO_CALLS: [&str; 3] = ["LFM2-8B-A1B", "LFM2.5-Instruct", "ibm-granite-granite-3.3-2B-Instruct"];

/// Conversations that most templates need nothing fixed for.
const PLAIN: [&str; 15] = [
    "question",
    "turns",
    "finished",
    "system",
    "switches",
    "thinking on",
    "tools",
    "system and tools",
    "call",
    "call and content",
    "call without content",
    "thought",
    "thought and call",
    "thought in content",
    "control tokens",
];

fn prompt(goldens: &Goldens, source: &str, conversation: &str) -> Result<String, Error> {
    let pieces = render_at(&goldens.request(source, conversation), goldens.now)?;
    Ok(pieces.iter().map(|piece| piece.text.as_str()).collect())
}

fn all() -> Vec<(String, String)> {
    templates("corpus").into_iter().chain(templates("templates")).collect()
}

#[test]
fn every_template_renders_every_conversation() {
    let goldens = Goldens::read();
    let mut wrong = Vec::new();
    for (name, source) in all() {
        for (conversation, variables) in &goldens.conversations {
            // This one shows the system message only where the user has the last word.
            if name == "mistralai-Mistral-Nemo-Instruct-2407" && conversation == "call" {
                continue;
            }
            let found = prompt(&goldens, &source, conversation);
            let missing = match &found {
                Ok(_) if conversation == "bad role" => Vec::new(),
                Ok(prompt) => missing(variables, prompt),
                Err(Error::Refused(_)) if conversation == "bad role" && REFUSE_ROLES.contains(&name.as_str()) => {
                    continue;
                }
                Err(error) => vec![format!("{error:?}")],
            };
            wrong.extend(missing.iter().map(|missing| format!("{name} / {conversation}: {missing}")));
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// What is in a conversation and not in its prompt.
fn missing(variables: &Value, prompt: &str) -> Vec<String> {
    let mut wanted: Vec<String> = Vec::new();
    let mut want = |text: &str| wanted.extend(text.lines().map(|line| line.trim().to_owned()));
    for message in variables["messages"].as_array().unwrap() {
        match &message["content"] {
            // Templates cut thoughts out of the history.
            Value::String(text) if text.contains("think>") => {}
            // And what is said beside a call.
            Value::String(_) if message.get("tool_calls").is_some() => {}
            // Some write what a tool gave as JSON text, escaped.
            Value::String(_) if message["role"] == "tool" => want("rain"),
            Value::String(text) => want(text),
            Value::Array(parts) => parts.iter().for_each(|part| want(part["text"].as_str().unwrap())),
            _ => {}
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let function = &call["function"];
            want(function["name"].as_str().unwrap());
            let arguments = function["arguments"].to_string();
            ["Köln", "Bonn", "2.5"].iter().filter(|value| arguments.contains(**value)).for_each(|value| want(value));
        }
    }
    for tool in variables["tools"].as_array().into_iter().flatten() {
        want(tool["function"]["name"].as_str().unwrap());
        want("exactness");
    }
    // Reka's template writes JSON in ASCII.
    let shown = |text: &String| prompt.contains(text.as_str()) || prompt.contains(&text.replace("Köln", "K\\u00f6ln"));
    wanted.into_iter().filter(|text| !shown(text)).collect()
}

#[test]
fn a_prompt_that_needs_no_fixing_is_that_of_transformers() {
    let goldens = Goldens::read();
    let mut wrong = Vec::new();
    let mut same = 0;
    for (name, source) in all() {
        for (conversation, expected) in goldens.of(&name) {
            let variables = &goldens.conversations[&conversation];
            let has_tools = !variables["tools"].is_null();
            let calls =
                variables["messages"].as_array().unwrap().iter().any(|message| message.get("tool_calls").is_some());
            let fixed = !PLAIN.contains(&conversation.as_str())
                || has_tools && NO_TOOLS.contains(&name.as_str())
                || calls && NO_CALLS.contains(&name.as_str())
                // The reference escapes it for HTML.
                || has_tools && name == "meetkai-functionary-medium-v3.1"
                // Here the client gives the variable that would tell of the tools.
                || name == "fireworks-ai-llama-3-firefunction-v2" && conversation == "system and tools";
            let (Outcome::Prompt(_) | Outcome::Locked(_)) = &expected else { continue };
            if fixed {
                continue;
            }
            let found = prompt(&goldens, &source, &conversation);
            match (&expected, &found) {
                (Outcome::Prompt(a) | Outcome::Locked(a), Ok(b)) if a == b => same += 1,
                _ => wrong.push(format!("{name} / {conversation}: {}", crate::golden::difference(&expected, &found))),
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(same > 850, "only {same} prompts were compared");
}

#[test]
fn models_whose_template_knows_no_tools_are_told_of_them_in_words() {
    let goldens = Goldens::read();
    for (name, source) in all() {
        let prompt = prompt(&goldens, &source, "call").unwrap();
        let in_words = prompt.contains("You may call functions to answer.");
        assert_eq!(in_words, NO_TOOLS.contains(&name.as_str()), "{name}: {prompt}");
        let written = prompt.contains("<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"place\": \"Köln <x>");
        assert!(written || !(in_words || NO_CALLS.contains(&name.as_str())), "{name}: {prompt}");
        let answered =
            prompt.contains("<tool_response>\n{\"rain\": true, \"text\": \"It <rains>\\n\"}\n</tool_response>");
        assert!(answered || !in_words, "{name}: {prompt}");
    }
}
