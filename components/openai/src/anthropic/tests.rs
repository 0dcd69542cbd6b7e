mod wrong;

use chat_format::{Choice, Parallel, Strict};
use nala_sdk::chat::{Content, Message};
use serde_json::json;

use super::*;
use crate::ask::Last;
use crate::parameters::DEFAULT_MIN_P;
use crate::parameters::output::{Output, Unknown};

fn with(more: &Value) -> Value {
    let mut body = json!({"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}]});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn asked(more: Value) -> Request {
    read(with(&more).to_string().as_bytes()).unwrap_or_else(|error| panic!("{more}: {error:?}"))
}

fn conversation(more: Value) -> Conversation {
    match asked(more).ask.prompt {
        Prompt::Conversation(conversation) => conversation,
        other => panic!("{other:?}"),
    }
}

fn messages(messages: Value) -> Vec<Message> {
    conversation(json!({"messages": messages})).messages
}

fn tool(more: Value) -> Value {
    let mut tool = json!({"name": "f", "input_schema": {"type": "object"}});
    tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"tools": [tool]})
}

fn text(text: &str) -> Content {
    Content::Text(text.to_owned())
}

#[test]
fn the_least_request_gets_the_defaults_of_chat_completions() {
    let Request { ask, shape } = asked(json!({}));
    assert_eq!((ask.model.as_str(), ask.param, ask.pace), ("m", "messages", Pace::AtOnce));
    assert_eq!(shape, Shape { delivery: Delivery::Whole, thoughts: Thoughts::Shown, stop: vec![] });
    let options = ask.options;
    assert_eq!((options.max_tokens, options.choices, &options.output), (Some(10), 1, &Output::Free));
    assert_eq!((options.sampler.temperature, options.sampler.top_p, options.sampler.min_p), (1.0, 1.0, DEFAULT_MIN_P));
    let Prompt::Conversation(said) = ask.prompt else { panic!() };
    assert_eq!(said.messages, [Message::user("Hi")]);
    assert_eq!((said.choice, said.parallel, said.last), (Choice::Auto, Parallel::Allowed, Last::Answered));
    assert!(said.tools.is_empty() && said.variables.is_empty());
}

#[test]
fn every_option_is_read() {
    let Request { ask, shape } = asked(json!({
        "max_tokens": 1e3 as u64, "stream": true, "stop_sequences": ["\n", "END"], "temperature": 0.5, "top_p": 0.9,
        "top_k": 40, "seed": 7, "thinking": {"type": "adaptive", "display": "omitted"},
        "metadata": {"user_id": "u"}, "service_tier": "auto", "cache_control": {"type": "ephemeral"},
        "mcp_servers": [], "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "container": null, "whatever": null, "speed": "standard", "diagnostics": {"previous_message_id": null},
    }));
    assert_eq!(ask.pace, Pace::ByToken);
    let stop = vec!["\n".to_owned(), "END".to_owned()];
    assert_eq!(shape, Shape { delivery: Delivery::Events, thoughts: Thoughts::Omitted, stop: stop.clone() });
    let options = ask.options;
    assert_eq!((options.max_tokens, options.stop), (Some(1000), stop));
    let sampler = options.sampler;
    assert_eq!((sampler.temperature, sampler.top_p, sampler.top_k, sampler.seed), (0.5, 0.9, 40, Some(7)));
    assert_eq!(sampler.min_p, 0.0, "the client makes a cut of its own");
    assert_eq!(asked(json!({"max_tokens": u64::MAX})).ask.options.max_tokens, Some(u32::MAX));
}

#[test]
fn thinking_and_effort_are_variables_of_the_template() {
    let variables = |more: Value| Value::Object(conversation(more).variables);
    let thinking = |thinking: Value| variables(json!({"thinking": thinking}));
    assert_eq!(
        thinking(json!({"type": "enabled", "budget_tokens": 50})),
        json!({"enable_thinking": true, "thinking": true})
    );
    assert_eq!(
        thinking(json!({"type": "adaptive", "display": "summarized"})),
        json!({"enable_thinking": true, "thinking": true})
    );
    assert_eq!(thinking(json!({"type": "disabled"})), json!({"enable_thinking": false, "thinking": false}));
    for (effort, variable) in [("low", "low"), ("high", "high"), ("max", "max")] {
        let config = json!({"output_config": {"effort": effort}});
        assert_eq!(variables(config), json!({"reasoning_effort": variable}));
    }
}

