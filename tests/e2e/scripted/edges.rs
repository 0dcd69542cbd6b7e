//! The edges.

use std::time::Duration;

use http_body_util::BodyExt;
use serde_json::json;

use super::bench::Scripted;
use super::{APIS, Counts, Wish, streams, weather};

const CALL: &str = "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>";

#[tokio::test(flavor = "multi_thread")]
async fn plain_text() {
    streams("plain", || Scripted::saying("Good day."), Wish::default()).await;
}

/// Each token of the model is a byte.
#[tokio::test(flavor = "multi_thread")]
async fn an_emoji_over_several_tokens() {
    streams("emoji", || Scripted::saying("a👩‍👧b"), Wish::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_text_over_several_tokens() {
    let wish = Wish { stop: Some("STOP"), ..Wish::default() };
    streams("stop", || Scripted::saying("one STOne STOP two"), wish).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_text_that_only_begins() {
    streams("stop-begun", || Scripted::saying("one STO"), Wish { stop: Some("STOP"), ..Wish::default() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_answer() {
    streams("empty", || Scripted::saying(""), Wish::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn thoughts_and_then_an_answer() {
    let wish = Wish { counts: Counts::Vary, ..Wish::default() };
    streams("thoughts", || Scripted::saying("<think>\nHm.\n</think>\n\nYes."), wish).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call() {
    streams("call", || Scripted::saying(CALL), Wish { tools: weather(), ..Wish::default() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_and_two_calls() {
    let text = format!("Let me see. {CALL}\n{}", CALL.replace("Paris", "Rome"));
    streams("calls", || Scripted::saying(&text), Wish { tools: weather(), ..Wish::default() }).await;
}

/// Where there are no tools, what looks like a call is text.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_nobody_offered() {
    streams("call-unasked", || Scripted::saying(CALL), Wish::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_cut_off() {
    let wish = Wish { tools: weather(), max_tokens: Some(57), ..Wish::default() };
    streams("call-cut", || Scripted::saying(CALL), wish).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_no_json() {
    let text = CALL.replace("\"Paris\"", "Paris");
    streams("call-broken", || Scripted::saying(&text), Wish { tools: weather(), ..Wish::default() }).await;
}

/// The model would rather say something else.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_has_to_be() {
    let tools = Some(json!({"name": "weather", "parameters": {
        "type": "object", "properties": {"city": {"enum": ["Paris"]}}, "required": ["city"]}}));
    let wish = Wish { tools, choice: Some("required"), ..Wish::default() };
    streams("call-required", || Scripted::saying("Good day."), wish).await;
}

/// The model calls by itself, and would have liked another city.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_strict() {
    let tools = Some(json!({"name": "weather", "strict": true, "parameters": {
        "type": "object", "properties": {"city": {"enum": ["Paris"]}}, "required": ["city"],
        "additionalProperties": false}}));
    let text = format!("Well: {}", CALL.replace("Paris", "Rome"));
    let wish = Wish { tools, counts: Counts::Vary, ..Wish::default() };
    streams("call-strict", || Scripted::saying(&text), wish).await;
}

/// In a thought, and where there is no room for a call, what looks like one is none.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_strict_tool_does_not_change() {
    let tools = || {
        Some(json!({"name": "weather", "strict": true, "parameters": {
        "type": "object", "properties": {}, "additionalProperties": false}}))
    };
    let thought = format!("<think>I may write {CALL} here.</think>Hello");
    let wish = Wish { tools: tools(), counts: Counts::Vary, ..Wish::default() };
    streams("strict-thought", || Scripted::saying(&thought), wish).await;
    let wish = Wish { tools: tools(), max_tokens: Some(13), counts: Counts::Vary, ..Wish::default() };
    streams("strict-cut", || Scripted::saying(CALL), wish).await;
}

/// The answer has to be of a form, and the model may call instead.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_a_form_or_a_call() {
    let wish = || Wish {
        tools: weather(),
        schema: Some(json!({"type": "object", "properties": {"sky": {"enum": ["grey"]}}, "required": ["sky"],
            "additionalProperties": false})),
        counts: Counts::Vary,
        ..Wish::default()
    };
    streams("form-answer", || Scripted::saying("{\"sky\":\"blue\"}"), wish()).await;
    streams("form-call", || Scripted::saying(CALL), wish()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_fails_in_the_middle() {
    streams("failure", || Scripted::failing("Good day.", 4), Wish::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_in_the_middle_of_a_call() {
    for api in &APIS {
        // It never ends by itself.
        let text = CALL.replace("Paris", &"Paris ".repeat(150));
        let scripted = Scripted::saying(&text);
        let wish = Wish { tools: weather(), max_tokens: Some(900), ..Wish::default() };
        let mut body = scripted.post(api.path, &(api.request)(&wish)).await.into_body();
        let mut read = String::new();
        while !read.contains("Paris ") {
            let frame = body.frame().await.unwrap().unwrap();
            read.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
        drop(body);
        tokio::time::timeout(Duration::from_secs(5), scripted.until_empty()).await.expect("it ends with its client");
    }
}
