//! Requests with tools that are the server's.

use chat_format::Choice;
use nala_sdk::chat::Message;
use nala_sdk::tools::Tool;
use serde_json::{Value, json};

use super::tests::{asked, conversation, echo, refused};
use super::{Request, read_with};

fn mcp(more: Value) -> Value {
    let mut tool = json!({"type": "mcp", "server_label": "nala", "require_approval": "never"});
    tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    tool
}

fn names(request: &Request) -> Option<Vec<String>> {
    request.server.served(&request.ask).map(|served| served.names)
}

fn both() -> Vec<String> {
    vec!["calculate".to_owned(), "remember".to_owned()]
}

#[test]
fn the_tools_that_are_granted_are_shown_and_called_by_the_server() {
    let request = asked(json!({"tools": [mcp(json!({})), {"type": "function", "name": "mine"}], "max_tool_calls": 3}));
    let request = request.unwrap();
    assert_eq!(names(&request), Some(both()), "and not the client's");
    assert_eq!(request.server.served(&request.ask).unwrap().most_calls, Some(3));
    let shown: Vec<String> = conversation(json!({"tools": [mcp(json!({})), {"type": "function", "name": "mine"}]}))
        .tools
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    assert_eq!(shown, ["calculate", "remember", "mine"]);
    let listed: Vec<Value> = request.server.lists[0].tools.iter().map(super::Listed::json).collect();
    assert_eq!(listed[0]["annotations"], json!({"title": "Calculator", "readOnlyHint": true}));
    assert_eq!(listed[0]["input_schema"]["type"], "object");
    assert_eq!(listed[1]["annotations"], Value::Null);
    assert_eq!(names(&asked(json!({})).unwrap()), None, "who does not ask for them has none");
    let none = asked(json!({"tools": [mcp(json!({}))], "tool_choice": "none"})).unwrap();
    assert_eq!((names(&none), none.server.lists.len()), (None, 1), "they are listed, and not called");
}

#[test]
fn an_answer_repeats_what_was_asked_for() {
    let tool = mcp(json!({"allowed_tools": ["calculate"], "server_description": "d"}));
    let choice = json!({"type": "mcp", "server_label": "nala", "name": "calculate"});
    let echo = echo(json!({"tools": [tool], "tool_choice": choice, "max_tool_calls": 2}));
    assert_eq!(
        echo["tools"],
        json!([{
            "type": "mcp", "server_label": "nala", "server_description": "d", "allowed_tools": ["calculate"],
            "require_approval": "never",
        }])
    );
    assert_eq!((&echo["tool_choice"], &echo["max_tool_calls"]), (&choice, &json!(2)));
}

#[test]
fn filters_say_which_tools_are_meant() {
    for (allowed, left) in [
        (json!(["remember"]), vec!["remember"]),
        (json!({"tool_names": ["calculate", "remember"]}), vec!["calculate", "remember"]),
        (json!({"read_only": true}), vec!["calculate"]),
        (json!({"read_only": false}), vec!["remember"]),
        (json!({"read_only": false, "tool_names": ["remember"]}), vec!["remember"]),
        (json!({}), vec!["calculate", "remember"]),
    ] {
        let request = asked(json!({"tools": [mcp(json!({"allowed_tools": allowed}))]})).unwrap();
        assert_eq!(names(&request).unwrap(), left, "{allowed}");
    }
    // Two entries, each with tools of its own.
    let (one, mut two) = (mcp(json!({"allowed_tools": ["calculate"]})), mcp(json!({"allowed_tools": ["remember"]})));
    two["server_label"] = "notes".into();
    assert_eq!(names(&asked(json!({"tools": [one, two]})).unwrap()), Some(both()));
}

