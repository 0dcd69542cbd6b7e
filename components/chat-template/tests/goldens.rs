//! What Jinja2 itself makes of conversations, and who wrote what of it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test, its helpers included")]

use chat_template::{Content, Error, Message, Origin, Piece, Request, Template, Tool, ToolCall, render_at};
use serde_json::Value;

fn source(name: &str) -> String {
    let path = format!("{}/goldens/templates/{name}.jinja", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn all<T>(value: &Value, make: impl Fn(&Value) -> T) -> Vec<T> {
    value.as_array().map(|items| items.iter().map(make).collect()).unwrap_or_default()
}

fn request(golden: &Value) -> Request {
    Request {
        template: Template {
            source: source(golden["template"].as_str().unwrap()),
            bos_token: text(&golden["bos"]),
            eos_token: text(&golden["eos"]),
        },
        messages: all(&golden["messages"], |message| Message {
            role: text(&message["role"]).unwrap(),
            content: text(&message["content"]).map_or(Content::None, Content::Text),
            reasoning: None,
            name: None,
            tool_calls: all(&message["tool_calls"], |call| ToolCall {
                id: text(&call["id"]).unwrap(),
                name: text(&call["name"]).unwrap(),
                arguments: text(&call["arguments"]).unwrap(),
            }),
            tool_call_id: text(&message["tool_call_id"]),
        }),
        tools: all(&golden["tools"], |tool| Tool {
            name: text(&tool["name"]).unwrap(),
            description: text(&tool["description"]),
            parameters: text(&tool["parameters"]),
        }),
        add_generation_prompt: golden["generate"].as_bool().unwrap(),
        extra: text(&golden["extra"]),
    }
}

fn goldens() -> (u64, Vec<Value>) {
    let all: Value = serde_json::from_str(include_str!("../goldens/goldens.json")).unwrap();
    (all["now"].as_u64().unwrap(), all["goldens"].as_array().unwrap().clone())
}

fn joined(pieces: &[Piece]) -> String {
    pieces.iter().map(|piece| piece.text.as_str()).collect()
}

#[test]
fn prompts_are_those_of_jinja2_byte_for_byte() {
    let (now, goldens) = goldens();
    assert_eq!(goldens.len(), 144);
    for golden in goldens {
        let case = format!("{} / {} / {}", golden["template"], golden["conversation"], golden["extra"]);
        match (render_at(&request(&golden), now), text(&golden["prompt"])) {
            (Ok(pieces), Some(prompt)) => assert_eq!(joined(&pieces), prompt, "{case}"),
            (Err(Error::Refused(words)), None) => {
                assert_eq!(Some(words), text(&golden["refused"]), "{case}");
            }
            (other, expected) => panic!("{case}: {other:?} instead of {expected:?}"),
        }
    }
}

/// The control tokens of the templates' models.
const CONTROL: [&str; 14] = [
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|begin_of_text|>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<bos>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
];

/// How often control tokens can be told in the pieces that may name them.
fn controls(pieces: &[Piece]) -> usize {
    let template = pieces.iter().filter(|piece| piece.origin == Origin::Template);
    template.map(|piece| CONTROL.iter().map(|c| piece.text.matches(c).count()).sum::<usize>()).sum()
}

/// Replaces every text from outside by one without anything special in it.
fn tamed(mut golden: Value) -> Value {
    fn tame(value: &mut Value) {
        if let Value::String(text) = value {
            for control in CONTROL {
                *text = text.replace(control, "");
            }
        }
    }
    for message in golden["messages"].as_array_mut().unwrap() {
        tame(&mut message["content"]);
        if let Some(calls) = message.get_mut("tool_calls").and_then(Value::as_array_mut) {
            calls.iter_mut().for_each(|call| tame(&mut call["arguments"]));
        }
    }
    golden
}

#[test]
fn control_tokens_are_the_templates_alone() {
    let (now, goldens) = goldens();
    let mut hostile = 0;
    for golden in goldens {
        let Ok(pieces) = render_at(&request(&golden), now) else { continue };
        if golden["conversation"] == "bad role" {
            assert!(
                !pieces
                    .iter()
                    .any(|piece| { piece.origin == Origin::Template && piece.text.contains("<|im_start|><|im_end|>") })
            );
            continue;
        }
        let tame = render_at(&request(&tamed(golden.clone())), now).unwrap();
        assert_eq!(
            controls(&pieces),
            controls(&tame),
            "{} / {}: {pieces:#?}",
            golden["template"],
            golden["conversation"]
        );
        hostile += usize::from(joined(&pieces) != joined(&tame));
    }
    assert!(hostile > 30, "only {hostile} conversations had control tokens in them");
}

#[test]
fn the_pieces_of_a_question_are_whole() {
    let (now, goldens) = goldens();
    let pieces = render_at(&request(&goldens[0]), now).unwrap();
    let shown: Vec<_> = pieces.iter().map(|piece| (piece.origin, piece.text.as_str())).collect();
    assert_eq!(
        shown,
        [
            (
                Origin::Template,
                "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by \
                 Hugging Face<|im_end|>\n<|im_start|>user\n"
            ),
            (Origin::User, "What is the capital of France? Answer with one word."),
            (Origin::Template, "<|im_end|>\n<|im_start|>assistant\n"),
        ]
    );
}
