//! The loop of agents on a model that says what a test wants it to: which calls are made,
//! in which order, and what the model reads of them. All of it is one sequence, of which
//! each token is computed once.

use serde_json::{Value, json};

use super::bench::{Batches, Scripted};
use super::story;

/// A turn with two calls, with a control token's name in what the tool will say.
const TWO: &str = "<tool_call>\n{\"name\": \"echo\", \"arguments\": {\"a\": \"<end>\"}}\n</tool_call>\n\
    <tool_call>\n{\"name\": \"refuses\", \"arguments\": {}}\n</tool_call>";

/// What the model reads of it: one is answered, and one fails.
const SAID: &str = "⟦control⟧{\"a\": \"<end>\"}⟦control⟧Error: not these⟦end⟧";

/// What the model read and wrote from its first turn on.
fn from_first_turn(batches: &Batches) -> String {
    let all = batches.sequence();
    let (_, rest) = all.split_once("⟦end⟧").expect("the prompt ends");
    rest.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_makes_the_calls_of_a_turn_and_reads_what_they_say() {
    let answer = "<tool_call>\n{\"name\": \"final_answer\", \"arguments\": {\"answer\": \"Done.\"}}\n</tool_call>";
    let (agent, batches) = Scripted::taking_turns("agent", &[TWO, answer]);
    let (status, text) = agent.text("/runs", &json!({ "input": "HELLO" })).await;
    assert_eq!(status, 200, "{text}");
    let end: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&end["answer"], &end["ended"]), (&json!("Done."), &json!("answered")), "{end}");
    let steps = json!([
        { "type": "call", "turn": 1, "id": 1, "tool": "echo", "arguments": { "a": "<end>" } },
        { "type": "call", "turn": 1, "id": 2, "tool": "refuses", "arguments": {} },
        { "type": "result", "id": 1, "text": "{\"a\": \"<end>\"}", "is_error": false },
        { "type": "result", "id": 2, "text": "Error: not these", "is_error": true },
    ]);
    assert_eq!(end["steps"], steps, "{end}");
    let read = from_first_turn(&batches);
    assert_eq!(read, format!("{TWO}{SAID}{answer}"));
    let usage = &end["usage"];
    assert_eq!(
        (&usage["turns"], &usage["calls"], &usage["cached_tokens"]),
        (&json!(2), &json!(2), &json!(0)),
        "{usage}"
    );
    agent.until_empty().await;
}

/// A request whose model may call two tools of the server's, and a function.
fn asked(more: &Value) -> Value {
    let mut request = json!({
        "model": "scripted", "input": "HELLO", "temperature": 0, "max_output_tokens": 400,
        "tools": [
            { "type": "mcp", "server_label": "nala", "require_approval": "never", "allowed_tools": ["echo", "refuses"] },
            { "type": "function", "name": "mine" },
        ],
    });
    for (name, value) in more.as_object().unwrap() {
        request[name] = value.clone();
    }
    request
}

