use chat_format::{Choice, Parallel, Strict};
use nala_sdk::chat::{Content, Message, ToolCall};
use serde_json::{Value, json};

use super::*;
use crate::ask::Pace;
use crate::parameters::DEFAULT_MIN_P;
use crate::parameters::output::{Output, Unknown};

/// A request for "Hi" with further parameters, or others instead.
pub(super) fn asked(more: Value) -> Result<Request, ApiError> {
    let mut request = json!({"model": "m", "input": "Hi"});
    for (name, value) in more.as_object().unwrap() {
        request[name] = value.clone();
    }
    read_with(request.to_string().as_bytes(), &granted)
}

/// The tools that the server has.
fn granted() -> Vec<Tool> {
    let schema = r#"{"type": "object", "properties": {"expression": {"type": "string"}}}"#;
    vec![
        Tool::new("calculate", "Calculates.", schema).read_only().titled("Calculator"),
        Tool::new("remember", "Notes something.", r#"{"type": "object"}"#),
    ]
}

pub(super) fn conversation(more: Value) -> Conversation {
    match asked(more).unwrap().ask.prompt {
        Prompt::Conversation(conversation) => conversation,
        other => panic!("{other:?}"),
    }
}

fn messages(input: Value) -> Vec<Message> {
    conversation(json!({"input": input})).messages
}

pub(super) fn echo(more: Value) -> Value {
    serde_json::from_str(&format!("{{{}}}", asked(more).unwrap().echo.fields())).unwrap()
}

pub(super) fn refused(more: Value) -> (Option<String>, String) {
    let error = asked(more.clone()).expect_err(&more.to_string());
    assert_eq!(error.status, 400, "{}", error.message);
    (error.param, error.message)
}

fn weather() -> Value {
    json!({"type": "function", "name": "weather", "parameters": {"type": "object"}})
}

fn called(id: &str) -> ToolCall {
    ToolCall { id: id.to_owned(), name: "weather".to_owned(), arguments: "{}".to_owned() }
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "weather", "arguments": "{}", "id": "fc_1", "status": "completed"})
}

#[test]
fn what_is_not_given_is_as_with_chat_completions() {
    let request = asked(json!({"temperature": null, "tools": null, "text": null, "nonsense": null})).unwrap();
    let chat = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
    let chat = crate::parameters::read(chat.to_string().as_bytes()).unwrap();
    let Request { ask: Ask { model, prompt, param, options, pace }, delivery, .. } = request;
    let (Prompt::Conversation(conversation), Prompt::Conversation(same)) = (prompt, chat.ask.prompt) else {
        panic!("no conversation");
    };
    assert_eq!((model.as_str(), param, pace, delivery), ("m", "input", Pace::AtOnce, Delivery::Whole));
    assert_eq!(conversation, same);
    assert_eq!((conversation.last, conversation.variables.len()), (Last::Answered, 0));
    assert_eq!(options, chat.ask.options);
    assert_eq!(options.sampler.min_p, DEFAULT_MIN_P);
    assert!(options.stop.is_empty() && options.bias.is_empty());
}