#[test]
fn structured_outputs_are_strict_by_both_names() {
    let format = json!({"type": "json_schema", "schema": {"type": "object", "properties": {"z": {}, "a": {}}}});
    let schema = r#"{"type":"object","properties":{"z":{},"a":{}}}"#.to_owned();
    for (more, param) in [
        (json!({"output_config": {"format": format}}), "output_config.format.schema"),
        (json!({"output_format": format}), "output_format.schema"),
    ] {
        let output = asked(more).ask.options.output;
        assert_eq!(output, Output::Json { schema: schema.clone(), unknown: Unknown::Refused, param });
    }
}

#[test]
fn tools_are_read_with_their_choice() {
    let said = conversation(json!({
        "tools": [
            {"name": "f", "description": "Does.", "input_schema": {"type": "object", "properties": {}}, "strict": true,
             "type": "custom", "cache_control": {"type": "ephemeral"}, "eager_input_streaming": true,
             "defer_loading": false, "allowed_callers": ["direct"]},
            {"name": "g-1_B", "input_schema": {}, "input_examples": [{"a": 1}, {}]},
        ],
        "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": true},
    }));
    let [f, g] = said.tools.as_slice() else { panic!("{:?}", said.tools) };
    assert_eq!((f.name.as_str(), f.description.as_deref(), f.strict), ("f", Some("Does."), Strict::Enforced));
    assert_eq!(f.parameters.as_ref().unwrap().len(), 2);
    assert_eq!((g.name.as_str(), g.strict), ("g-1_B", Strict::Lenient));
    assert_eq!(g.description.as_deref(), Some("Example: {\"a\":1}\nExample: {}"));
    assert_eq!((said.choice, said.parallel), (Choice::Named("f".to_owned()), Parallel::Single));
    for (kind, choice) in [("auto", Choice::Auto), ("any", Choice::Required), ("none", Choice::None)] {
        let mut more = tool(json!({}));
        more["tool_choice"] = json!({"type": kind});
        let said = conversation(more);
        assert_eq!((said.choice, said.parallel), (choice, Parallel::Allowed));
    }
}

#[test]
fn what_one_says_in_a_row_is_one_turn() {
    let said = messages(json!([
        {"role": "user", "content": "a"},
        {"role": "user", "content": [{"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}}]},
        {"role": "assistant", "content": [{"type": "text", "text": "c", "citations": null}, {"type": "text", "text": "d"}]},
        {"role": "assistant", "content": []},
        {"role": "assistant", "content": "e"},
        {"role": "user", "content": "f"},
    ]));
    let parts = Content::Parts(vec!["a".to_owned(), "b".to_owned()]);
    let contents: Vec<_> = said.iter().map(|message| (message.role.as_str(), &message.content)).collect();
    assert_eq!(contents, [("user", &parts), ("assistant", &text("cd\ne")), ("user", &text("f"))]);
}

#[test]
fn system_texts_come_first_and_stay_together() {
    let said = conversation(json!({
        "system": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        "messages": [{"role": "system", "content": "c"}, {"role": "user", "content": "d"}, {"role": "system", "content": "e"}],
    }))
    .messages;
    assert_eq!(said[0].content, Content::Parts(["a", "b", "c"].map(str::to_owned).to_vec()));
    let roles: Vec<_> = said.iter().map(|message| message.role.as_str()).collect();
    assert_eq!(roles, ["system", "user", "system"]);
    let one = conversation(json!({"system": "Be brief."})).messages;
    assert_eq!(one, [Message::system("Be brief."), Message::user("Hi")]);
}

#[test]
fn results_follow_their_calls_and_texts_follow_results() {
    let said = messages(json!([
        {"role": "user", "content": "What's the weather?"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "I must ", "signature": "s"},
            {"type": "redacted_thinking", "data": "x"},
            {"type": "thinking", "thinking": "look."},
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "1", "name": "weather", "input": {"z": "Paris", "a": 1}, "caller": {"type": "direct"}},
            {"type": "tool_use", "id": "2", "name": "now", "input": {}},
        ]},
        {"role": "user", "content": [{"type": "text", "text": "Here:"}, {"type": "tool_result", "tool_use_id": "2"}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "1", "content": [
                {"type": "text", "text": "Sunny"}, {"type": "text", "text": "25°C"}]},
            {"type": "text", "text": "And?"},
        ]},
    ]));
    let roles: Vec<_> = said.iter().map(|message| message.role.as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "user"]);
    assert_eq!(said[1].reasoning.as_deref(), Some("I must look."));
    assert_eq!(said[1].content, text("Let me see."));
    assert_eq!(said[1].tool_calls[0].arguments, r#"{"z":"Paris","a":1}"#);
    let result = |message: &Message| (message.tool_call_id.clone(), message.name.clone(), message.content.clone());
    assert_eq!(result(&said[2]), (Some("2".to_owned()), Some("now".to_owned()), text("")));
    assert_eq!(result(&said[3]), (Some("1".to_owned()), Some("weather".to_owned()), text("Sunny\n25°C")));
    assert_eq!(said[4].content, Content::Parts(vec!["Here:".to_owned(), "And?".to_owned()]));
}

