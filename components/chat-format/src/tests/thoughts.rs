//! Thoughts.

use crate::{Ended, Event, Format, Parser};

use crate::tests::answers::{reads, reads_after, reads_with, tools};

#[test]
fn a_thought_before_the_answer() {
    for format in [Format::Hermes, Format::Generic, Format::QwenCoder, Format::DeepSeekR1] {
        reads(format, "<think>\nLet me\n\nsee.\n</think>\n\nHello\n", &["think: Let me\n\nsee.", "say: Hello\n"]);
        reads(format, "<think>\n\n</think>\n\n  Hello", &["say:   Hello"]);
        reads(format, "<think> </think> Hello", &["say: Hello"]);
        reads(format, "\n<think>a</think>b", &["think: a", "say: b"]);
        reads(format, "<think>never ends", &["think: never ends"]);
        reads(format, "Tags like <think> are text.", &["say: Tags like <think> are text."]);
        reads(format, "<think>a</think>Say </think> again", &["think: a", "say: Say </think> again"]);
    }
    reads(Format::Mistral, "Hm [THINK]a[/THINK]b", &["say: Hm", "think: a", "say: b"]);
}

#[test]
fn a_thought_that_the_prompt_began() {
    for tail in ["<|im_start|>assistant\n<think>\n", "<think>"] {
        reads_after(Format::Hermes, tail, "Hm.\n</think>\n\nYes", &["think: Hm.", "say: Yes"]);
        reads_after(
            Format::Hermes,
            tail,
            "Hm</think>\n<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>",
            &["think: Hm", "call now {}"],
        );
    }
    // Not begun, or ended already.
    reads_after(Format::Hermes, "assistant\n<think>\n\n</think>\n\n", "Yes", &["say: Yes"]);
    reads_after(Format::Hermes, "What is <think>?<|im_end|>\n", "A tag", &["say: A tag"]);
    reads_after(
        Format::Apriel,
        "\n<|begin_assistant|>\nHere are my reasoning steps:\n",
        "Hm\n[BEGIN FINAL RESPONSE]\nYes",
        &["think: Hm", "say: Yes"],
    );
    reads_after(
        Format::CommandR7b,
        "<|START_THINKING|>",
        "Hm<|END_THINKING|><|START_TEXT|>Yes<|END_TEXT|>",
        &["think: Hm", "say: Yes"],
    );
    reads_after(
        Format::KimiK3,
        "<|open|>think<|sep|>",
        "Hm<|close|>think<|sep|><|open|>response<|sep|>Yes",
        &["think: Hm", "say: Yes"],
    );
}

#[test]
fn an_end_without_a_beginning_is_left_out() {
    reads(Format::Hermes, "</think>\n\nYes", &["say: Yes"]);
    reads(Format::Hermes, "Hm.</think>\n\nYes", &["say: Hm.Yes"]);
}

#[test]
fn calls_in_thoughts_are_thoughts() {
    let text = "<think>I could <tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call></think>No.";
    reads(
        Format::Hermes,
        text,
        &["think: I could <tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>", "say: No."],
    );
}

#[test]
fn it_is_known_that_a_thought_comes() {
    let tail = "assistant\n<think>\n";
    let mut parser = Parser::new(Format::Hermes, &tools(), tail);
    assert!(parser.is_thinking());
    let mut events = Vec::new();
    parser.push("Hm</thi", &mut events);
    assert_eq!(events, [Event::Reasoning("Hm".to_owned())]);
    assert!(parser.is_thinking());
    parser.push("nk>", &mut events);
    assert!(!parser.is_thinking());
    assert_eq!(Format::Hermes.end_of_thought(tail), Some("</think>"));
    assert_eq!(Format::Hermes.end_of_thought("</think>\n"), None);
}

#[test]
fn without_tools_there_are_thoughts_and_no_calls() {
    let text = "<think>Hm</think><tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>";
    let expected = &["think: Hm", "say: <tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>"];
    reads_with(Format::Hermes, &[], "", text, Ended::Complete, expected);
    let text = "{\"name\": \"now\", \"parameters\": {}}";
    reads_with(Format::Llama3, &[], "", text, Ended::Complete, &[&format!("say: {text}")]);
}