#[test]
fn each_parameter_reaches_what_it_is_for() {
    let request = asked(json!({
        "stream": true, "stream_options": {"include_obfuscation": false}, "max_output_tokens": 7, "temperature": 0.5,
        "top_p": 0.25, "presence_penalty": 1, "frequency_penalty": -1, "top_k": 3, "seed": 5, "stop": "x",
        "logit_bias": {"3": 4}, "ignore_eos": true, "top_logprobs": 2, "include": ["message.output_text.logprobs"],
        "text": {"format": {"type": "json_object"}, "verbosity": "medium"},
    }))
    .unwrap();
    assert_eq!((request.delivery, request.ask.pace), (Delivery::Events, Pace::ByToken));
    let options = request.ask.options;
    assert_eq!((options.max_tokens, options.top_logprobs, options.at_end), (Some(7), Some(2), AtEnd::GoOn));
    assert_eq!((options.sampler.temperature, options.sampler.top_p, options.sampler.min_p), (0.5, 0.25, 0.0));
    assert_eq!((options.sampler.presence_penalty, options.sampler.frequency_penalty), (1.0, -1.0));
    assert_eq!((options.sampler.top_k, options.sampler.seed), (3, Some(5)));
    assert_eq!((options.stop.as_slice(), options.bias.len()), (["x".to_owned()].as_slice(), 1));
    assert_eq!(
        options.output,
        Output::Json { schema: r#"{"type":"object"}"#.to_owned(), unknown: Unknown::Ignored, param: "text.format" }
    );
}

#[test]
fn log_probabilities_are_reported_if_they_or_alternatives_are_asked_for() {
    let top = |more| asked(more).unwrap().ask.options.top_logprobs;
    assert_eq!(top(json!({"include": ["message.output_text.logprobs"]})), Some(0));
    assert_eq!(top(json!({"top_logprobs": 3})), Some(3));
    assert_eq!(top(json!({"top_logprobs": 0, "include": ["reasoning.encrypted_content"]})), None);
}

#[test]
fn a_schema_is_held_to_as_strictly_as_asked() {
    let format = |strict: Value| {
        let format = json!({"type": "json_schema", "name": "n", "schema": {"type": "string"}, "strict": strict});
        asked(json!({"text": {"format": format}})).unwrap().ask.options.output
    };
    for (strict, unknown) in
        [(json!(true), Unknown::Refused), (json!(false), Unknown::Ignored), (json!(null), Unknown::Ignored)]
    {
        let schema = r#"{"type":"string"}"#.to_owned();
        assert_eq!(format(strict), Output::Json { schema, unknown, param: "text.format.schema" });
    }
}

#[test]
fn effort_is_told_to_the_template() {
    let variables = |effort| conversation(json!({"reasoning": {"effort": effort}})).variables;
    assert_eq!(Value::from(variables("none")), json!({"enable_thinking": false, "thinking": false}));
    assert_eq!(
        Value::from(variables("low")),
        json!({"reasoning_effort": "low", "enable_thinking": true, "thinking": true})
    );
}

#[test]
fn tools_are_shown_and_chosen() {
    let strict = json!({"type": "function", "name": "time", "description": "d", "strict": true});
    let with = |choice: Value| {
        conversation(json!({"tools": [weather(), strict], "tool_choice": choice, "parallel_tool_calls": false}))
    };
    let all = with(json!(null));
    assert_eq!((all.choice, all.parallel), (Choice::Auto, Parallel::Single));
    let [first, second] = all.tools.as_slice() else { panic!("{:?}", all.tools) };
    assert_eq!((first.name.as_str(), first.strict, first.parameters.is_some()), ("weather", Strict::Lenient, true));
    assert_eq!(
        (second.description.as_deref(), second.strict, &second.parameters),
        (Some("d"), Strict::Enforced, &None)
    );
    for (choice, read) in [
        (json!("none"), Choice::None),
        (json!("required"), Choice::Required),
        (json!({"type": "function", "name": "time"}), Choice::Named("time".to_owned())),
    ] {
        let conversation = with(choice);
        assert_eq!((conversation.choice, conversation.tools.len()), (read, 2));
    }
    let allowed =
        with(json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "time"}]}));
    assert_eq!((allowed.choice, allowed.tools.len(), allowed.tools[0].name.as_str()), (Choice::Required, 1, "time"));
}