#[test]
fn a_choice_says_what_is_called_first() {
    let choice = |choice: Value| {
        let tools = json!([mcp(json!({})), {"type": "function", "name": "mine"}]);
        conversation(json!({"tools": tools, "tool_choice": choice})).choice
    };
    assert_eq!(choice(json!("required")), Choice::Required);
    assert_eq!(choice(json!({"type": "mcp", "server_label": "nala"})), Choice::Among(both()));
    let named = json!({"type": "mcp", "server_label": "nala", "name": "remember"});
    assert_eq!(choice(named), Choice::Named("remember".to_owned()));
    let allowed = |tools: Value| json!({"type": "allowed_tools", "mode": "auto", "tools": tools});
    let of = |tools: Value| {
        let tool_choice = allowed(tools);
        let tools = json!([mcp(json!({})), {"type": "function", "name": "mine"}]);
        names(&asked(json!({"tools": tools, "tool_choice": tool_choice})).unwrap())
    };
    assert_eq!(of(json!([{"type": "mcp", "server_label": "nala"}])), Some(both()));
    assert_eq!(of(json!([{"type": "function", "name": "mine"}])), None);

    let first = json!(["remember", {"tool": "calculate", "arguments": {"type": "object"}}]);
    let request = asked(json!({"tools": [mcp(json!({}))], "call_first": first})).unwrap();
    let called: Vec<String> =
        request.server.served(&request.ask).unwrap().first.iter().map(|first| first.tool().to_owned()).collect();
    assert_eq!(called, ["remember", "calculate"]);
}