#[test]
fn a_result_that_is_an_error_says_so() {
    for (content, said) in [
        (json!("City not found"), "Error: City not found"),
        (json!("error: no"), "error: no"),
        (json!(null), "Error"),
        (json!([{"type": "text", "text": "äöü"}]), "Error: äöü"),
    ] {
        let all = messages(json!([
            {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "1", "is_error": true, "content": content}]},
        ]));
        assert_eq!(all[0].content, Content::None);
        assert_eq!(all[1].content, text(said));
    }
}

#[test]
fn an_assistant_at_the_end_is_gone_on_from() {
    let said = |content: Value| {
        let messages = json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": content}]);
        conversation(json!({"messages": messages}))
    };
    let begun = said(json!([{"type": "thinking", "thinking": "t"}, {"type": "text", "text": "The answer is"}]));
    assert_eq!((begun.last, begun.messages.len()), (Last::Continued, 2));
    assert_eq!(begun.messages[1].content, text("The answer is"));
    for empty in [json!(""), json!([]), json!([{"type": "text", "text": ""}])] {
        let said = said(empty);
        assert_eq!((said.last, said.messages), (Last::Answered, vec![Message::user("Hi")]));
    }
}

#[test]
fn counting_takes_what_asking_takes_and_needs_no_max_tokens() {
    let count = |body: Value| read_count(body.to_string().as_bytes());
    let asked = count(json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "system": "S"})).unwrap();
    assert_eq!(asked.options.max_tokens, None);
    let Prompt::Conversation(said) = asked.prompt else { panic!() };
    assert_eq!(said.messages, [Message::system("S"), Message::user("Hi")]);
    let same = with(&json!({"stream": true, "thinking": {"type": "enabled", "budget_tokens": 1024}}));
    assert!(count(same).is_ok());
    for (more, param) in [(json!({"max_tokens": 0}), "max_tokens"), (json!({"messages": []}), "messages")] {
        assert_eq!(count(with(&more)).unwrap_err().param.as_deref(), Some(param));
    }
    assert_eq!(count(json!({"messages": []})).unwrap_err().param.as_deref(), Some("model"));
    assert_eq!(super::count(12), b"{\"input_tokens\":12}");
}

#[test]
fn a_client_is_known_by_its_headers() {
    use nala_sdk::http::{Method, Request};
    let plain = Request::new(Method::Get, "/v1/models");
    assert!(!is_spoken_by(&plain));
    assert!(is_spoken_by(&plain.with_header("Anthropic-Version", "2099-01-01")));
    assert!(is_spoken_by(&Request::new(Method::Get, "/").with_header("x-api-key", "k")));
}