#[test]
fn all_shapes_of_messages_are_read() {
    let read = messages(json!([
        {"role": "developer", "content": "Be brief"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
        {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "phase": null, "content": [
            {"type": "output_text", "text": "c", "annotations": [], "logprobs": []}]},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
        {"role": "user", "content": []},
    ]));
    assert_eq!(
        read,
        [
            Message::system("Be brief"),
            Message { content: Content::Parts(vec!["a".to_owned(), "b".to_owned()]), ..Message::user("") },
            Message::assistant("c"),
            Message::assistant("no"),
            Message::user(""),
        ]
    );
}

#[test]
fn the_items_of_one_turn_become_one_message() {
    let read = messages(json!([
        {"role": "user", "content": "Hi"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": null,
         "content": [{"type": "reasoning_text", "text": "Hm."}, {"type": "reasoning_text", "text": "Ah."}]},
        {"role": "assistant", "content": "I look."},
        call("1"),
        call("2"),
        {"type": "function_call_output", "call_id": "2", "output": "rain"},
        {"type": "function_call_output", "call_id": "1", "output": [{"type": "input_text", "text": "sun"}]},
        {"type": "reasoning", "id": "rs_2", "summary": [{"type": "summary_text", "text": "Well."}]},
        call("3"),
    ]));
    let tool = |id: &str, text: &str| Message {
        name: Some("weather".to_owned()),
        tool_call_id: Some(id.to_owned()),
        ..Message::new("tool", text)
    };
    let turn = Message {
        reasoning: Some("Hm.\n\nAh.".to_owned()),
        tool_calls: vec![called("1"), called("2")],
        ..Message::assistant("I look.")
    };
    let next = Message {
        content: Content::None,
        reasoning: Some("Well.".to_owned()),
        tool_calls: vec![called("3")],
        ..Message::assistant("")
    };
    assert_eq!(read, [Message::user("Hi"), turn, tool("2", "rain"), tool("1", "sun"), next]);
}

#[test]
fn turns_of_the_assistant_are_kept_apart_where_they_are_two() {
    let thought = json!({"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]});
    let said = |text: &str| json!({"role": "assistant", "content": text});
    assert_eq!(messages(json!([said("a"), said("b")])), [Message::assistant("a"), Message::assistant("b")]);
    let thoughtful = |text: &str| Message { reasoning: Some("t".to_owned()), ..Message::assistant(text) };
    assert_eq!(messages(json!([said("a"), thought, said("b")])), [Message::assistant("a"), thoughtful("b")]);
    assert_eq!(messages(json!([thought])), [thoughtful("")]);
    // What answers a call must follow the turn that made it.
    let around = messages(json!([said("a"), call("1"), said("b")]));
    assert_eq!(around.len(), 1);
    assert_eq!(around[0].content, Content::Parts(vec!["a".to_owned(), "b".to_owned()]));
}

#[test]
fn instructions_stand_in_front_of_everything() {
    let with = |input: Value| conversation(json!({"instructions": "Obey.", "input": input})).messages;
    assert_eq!(with(json!("Hi")), [Message::system("Obey."), Message::user("Hi")]);
    let own = json!([{"role": "developer", "content": "Be brief."}, {"role": "system", "content": "Be nice."},
        {"role": "user", "content": "Hi"}, {"role": "system", "content": "Now!"}]);
    let one = Message::system("Obey.\n\nBe brief.\n\nBe nice.");
    assert_eq!(with(own), [one, Message::user("Hi"), Message::system("Now!")]);
}

#[test]
fn the_answer_repeats_what_was_asked_for_and_says_what_was_done() {
    let given = echo(json!({
        "temperature": 0.8, "metadata": {"a": "b"}, "store": true, "service_tier": "flex", "user": "u",
        "safety_identifier": "s", "prompt_cache_key": "k", "max_tool_calls": 2, "instructions": "Obey.",
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "string"}}},
        "tools": [weather()], "tool_choice": {"type": "function", "name": "weather"}, "background": false,
        "prompt_cache_retention": "24h", "prompt_cache_options": {}, "truncation": "disabled", "context_management": [],
    }));
    for (name, value) in [
        ("temperature", json!(0.8)),
        ("metadata", json!({"a": "b"})),
        ("store", json!(false)),
        ("service_tier", json!("default")),
        ("user", json!("u")),
        ("safety_identifier", json!("s")),
        ("prompt_cache_key", json!("k")),
        ("max_tool_calls", json!(2)),
        ("instructions", json!("Obey.")),
        ("tool_choice", json!({"type": "function", "name": "weather"})),
        (
            "tools",
            json!([{"type": "function", "name": "weather", "description": null, "parameters": {"type": "object"}, "strict": null}]),
        ),
        (
            "text",
            json!({"format": {"type": "json_schema", "name": "n", "description": null, "schema": {"type": "string"}, "strict": false},
                   "verbosity": "medium"}),
        ),
    ] {
        assert_eq!(given[name], value, "{name}");
    }
    let fields = |echo: &Value| echo.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(fields(&given), fields(&echo(json!({}))), "all fields are always there");
}