#[test]
fn approval_is_asked_of_nobody() {
    for never in [json!("never"), json!({"never": {"tool_names": ["calculate", "remember"]}}), json!({"never": {}})] {
        assert!(asked(json!({"tools": [mcp(json!({"require_approval": never}))]})).is_ok(), "{never}");
    }
    let some = json!({"never": {"read_only": true}});
    let (_, message) = refused(json!({"tools": [mcp(json!({"require_approval": some}))]}));
    assert!(message.contains("approval of remember,") && message.contains("\"never\""), "{message}");
    let only = mcp(json!({"require_approval": some, "allowed_tools": ["calculate"]}));
    assert!(asked(json!({"tools": [only]})).is_ok());
    // It may speak of tools that are not allowed.
    let more = json!({"never": {"tool_names": ["calculate"]}, "always": {"tool_names": ["remember"]}});
    let only = mcp(json!({"require_approval": more, "allowed_tools": ["calculate"]}));
    assert!(asked(json!({"tools": [only]})).is_ok());
    for always in
        [Value::Null, json!("always"), json!({"always": {}}), json!({"never": {}, "always": {"read_only": true}})]
    {
        let (param, message) = refused(json!({"tools": [mcp(json!({"require_approval": always}))]}));
        assert_eq!(param.as_deref(), Some("tools[0].require_approval"), "{always}: {message}");
        assert!(message.contains("nobody is asked to approve"), "{always}: {message}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    let first = |first: Value| json!({"tools": [mcp(json!({}))], "call_first": first});
    let choose = |choice: Value| json!({"tools": [mcp(json!({}))], "tool_choice": choice});
    let function = |name: &str| json!({"type": "function", "name": name});
    for (more, param, said) in [
        (
            json!({"tools": [mcp(json!({"server_url": "https://a.example"}))]}),
            "tools[0].server_url",
            "calculate, remember",
        ),
        (json!({"tools": [mcp(json!({"headers": {"a": "b"}}))]}), "tools[0].headers", "in the manifest"),
        (json!({"tools": [mcp(json!({"defer_loading": true}))]}), "tools[0].defer_loading", "leave it out"),
        (json!({"tools": [mcp(json!({"srever": 1}))]}), "tools[0].srever", "unknown"),
        (json!({"tools": [mcp(json!({"server_label": null}))]}), "tools[0].server_label", "is required"),
        (json!({"tools": [mcp(json!({"server_label": "a b"}))]}), "tools[0].server_label", "letters"),
        (json!({"tools": [mcp(json!({"allowed_tools": ["x"]}))]}), "tools[0].allowed_tools[0]", "there are calculate"),
        (json!({"tools": [mcp(json!({"allowed_tools": [1]}))]}), "tools[0].allowed_tools[0]", "the name of a tool"),
        (json!({"tools": [mcp(json!({"allowed_tools": []}))]}), "tools[0].allowed_tools", "leaves no tool"),
        (json!({"tools": [mcp(json!({"allowed_tools": {"names": []}}))]}), "tools[0].allowed_tools.names", "unknown"),
        (json!({"tools": [mcp(json!({})), mcp(json!({}))]}), "tools", "the label \"nala\""),
        (json!({"tools": [function("remember"), mcp(json!({}))]}), "tools[1]", "leave it out of one of them"),
        (choose(json!({"type": "mcp", "server_label": "x"})), "tool_choice.server_label", "there are nala"),
        (choose(json!({"type": "mcp", "server_label": "nala", "name": "x"})), "tool_choice.name", "it has calculate"),
        (choose(json!({"type": "function", "name": "calculate"})), "tool_choice.name", "no function"),
        (first(json!("calculate")), "call_first", "a list"),
        (first(json!(["x"])), "call_first[0]", "there are calculate, remember"),
        (first(json!([{"tool": "calculate"}])), "call_first[0].arguments", "is required"),
        (first(json!(vec!["calculate"; 9])), "call_first", "at most 8"),
        (json!({"call_first": ["calculate"]}), "call_first[0]", "there are none"),
    ] {
        let (named, message) = refused(more.clone());
        assert_eq!(named.as_deref(), Some(param), "{more}: {message}");
        assert!(message.contains(said), "{more}: {message}");
    }
    let mut both = first(json!(["calculate"]));
    both["tool_choice"] = "required".into();
    assert_eq!(refused(both).0.as_deref(), Some("tool_choice"));
    let request = json!({"model": "m", "input": "Hi", "tools": [mcp(json!({}))]});
    let none: fn() -> Vec<Tool> = Vec::new;
    let error = read_with(request.to_string().as_bytes(), &none).unwrap_err();
    assert!(error.message.contains("no tools are granted to this component"), "{}", error.message);
}

#[test]
fn calls_come_back_with_what_was_said() {
    let call = |more: Value| {
        let mut call = json!({
            "type": "mcp_call", "id": "mcp_1", "server_label": "nala", "name": "calculate", "arguments": "{}",
            "approval_request_id": null, "status": "completed", "output": null, "error": null,
        });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call
    };
    let list = json!({"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "nala", "tools": [], "error": null});
    let said = |more: Value| -> Vec<Message> {
        conversation(json!({"input": [{"role": "user", "content": "a"}, list, call(more)]})).messages
    };
    let messages = said(json!({"output": "1591"}));
    assert_eq!((messages.len(), messages[1].tool_calls[0].name.as_str()), (3, "calculate"));
    assert_eq!((messages[2].role.as_str(), messages[2].content.joined()), ("tool", "1591".to_owned()));
    let content = json!([{"type": "text", "text": "no"}]);
    for (error, text) in [
        (json!({"type": "mcp_tool_execution_error", "content": content}), "Error: no"),
        (json!({"type": "mcp_protocol_error", "code": 1, "message": "broke"}), "Error: broke"),
        (json!("old"), "Error: old"),
        (Value::Null, "Error: this call was not made"),
    ] {
        assert_eq!(said(json!({"error": error}))[2].content.joined(), text, "{error}");
    }
    let known = asked(json!({"input": [list, {"role": "user", "content": "a"}]})).unwrap().server.known;
    assert_eq!(known, ["nala"]);
    let approval = json!({"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": true});
    let (param, message) = refused(json!({"input": [approval]}));
    assert!(param.as_deref() == Some("input[0].type") && message.contains("require_approval"), "{message}");
}
