//! Requests that are refused, and the place that the refusal names.

use serde_json::json;

use super::*;

fn refused(more: &Value) -> ApiError {
    let error = read(with(more).to_string().as_bytes()).expect_err(&more.to_string());
    assert_eq!(error.status, 400, "{more}");
    error
}

#[test]
fn each_wrong_value_is_named() {
    let format = |format: Value| json!({"output_config": {"format": format}});
    let schema = json!({"type": "json_schema", "schema": {}});
    for (more, param) in [
        (json!({"model": null}), "model"),
        (json!({"model": 1}), "model"),
        (json!({"max_tokens": null}), "max_tokens"),
        (json!({"max_tokens": 0}), "max_tokens"),
        (json!({"max_tokens": -1}), "max_tokens"),
        (json!({"max_tokens": 1.5}), "max_tokens"),
        (json!({"max_tokens": "10"}), "max_tokens"),
        (json!({"system": 1}), "system"),
        (json!({"system": [{"type": "image"}]}), "system[0].type"),
        (json!({"system": ["text"]}), "system[0]"),
        (json!({"stop_sequences": "END"}), "stop_sequences"),
        (json!({"stop_sequences": ["a", ""]}), "stop_sequences[1]"),
        (json!({"stop_sequences": [1]}), "stop_sequences[0]"),
        (json!({"stop_sequences": vec!["x"; 17]}), "stop_sequences"),
        (json!({"stream": "yes"}), "stream"),
        (json!({"temperature": 3}), "temperature"),
        (json!({"top_p": 1.1}), "top_p"),
        (json!({"top_k": -1}), "top_k"),
        (json!({"thinking": true}), "thinking"),
        (json!({"thinking": {}}), "thinking.type"),
        (json!({"thinking": {"type": "between_tools"}}), "thinking.type"),
        (json!({"thinking": {"type": "enabled"}}), "thinking.budget_tokens"),
        (json!({"thinking": {"type": "enabled", "budget_tokens": 0}}), "thinking.budget_tokens"),
        (json!({"thinking": {"type": "adaptive", "budget_tokens": 1}}), "thinking.budget_tokens"),
        (json!({"thinking": {"type": "adaptive", "display": "all"}}), "thinking.display"),
        (json!({"output_config": []}), "output_config"),
        (json!({"output_config": {"x": 1}}), "output_config.x"),
        (json!({"output_config": {"effort": "extreme"}}), "output_config.effort"),
        (format(json!("json")), "output_config.format"),
        (format(json!({"schema": {}})), "output_config.format.type"),
        (format(json!({"type": "text"})), "output_config.format.type"),
        (format(json!({"type": "json_schema"})), "output_config.format.schema"),
        (format(json!({"type": "json_schema", "schema": 1})), "output_config.format.schema"),
        (format(json!({"type": "json_schema", "schema": {}, "strict": true})), "output_config.format.strict"),
        (json!({"output_config": {"format": schema}, "output_format": schema}), "output_format"),
        (json!({"container": "c"}), "container"),
        (json!({"mcp_servers": [{"type": "url", "url": "x"}]}), "mcp_servers"),
        (json!({"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}), "context_management"),
        (json!({"speed": "fast"}), "speed"),
        (json!({"inference_geo": "us"}), "inference_geo"),
        (json!({"diagnostics": {"previous_message_id": "msg_1"}}), "diagnostics"),
        (json!({"tempreature": 1}), "tempreature"),
        (json!({"max_completion_tokens": 1}), "max_completion_tokens"),
    ] {
        let error = refused(&more);
        assert_eq!(error.param.as_deref(), Some(param), "{more}: {}", error.message);
        assert!(error.message.contains(param), "{more}: {}", error.message);
    }
}

#[test]
fn each_wrong_tool_is_named() {
    let choice = |choice: Value| json!({"tools": [{"name": "f", "input_schema": {}}], "tool_choice": choice});
    for (more, param) in [
        (json!({"tools": {}}), "tools"),
        (json!({"tools": ["f"]}), "tools[0]"),
        (tool(json!({"type": "web_search_20250305"})), "tools[0].type"),
        (tool(json!({"name": null})), "tools[0].name"),
        (tool(json!({"name": "a b"})), "tools[0].name"),
        (tool(json!({"name": "x".repeat(129)})), "tools[0].name"),
        (tool(json!({"description": 1})), "tools[0].description"),
        (tool(json!({"input_schema": null})), "tools[0].input_schema"),
        (tool(json!({"input_schema": []})), "tools[0].input_schema"),
        (tool(json!({"input_schema": {"type": "array"}})), "tools[0].input_schema.type"),
        (tool(json!({"strict": 1})), "tools[0].strict"),
        (tool(json!({"defer_loading": true})), "tools[0].defer_loading"),
        (tool(json!({"allowed_callers": ["code_execution_20260120"]})), "tools[0].allowed_callers"),
        (tool(json!({"input_examples": [1]})), "tools[0].input_examples"),
        (tool(json!({"parameters": {}})), "tools[0].parameters"),
        (json!({"tools": [{"name": "f", "input_schema": {}}, {"name": "f", "input_schema": {}}]}), "tools[1].name"),
        (choice(json!("auto")), "tool_choice"),
        (choice(json!({})), "tool_choice.type"),
        (choice(json!({"type": "required"})), "tool_choice.type"),
        (choice(json!({"type": "tool"})), "tool_choice.name"),
        (choice(json!({"type": "tool", "name": "g"})), "tool_choice.name"),
        (choice(json!({"type": "auto", "name": "f"})), "tool_choice.name"),
        (choice(json!({"type": "any", "disable_parallel_tool_use": 1})), "tool_choice.disable_parallel_tool_use"),
        (json!({"tool_choice": {"type": "any"}}), "tool_choice"),
    ] {
        let error = refused(&more);
        assert_eq!(error.param.as_deref(), Some(param), "{more}: {}", error.message);
        assert!(error.message.contains(param), "{more}: {}", error.message);
    }
}

#[test]
fn each_wrong_message_is_named() {
    let user = |block: Value| json!([{"role": "user", "content": [block]}]);
    let assistant = |block: Value| json!([{"role": "assistant", "content": [block]}, {"role": "user", "content": "x"}]);
    let calls = |result: Value| {
        let call = json!({"type": "tool_use", "id": "1", "name": "f", "input": {}});
        json!([{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}])
    };
    let call = json!({"type": "tool_use", "id": "1", "name": "f", "input": {}});
    let result = json!({"type": "tool_result", "tool_use_id": "1"});
    let twice = json!([{"role": "assistant", "content": [call]}, {"role": "user", "content": [result, result]}]);
    for (messages, param) in [
        (json!(null), "messages"),
        (json!("Hi"), "messages"),
        (json!([]), "messages"),
        (json!(["Hi"]), "messages[0]"),
        (json!([{"content": "x"}]), "messages[0].role"),
        (json!([{"role": "tool", "content": "x"}]), "messages[0].role"),
        (json!([{"role": "user"}]), "messages[0].content"),
        (json!([{"role": "user", "content": 1}]), "messages[0].content"),
        (json!([{"role": "user", "content": []}]), "messages[0].content"),
        (json!([{"role": "user", "content": "x", "name": "n"}]), "messages[0].name"),
        (user(json!("x")), "messages[0].content[0]"),
        (user(json!({"text": "x"})), "messages[0].content[0].type"),
        (user(json!({"type": "text"})), "messages[0].content[0].text"),
        (user(json!({"type": "text", "text": "x", "txet": 1})), "messages[0].content[0].txet"),
        (user(json!({"type": "image", "source": {}})), "messages[0].content[0].type"),
        (user(json!({"type": "document", "source": {}})), "messages[0].content[0].type"),
        (user(call.clone()), "messages[0].content[0].type"),
        (user(json!({"type": "thinking", "thinking": "x"})), "messages[0].content[0].type"),
        (user(json!({"type": "tool_result", "tool_use_id": "1"})), "messages[0].content[0].tool_use_id"),
        (assistant(json!({"type": "tool_result", "tool_use_id": "1"})), "messages[0].content[0].type"),
        (assistant(json!({"type": "server_tool_use"})), "messages[0].content[0].type"),
        (assistant(json!({"type": "thinking", "signature": "x"})), "messages[0].content[0].thinking"),
        (assistant(json!({"type": "thinking", "thinking": "x", "signature": 1})), "messages[0].content[0].signature"),
        (assistant(json!({"type": "tool_use", "name": "f", "input": {}})), "messages[0].content[0].id"),
        (assistant(json!({"type": "tool_use", "id": "1", "input": {}})), "messages[0].content[0].name"),
        (assistant(json!({"type": "tool_use", "id": "1", "name": "f"})), "messages[0].content[0].input"),
        (assistant(json!({"type": "tool_use", "id": "1", "name": "f", "input": "{}"})), "messages[0].content[0].input"),
        (json!([{"role": "assistant", "content": [call, call]}]), "messages[0].content[1].id"),
        (calls(json!({"type": "tool_result"})), "messages[1].content[0].tool_use_id"),
        (twice, "messages[1].content[1].tool_use_id"),
        (calls(json!({"type": "tool_result", "tool_use_id": "2"})), "messages[1].content[0].tool_use_id"),
        (calls(json!({"type": "tool_result", "tool_use_id": "1", "content": 1})), "messages[1].content[0].content"),
        (calls(json!({"type": "tool_result", "tool_use_id": "1", "is_error": 1})), "messages[1].content[0].is_error"),
        (
            calls(
                json!({"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": ""}, {"type": "image"}]}),
            ),
            "messages[1].content[0].content[1].type",
        ),
        (json!([{"role": "user", "content": "x"}, {"role": "assistant", "content": "The \n"}]), "messages[1]"),
        (json!([{"role": "user", "content": "x"}, {"role": "assistant", "content": [call]}]), "messages[1]"),
        (
            json!([{"role": "user", "content": "x"}, {"role": "assistant", "content": [{"type": "thinking", "thinking": "t"}]}]),
            "messages[1]",
        ),
        (json!([{"role": "assistant", "content": ""}]), "messages[0]"),
    ] {
        let error = refused(&json!({"messages": messages}));
        assert_eq!(error.param.as_deref(), Some(param), "{messages}: {}", error.message);
        assert!(error.message.contains(param), "{messages}: {}", error.message);
    }
}

#[test]
fn bodies_that_are_no_request_are_told_where() {
    assert!(read(b"{\"model\": \n oops}").unwrap_err().message.contains("line 2 column 2"));
    assert!(read(b"[]").unwrap_err().message.contains("must be a JSON object"));
    let error = read(b"{\"model\":\"a\",\"model\":\"b\"}").unwrap_err();
    assert_eq!(error.param.as_deref(), Some("model"));
}