#[test]
fn every_answer_can_be_sent_back() {
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/responses/snapshots")).unwrap();
    let mut read = 0;
    for path in files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "json"))
    {
        let answer: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let mut input = answer["output"].as_array().unwrap().clone();
        let calls: Vec<Value> = input.iter().filter_map(|item| item.get("call_id").cloned()).collect();
        let outputs = calls.iter().map(|id| json!({"type": "function_call_output", "call_id": id, "output": "done"}));
        input.extend(outputs);
        input.insert(0, json!({"role": "user", "content": "Hi"}));
        let messages = messages(Value::from(input));
        assert_eq!(messages[1].role, "assistant", "{}", path.display());
        read += 1;
        let served = answer["output"].as_array().unwrap().iter().filter(|item| item["type"] == "mcp_call").count();
        if served > 0 {
            // Each has its answer behind it already.
            let made: usize = messages.iter().map(|message| message.tool_calls.len()).sum();
            let answered = messages.iter().filter(|message| message.role == "tool").count();
            assert_eq!((made, answered), (served, served), "{}", path.display());
            continue;
        }
        assert_eq!(messages[1].tool_calls.len(), calls.len(), "{}", path.display());
        assert!(messages[2..].iter().all(|message| message.role == "tool"), "{}", path.display());
    }
    assert!(read > 5, "{read} answers");
}