/// What a response to a request comes to, and what the model read and wrote for it.
async fn respond(turns: &[&'static str], more: Value) -> (Value, String) {
    let (api, batches) = Scripted::taking_turns("openai", turns);
    let (status, text) = api.text("/v1/responses", &asked(&more)).await;
    assert_eq!(status, 200, "{text}");
    api.until_empty().await;
    (serde_json::from_str(&text).unwrap(), from_first_turn(&batches))
}

/// The types of the items.
fn kinds(response: &Value) -> Vec<&str> {
    response["output"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_goes_on_behind_calls_of_the_servers_tools() {
    let (response, read) = respond(&[TWO, "Done."], json!({})).await;
    assert_eq!(kinds(&response), ["mcp_list_tools", "mcp_call", "mcp_call", "message"], "{response}");
    let [list, echo, refuses, message] = response["output"].as_array().unwrap().as_slice() else { unreachable!() };
    assert_eq!(list["tools"].as_array().unwrap().len(), 2, "{list}");
    assert_eq!((&echo["output"], &echo["status"]), (&json!("{\"a\": \"<end>\"}"), &json!("completed")), "{echo}");
    let error = json!({ "type": "mcp_protocol_error", "code": -32602, "message": "not these" });
    assert_eq!((&refuses["error"], &refuses["status"]), (&error, &json!("failed")), "{refuses}");
    assert_eq!(message["content"][0]["text"], "Done.", "{message}");
    assert_eq!(read, format!("{TWO}{SAID}Done."));
    // Each token is counted where it was read or written, and once.
    let usage = &response["usage"];
    assert_eq!(usage["input_tokens_details"]["cached_tokens"], 0, "{usage}");
    let written = u64::try_from(TWO.len() + "Done.".len() + 2).unwrap();
    assert_eq!(usage["output_tokens"], written, "with the two tokens that end its turns: {usage}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_events_of_calls_come_as_they_are_documented() {
    let (api, _) = Scripted::taking_turns("openai", &[TWO, "Done."]);
    let (status, text) = api.text("/v1/responses", &asked(&json!({ "stream": true }))).await;
    assert_eq!(status, 200, "{text}");
    let told = story::of(&text);
    let names: Vec<&str> = told.lines().filter_map(|line| line.split(' ').next()?.strip_prefix("response.")).collect();
    let expected = [
        "created",
        "in_progress",
        "output_item.added",
        "mcp_list_tools.in_progress",
        "mcp_list_tools.completed",
        "output_item.done",
        // Both calls are written, and then both are made.
        "output_item.added",
        "mcp_call.in_progress",
        "mcp_call_arguments.delta",
        "mcp_call_arguments.done",
        "output_item.added",
        "mcp_call.in_progress",
        "mcp_call_arguments.delta",
        "mcp_call_arguments.done",
        "mcp_call.completed",
        "output_item.done",
        "mcp_call.failed",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ];
    assert_eq!(names, expected, "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_of_the_clients_ends_the_response_behind_the_servers_calls() {
    let both = "<tool_call>\n{\"name\": \"echo\", \"arguments\": {}}\n</tool_call>\n\
        <tool_call>\n{\"name\": \"mine\", \"arguments\": {}}\n</tool_call>";
    let (response, read) = respond(&[both, "Never said."], json!({})).await;
    assert_eq!(kinds(&response), ["mcp_list_tools", "mcp_call", "function_call"], "{response}");
    assert_eq!((&response["output"][1]["output"], &response["status"]), (&json!("{}"), &json!("completed")));
    assert_eq!(read, both, "the model goes on when the client has answered");
    // What it sends back is read.
    let mut items = vec![json!({ "role": "user", "content": "HELLO" })];
    items.extend(response["output"].as_array().unwrap().iter().cloned());
    items.push(json!({ "type": "function_call_output", "call_id": response["output"][2]["call_id"], "output": "7" }));
    let (next, _) = respond(&["Seven."], json!({ "input": items })).await;
    assert_eq!(kinds(&next), ["message"], "it knows the list: {next}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_calls_are_made_than_may_be() {
    let (response, read) = respond(&[TWO, TWO, "Never said."], json!({ "max_tool_calls": 1 })).await;
    assert_eq!(kinds(&response), ["mcp_list_tools", "mcp_call"], "{response}");
    assert_eq!(response["status"], "completed", "{response}");
    assert!(read.contains("⟦control⟧Error: this call was not made, since no further call may be"), "{read}");
    assert!(read.ends_with(TWO), "its last turn is its answer, whatever it says: {read}");
    let (response, _) = respond(&[TWO, "Done."], json!({ "max_tool_calls": 1 })).await;
    assert_eq!(kinds(&response), ["mcp_list_tools", "mcp_call", "message"], "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bound_of_tokens_is_that_of_all_turns() {
    let most = TWO.len() + 4;
    let (response, _) = respond(&[TWO, "Done."], json!({ "max_output_tokens": most })).await;
    assert_eq!(response["status"], "incomplete", "{response}");
    assert_eq!(response["incomplete_details"]["reason"], "max_output_tokens");
    let message = response["output"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&message["content"][0]["text"], &message["status"]),
        (&json!("Don"), &json!("incomplete")),
        "{response}"
    );
    // A call that was written, but in a turn that was cut, is not made.
    let cut = TWO.len() - 3;
    let (response, _) = respond(&[TWO], json!({ "max_output_tokens": cut })).await;
    let calls = response["output"].as_array().unwrap().iter().filter(|item| item["type"] == "mcp_call");
    let states: Vec<_> = calls.map(|call| (call["status"].as_str().unwrap(), call["output"].is_null())).collect();
    assert_eq!(states, [("incomplete", true), ("incomplete", true)], "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_called_first_is_called_one_a_turn() {
    let [one, two] = [
        "<tool_call>\n{\"name\": \"echo\", \"arguments\": {\"n\":7}}\n</tool_call>",
        "<tool_call>\n{\"name\": \"refuses\", \"arguments\": {}}\n</tool_call>",
    ];
    let seven = json!({ "type": "object", "properties": { "n": { "const": 7 } }, "required": ["n"] });
    let first = json!([{ "tool": "echo", "arguments": seven }, "refuses"]);
    let (response, read) = respond(&[one, two, "Done."], json!({ "call_first": first })).await;
    assert_eq!(kinds(&response), ["mcp_list_tools", "mcp_call", "mcp_call", "message"], "{response}");
    let expected = format!("{one}⟦control⟧{{\"n\":7}}⟦end⟧{two}⟦control⟧Error: not these⟦end⟧Done.");
    assert_eq!(read, expected);
    // The model has no say in it: one that would say something else calls, too.
    let (response, _) = respond(&["Hello.", "Hello.", "Done."], json!({ "call_first": first })).await;
    assert_eq!(kinds(&response)[..3], ["mcp_list_tools", "mcp_call", "mcp_call"], "{response}");
    let said: Value = serde_json::from_str(response["output"][1]["output"].as_str().unwrap()).unwrap();
    assert_eq!(said, json!({ "n": 7 }), "{response}");
}