#[test]
fn wrong_parameters_are_named() {
    for (more, param) in [
        (json!({"model": 1}), "model"),
        (json!({"temperature": 3}), "temperature"),
        (json!({"top_p": "x"}), "top_p"),
        (json!({"max_output_tokens": 0}), "max_output_tokens"),
        (json!({"max_tool_calls": 0}), "max_tool_calls"),
        (json!({"top_logprobs": 21}), "top_logprobs"),
        (json!({"include": "x"}), "include"),
        (json!({"include": ["reasoning.encrypted_content", "everything"]}), "include[1]"),
        (json!({"instructions": ["x"]}), "instructions"),
        (json!({"stream": "yes"}), "stream"),
        (json!({"stream_options": {}}), "stream_options"),
        (json!({"stream": true, "stream_options": {"include_usage": true}}), "stream_options.include_usage"),
        (json!({"stream": true, "stream_options": {"include_obfuscation": 1}}), "stream_options.include_obfuscation"),
        (json!({"store": 1}), "store"),
        (json!({"background": true}), "background"),
        (json!({"truncation": "auto"}), "truncation"),
        (json!({"truncation": "some"}), "truncation"),
        (json!({"metadata": []}), "metadata"),
        (json!({"metadata": {"a": 1}}), "metadata.a"),
        (json!({"metadata": {"a": "x".repeat(513)}}), "metadata.a"),
        (json!({"metadata": {"x".repeat(65): "a"}}), "metadata"),
        (json!({"user": 1}), "user"),
        (json!({"safety_identifier": 1}), "safety_identifier"),
        (json!({"prompt_cache_key": 1}), "prompt_cache_key"),
        (json!({"service_tier": "first class"}), "service_tier"),
        (json!({"reasoning": "low"}), "reasoning"),
        (json!({"reasoning": {"effort": "some"}}), "reasoning.effort"),
        (json!({"reasoning": {"summary": "concise"}}), "reasoning.summary"),
        (json!({"reasoning": {"generate_summary": 1}}), "reasoning.generate_summary"),
        (json!({"reasoning": {"context": "all_turns"}}), "reasoning.context"),
        (json!({"reasoning": {"mode": "pro"}}), "reasoning.mode"),
        (json!({"reasoning": {"budget": 1}}), "reasoning.budget"),
        (json!({"text": "json"}), "text"),
        (json!({"text": {"verbosity": "low"}}), "text.verbosity"),
        (json!({"text": {"verbosity": "huge"}}), "text.verbosity"),
        (json!({"text": {"style": 1}}), "text.style"),
        (json!({"text": {"format": {}}}), "text.format.type"),
        (json!({"text": {"format": {"type": "xml"}}}), "text.format.type"),
        (json!({"text": {"format": {"type": "json_object", "schema": {}}}}), "text.format.schema"),
        (json!({"text": {"format": {"type": "json_schema", "json_schema": {}}}}), "text.format.json_schema"),
        (json!({"text": {"format": {"type": "json_schema", "schema": {}}}}), "text.format.name"),
        (json!({"text": {"format": {"type": "json_schema", "name": ""}}}), "text.format.name"),
        (json!({"text": {"format": {"type": "json_schema", "name": "n"}}}), "text.format.schema"),
        (json!({"text": {"format": {"type": "json_schema", "name": "n", "schema": 1}}}), "text.format.schema"),
        (
            json!({"text": {"format": {"type": "json_schema", "name": "n", "schema": {}, "strict": 1}}}),
            "text.format.strict",
        ),
        (json!({"stop": [""]}), "stop"),
        (json!({"seed": -1.5}), "seed"),
        (json!({"prompt": {"id": "pmpt_1"}}), "prompt"),
        (json!({"context_management": [{"type": "compaction"}]}), "context_management"),
        (json!({"moderation": {"model": "m"}}), "moderation"),
        (json!({"messages": []}), "messages"),
        (json!({"n": 2}), "n"),
    ] {
        let (named, message) = refused(more.clone());
        assert_eq!(named.as_deref(), Some(param), "{more}: {message}");
        assert!(message.contains(param.split('.').next_back().unwrap()), "{more}: {message}");
    }
    assert_eq!(read(b"{\"input\": \"x\"}").unwrap_err().param.as_deref(), Some("model"));
    assert_eq!(read(b"{\"model\": \"x\"}").unwrap_err().param.as_deref(), Some("input"));
    let seventeen: Map<String, Value> = (0..17).map(|number| (number.to_string(), json!(""))).collect();
    assert!(refused(json!({"metadata": seventeen})).1.contains("17"));
}

#[test]
fn wrong_tools_are_named() {
    let nameless = json!({"type": "function", "function": {"name": "f"}});
    let choose = |choice: Value| json!({"tools": [weather()], "tool_choice": choice});
    let allow = |allowed: Value| choose(json!({"type": "allowed_tools", "mode": "auto", "tools": allowed}));
    for (more, param) in [
        (json!({"tools": {}}), "tools"),
        (json!({"tools": ["weather"]}), "tools[0]"),
        (json!({"tools": vec![weather(); 129]}), "tools"),
        (json!({"tools": [{"name": "x"}]}), "tools[0].type"),
        (json!({"tools": [weather(), {"type": "web_search"}]}), "tools[1].type"),
        (json!({"tools": [{"type": "web_search"}]}), "tools[0].type"),
        (json!({"tools": [nameless]}), "tools[0].function"),
        (json!({"tools": [{"type": "function"}]}), "tools[0].name"),
        (json!({"tools": [{"type": "function", "name": "a b"}]}), "tools[0].name"),
        (json!({"tools": [{"type": "function", "name": "x".repeat(65)}]}), "tools[0].name"),
        (json!({"tools": [weather(), weather()]}), "tools[1].name"),
        (json!({"tools": [{"type": "function", "name": "a", "parameters": "x"}]}), "tools[0].parameters"),
        (json!({"tools": [{"type": "function", "name": "a", "strict": "x"}]}), "tools[0].strict"),
        (json!({"tools": [{"type": "function", "name": "a", "description": 1}]}), "tools[0].description"),
        (json!({"tools": [{"type": "function", "name": "a", "defer_loading": true}]}), "tools[0].defer_loading"),
        (
            json!({"tools": [{"type": "function", "name": "a", "allowed_callers": ["programmatic"]}]}),
            "tools[0].allowed_callers",
        ),
        (json!({"tools": [{"type": "function", "name": "a", "paramters": {}}]}), "tools[0].paramters"),
        (json!({"parallel_tool_calls": "no"}), "parallel_tool_calls"),
        (json!({"tool_choice": "required"}), "tool_choice"),
        (choose(json!("any")), "tool_choice"),
        (choose(json!(1)), "tool_choice"),
        (choose(json!({"type": "web_search"})), "tool_choice.type"),
        (choose(json!({"type": "function"})), "tool_choice.name"),
        (choose(json!({"type": "function", "name": "time"})), "tool_choice.name"),
        (choose(json!({"type": "function", "function": {"name": "weather"}})), "tool_choice.function"),
        (choose(json!({"type": "allowed_tools", "mode": "some", "tools": []})), "tool_choice.mode"),
        (allow(json!([])), "tool_choice.tools"),
        (allow(json!([1])), "tool_choice.tools[0]"),
        (allow(json!([{"type": "web_search"}])), "tool_choice.tools[0].type"),
        (allow(json!([{"type": "function", "name": "time"}])), "tool_choice.tools[0].name"),
    ] {
        let (named, message) = refused(more.clone());
        assert_eq!(named.as_deref(), Some(param), "{more}: {message}");
    }
    assert!(refused(json!({"tools": [{"type": "web_search"}]})).1.contains("web_search"));
}

#[test]
fn wrong_items_are_named() {
    let user = |part: Value| json!([{"role": "user", "content": [part]}]);
    let thought = |more: Value| json!([{"type": "reasoning", "summary": [], "content": [more]}]);
    for (input, param) in [
        (json!([]), "input"),
        (json!(1), "input"),
        (json!(["Hi"]), "input[0]"),
        (json!([{}]), "input[0].type"),
        (json!([{"type": 1}]), "input[0].type"),
        (json!([{"type": "message", "content": "x"}]), "input[0].role"),
        (json!([{"role": "tool", "content": "x"}]), "input[0].role"),
        (json!([{"role": "user"}]), "input[0].content"),
        (json!([{"role": "user", "content": 1}]), "input[0].content"),
        (json!([{"role": "user", "content": "x", "name": "y"}]), "input[0].name"),
        (user(json!("x")), "input[0].content[0]"),
        (user(json!({"text": "x"})), "input[0].content[0].type"),
        (user(json!({"type": "text", "text": "x"})), "input[0].content[0].type"),
        (user(json!({"type": "input_image", "image_url": "x"})), "input[0].content[0].type"),
        (user(json!({"type": "output_text", "text": "x"})), "input[0].content[0].type"),
        (user(json!({"type": "input_text"})), "input[0].content[0].text"),
        (user(json!({"type": "input_text", "text": "x", "size": 1})), "input[0].content[0].size"),
        (json!([{"role": "user", "content": "x"}, {"type": "web_search_call"}]), "input[1].type"),
        (json!([{"type": "function_call", "name": "f", "arguments": "{}"}]), "input[0].call_id"),
        (json!([{"type": "function_call", "call_id": "1", "arguments": "{}"}]), "input[0].name"),
        (json!([{"type": "function_call", "call_id": "1", "name": "f", "arguments": {}}]), "input[0].arguments"),
        (json!([call("1"), {"type": "function_call_output", "output": "x"}]), "input[1].call_id"),
        (json!([call("1"), {"type": "function_call_output", "call_id": "1"}]), "input[1].output"),
        (json!([call("1"), {"type": "function_call_output", "call_id": "2", "output": "x"}]), "input[1].call_id"),
        (
            json!([call("1"), {"type": "function_call_output", "call_id": "1", "output": [{"type": "input_file"}]}]),
            "input[1].output[0].type",
        ),
        (json!([{"type": "reasoning", "encrypted_content": "x"}]), "input[0].encrypted_content"),
        (json!([{"type": "reasoning", "summary": "x"}]), "input[0].summary"),
        (thought(json!({"type": "summary_text", "text": "x"})), "input[0].content[0].type"),
        (thought(json!({"type": "reasoning_text"})), "input[0].content[0].text"),
    ] {
        let (named, message) = refused(json!({"input": input}));
        assert_eq!(named.as_deref(), Some(param), "{input}: {message}");
    }
}

#[test]
fn what_would_have_to_be_stored_is_refused_with_advice() {
    for (more, status, param) in [
        (json!({"previous_response_id": "resp_1"}), 400, "previous_response_id"),
        (json!({"conversation": "conv_1"}), 404, "conversation"),
        (json!({"conversation": {"id": "conv_1"}}), 404, "conversation"),
        (json!({"input": [{"type": "item_reference", "id": "msg_1"}]}), 404, "input[0]"),
        (json!({"input": [{"id": "msg_1"}]}), 404, "input[0]"),
    ] {
        let error = asked(more.clone()).unwrap_err();
        assert_eq!((error.status, error.param.as_deref()), (status, Some(param)), "{more}");
        assert!(error.message.contains("not stored") && error.message.contains("send"), "{}", error.message);
        assert!(error.message.contains("_1'") && error.code.is_some(), "{}", error.message);
    }
    assert_eq!(refused(json!({"conversation": {}})).0.as_deref(), Some("conversation"));
}

#[test]
fn what_is_long_is_shortened_where_it_is_echoed() {
    let long = "x".repeat(100_000);
    for more in [
        json!({long.as_str(): 1}),
        json!({"previous_response_id": long}),
        json!({"tools": [{"type": long}]}),
        json!({"tool_choice": long}),
        json!({"tools": [weather()], "tool_choice": {"type": "function", "name": long}}),
        json!({"text": {"format": {"type": long}}}),
        json!({"reasoning": {"effort": long, long.as_str(): 1}}),
        json!({"include": [long]}),
        json!({"service_tier": long}),
        json!({"input": [{"type": long}]}),
        json!({"input": [{"role": long, "content": "x"}]}),
        json!({"input": [{"role": "user", "content": [{"type": long}]}]}),
        json!({"input": [{"type": "function_call_output", "call_id": long, "output": "x"}]}),
        json!({"input": [{"type": "reasoning", "content": [{"type": long, "text": "x"}]}]}),
    ] {
        let (param, message) = refused(more);
        assert!(message.len() < 600 && param.is_some_and(|param| param.len() < 150), "{message}");
    }
}

#[test]
fn every_parameter_of_the_api_has_a_policy_and_only_one() {
    for (name, _) in OTHER {
        assert!(!READ.concat().contains(name), "{name} is in both lists");
    }
    // `ResponseCreateParams` of the official client.
    for name in [
        "access_programs",
        "background",
        "background_options",
        "context_management",
        "conversation",
        "image",
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "model",
        "moderation",
        "parallel_tool_calls",
        "previous_response_id",
        "prompt",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning",
        "safety_identifier",
        "service_tier",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    ] {
        assert!(READ.concat().contains(&name) || OTHER.iter().any(|(other, _)| *other == name), "{name}");
    }
}
