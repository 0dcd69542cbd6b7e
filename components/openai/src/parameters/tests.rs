use nala_sdk::llm::{Bias, Dry, DynamicTemperature, Mirostat, MirostatVersion, Sampler, Xtc};
use serde_json::json;

use super::output::Output;
use super::*;

/// A valid request with some more parameters.
fn request(more: Value) -> Result<Request, ApiError> {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
        body.extend(more);
    }
    read(body.to_string().as_bytes())
}

/// How it has text generated.
fn with(more: Value) -> Result<Options, ApiError> {
    request(more).map(|request| request.ask.options)
}

#[test]
fn the_least_request_has_openais_defaults() {
    let read = with(json!({"temperature": null, "tools": null, "stop": null})).unwrap();
    assert_eq!(read.sampler, Sampler { min_p: DEFAULT_MIN_P, penalty_window: u32::MAX, ..Sampler::default() });
    assert_eq!((read.choices, read.at_end, read.output), (1, AtEnd::Stop, Output::Free));
    assert_eq!(read.max_tokens, None);
    let whole = request(json!({})).unwrap();
    assert_eq!((whole.delivery, whole.ask.pace), (Delivery::Whole, Pace::AtOnce));
    assert_eq!((read.top_logprobs, read.stop.len(), read.bias.len()), (None, 0, 0));
}

#[test]
fn all_parameters_arrive() {
    let request = request(json!({
        "temperature": 0, "top_p": 0.5, "top_k": 40, "min_p": 0.25, "repeat_penalty": 1.5,
        "frequency_penalty": -2, "presence_penalty": 2, "seed": -1, "stop": ["a", "b"],
        "max_completion_tokens": 7, "max_tokens": 7, "n": 8, "stream": true,
        "stream_options": {"include_usage": true, "include_obfuscation": false},
        "logprobs": true, "top_logprobs": 20, "logit_bias": {"3": -100, "4": 1.5},
    }))
    .unwrap();
    let read = request.ask.options;
    let sampler = Sampler {
        temperature: 0.0,
        top_p: 0.5,
        top_k: 40,
        min_p: 0.25,
        repeat_penalty: 1.5,
        frequency_penalty: -2.0,
        presence_penalty: 2.0,
        penalty_window: u32::MAX,
        seed: Some(u64::MAX),
        ..Sampler::GREEDY
    };
    assert_eq!(read.sampler, sampler);
    assert_eq!((read.max_tokens, read.top_logprobs), (Some(7), Some(20)));
    assert_eq!(read.stop, ["a", "b"]);
    assert_eq!(read.bias, [Bias { id: 3, add: -100.0 }, Bias { id: 4, add: 1.5 }]);
    assert_eq!(request.delivery, Delivery::Events(StreamUsage::Included));
    assert_eq!(request.ask.pace, Pace::ByToken);
}

#[test]
fn llama_cpps_parameters_arrive() {
    let read = with(json!({
        "n": 3, "typical_p": 0.5, "top_n_sigma": 1.5, "repeat_last_n": 64, "dry_multiplier": 0.5, "dry_base": 2,
        "dry_allowed_length": 3, "dry_penalty_last_n": 100, "dry_sequence_breakers": ["."], "xtc_probability": 0.25,
        "xtc_threshold": 0.125, "dynatemp_range": 0.5, "dynatemp_exponent": 2, "mirostat": 2, "mirostat_tau": 4,
        "mirostat_eta": 0.5, "ignore_eos": true,
    }))
    .unwrap();
    let sampler = Sampler {
        temperature: 1.0,
        typical_p: 0.5,
        top_n_sigma: 1.5,
        penalty_window: 64,
        dry: Some(Dry { multiplier: 0.5, base: 2.0, allowed_length: 3, window: 100 }),
        xtc: Some(Xtc { probability: 0.25, threshold: 0.125 }),
        dynamic_temperature: Some(DynamicTemperature { range: 0.5, exponent: 2.0 }),
        mirostat: Some(Mirostat { version: MirostatVersion::Two, tau: 4.0, eta: 0.5 }),
        ..Sampler::GREEDY
    };
    assert_eq!(read.sampler, sampler);
    assert_eq!((read.choices, read.at_end, read.dry_breakers), (3, AtEnd::GoOn, vec![".".to_owned()]));
    let first = with(json!({"mirostat": 1})).unwrap().sampler.mirostat;
    assert_eq!(first, Some(Mirostat { version: MirostatVersion::One, tau: 5.0, eta: 0.1 }));
}

#[test]
fn what_switches_a_step_off_at_llama_cpp_does_here() {
    let off = with(json!({
        "dry_multiplier": 0, "xtc_probability": 0, "dynatemp_range": 0, "mirostat": 0, "top_n_sigma": -1,
        "repeat_last_n": -1, "typical_p": 1, "ignore_eos": false, "dry_penalty_last_n": -1,
    }));
    assert_eq!(off.unwrap().sampler, with(json!({})).unwrap().sampler);
    assert_eq!(with(json!({"dry_multiplier": 1, "dry_penalty_last_n": 0})).unwrap().sampler.dry, None);
    let dry = with(json!({"dry_multiplier": 1})).unwrap().sampler.dry.unwrap();
    assert_eq!((dry.base, dry.allowed_length, dry.window), (1.75, 2, 4096));
}

#[test]
fn a_cut_of_the_clients_own_replaces_the_default_one() {
    assert_eq!(with(json!({"top_p": 0.9})).unwrap().sampler.min_p, 0.0);
    assert_eq!(with(json!({"top_k": 10})).unwrap().sampler.min_p, 0.0);
    assert_eq!(with(json!({"min_p": 0.0})).unwrap().sampler.min_p, 0.0);
}

#[test]
fn what_is_out_of_range_is_named() {
    for (more, param) in [
        (json!({"model": 1}), "model"),
        (json!({"model": null}), "model"),
        (json!({"temperature": -0.1}), "temperature"),
        (json!({"temperature": 2.1}), "temperature"),
        (json!({"temperature": "hot"}), "temperature"),
        (json!({"top_p": 1.5}), "top_p"),
        (json!({"top_k": -1}), "top_k"),
        (json!({"min_p": 2}), "min_p"),
        (json!({"repeat_penalty": 0}), "repeat_penalty"),
        (json!({"frequency_penalty": 3}), "frequency_penalty"),
        (json!({"presence_penalty": -3}), "presence_penalty"),
        (json!({"seed": 1.5}), "seed"),
        (json!({"stop": ""}), "stop"),
        (json!({"stop": ["a", 1]}), "stop"),
        (json!({"stop": vec!["x"; 17]}), "stop"),
        (json!({"max_tokens": -1}), "max_tokens"),
        (json!({"max_tokens": 0}), "max_tokens"),
        (json!({"max_tokens": 1.5}), "max_tokens"),
        (json!({"max_tokens": "5"}), "max_tokens"),
        (json!({"max_completion_tokens": -5}), "max_completion_tokens"),
        (json!({"max_tokens": 1, "max_completion_tokens": 2}), "max_tokens"),
        (json!({"n": 9}), "n"),
        (json!({"n": 0}), "n"),
        (json!({"typical_p": 0}), "typical_p"),
        (json!({"repeat_last_n": -2}), "repeat_last_n"),
        (json!({"dry_multiplier": -1}), "dry_multiplier"),
        (json!({"dry_base": 0.5}), "dry_base"),
        (json!({"dry_allowed_length": 0}), "dry_allowed_length"),
        (json!({"dry_sequence_breakers": "x"}), "dry_sequence_breakers"),
        (json!({"dry_sequence_breakers": ["a", ""]}), "dry_sequence_breakers"),
        (json!({"xtc_probability": 2}), "xtc_probability"),
        (json!({"xtc_threshold": -1}), "xtc_threshold"),
        (json!({"dynatemp_range": -1}), "dynatemp_range"),
        (json!({"mirostat": 3}), "mirostat"),
        (json!({"mirostat_eta": 2}), "mirostat_eta"),
        (json!({"top_n_sigma": "x"}), "top_n_sigma"),
        (json!({"ignore_eos": 1}), "ignore_eos"),
        (json!({"response_format": {"type": "json"}}), "response_format.type"),
        (json!({"stream": 1}), "stream"),
        (json!({"stream_options": {}}), "stream_options"),
        (json!({"stream": true, "stream_options": 1}), "stream_options"),
        (json!({"stream": true, "stream_options": {"x": 1}}), "stream_options.x"),
        (json!({"stream": true, "stream_options": {"include_usage": 1}}), "stream_options.include_usage"),
        (json!({"logprobs": 3}), "logprobs"),
        (json!({"top_logprobs": 3}), "top_logprobs"),
        (json!({"logprobs": true, "top_logprobs": 21}), "top_logprobs"),
        (json!({"logit_bias": {"a": 1}}), "logit_bias"),
        (json!({"logit_bias": {"1": 101}}), "logit_bias"),
        (json!({"logit_bias": [1]}), "logit_bias"),
        (json!({"temprature": 1}), "temprature"),
    ] {
        let error = with(more.clone()).expect_err(&more.to_string());
        assert_eq!((error.status, error.param.as_deref()), (400, Some(param)), "{more}");
        assert!(error.message.contains(param), "{more}: {}", error.message);
    }
    let message = with(json!({"max_tokens": -1})).unwrap_err().message;
    assert_eq!(message, "'max_tokens' must be an integer from 1 to 18446744073709551615, not -1");
    let message = with(json!({"max_tokens": 1e20})).unwrap_err().message;
    assert!(message.contains("from 1 to 18446744073709551615, not 1e"), "{message}");
}

#[test]
fn the_entry_that_is_wrong_is_named_with_its_value() {
    let long = "x".repeat(1025);
    let many: Value = (0..4097).map(|id| (id.to_string(), json!(1))).collect::<Map<_, _>>().into();
    for (more, param, said) in [
        (json!({"logit_bias": {"5": 1, "+5": -1}}), "logit_bias", "logit_bias[\"+5\"]"),
        (json!({"logit_bias": {"5": 1, "005": -1}}), "logit_bias", "logit_bias[\"005\"]"),
        (
            json!({"logit_bias": {"7": "much"}}),
            "logit_bias",
            "logit_bias[\"7\"]' must be a number from -100 to 100, not \"much\"",
        ),
        (json!({"logit_bias": {"7": 101}}), "logit_bias", "not 101"),
        (json!({"logit_bias": many}), "logit_bias", "at most 4096"),
        (json!({"stop": ["a", 1]}), "stop", "'stop[1]' must be a string, not 1"),
        (json!({"stop": ["a", "b", ""]}), "stop", "'stop[2]' is empty"),
        (json!({"stop": ""}), "stop", "'stop' is empty"),
        (json!({"stop": long}), "stop", "'stop' has 1025 bytes, but at most 1024"),
        (json!({"stop": vec!["x"; 17]}), "stop", "17 texts, but at most 16"),
        (json!({"stop": 3}), "stop", "not 3"),
    ] {
        let error = with(more.clone()).expect_err(&more.to_string());
        assert_eq!((error.status, error.param.as_deref()), (400, Some(param)), "{}", error.message);
        assert!(error.message.contains(said), "{}", error.message);
    }
    assert_eq!(with(json!({"stop": "x".repeat(1024)})).unwrap().stop.len(), 1);
}

#[test]
fn a_name_that_comes_twice_is_refused() {
    let error = read(br#"{"model": "m", "messages": [], "temperature": 0, "temperature": 1}"#).unwrap_err();
    assert_eq!((error.status, error.param.as_deref()), (400, Some("temperature")));
    assert!(error.message.contains("twice"), "{}", error.message);
}

#[test]
fn long_names_are_shortened_where_they_are_echoed() {
    let long = "x".repeat(100_000);
    for more in [json!({ long.as_str(): 1 }), json!({"logit_bias": { long.as_str(): 1 }})] {
        assert!(with(more).unwrap_err().body().len() < 500);
    }
}

#[test]
fn the_policy_is_applied() {
    let harmless = with(json!({
        "user": "u", "metadata": {"a": "b"}, "store": true, "tools": [], "tool_choice": "none",
        "response_format": {"type": "text"}, "modalities": ["text"], "parallel_tool_calls": true,
        "verbosity": "medium", "cache_prompt": true,
    }));
    assert!(harmless.is_ok(), "{harmless:?}");
    for (name, value) in [("functions", json!([{}])), ("audio", json!({})), ("modalities", json!(["text", "audio"]))] {
        let error = with(json!({ name: value })).unwrap_err();
        assert_eq!(error.code, Some("unsupported_parameter"));
        assert!(error.message.contains("not supported yet"), "{}", error.message);
        assert_eq!(error.param.as_deref(), Some(name));
    }
}

#[test]
fn no_parameter_has_two_policies() {
    let mut names: Vec<_> = READ.concat().into_iter().chain(OTHER.iter().map(|(name, _)| *name)).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn other_json_than_objects_is_refused() {
    for body in ["[]", "1", "\"x\"", "null"] {
        assert!(read(body.as_bytes()).unwrap_err().message.contains("must be a JSON object"));
    }
    assert!(read(b"{\"a\": \xff}").unwrap_err().message.contains("column"));
    assert!(read("[".repeat(10_000).as_bytes()).unwrap_err().message.contains("recursion"));
}

fn conversation(more: Value) -> Result<crate::ask::Conversation, ApiError> {
    match request(more)?.ask.prompt {
        Prompt::Conversation(conversation) => Ok(conversation),
        other => panic!("{other:?}"),
    }
}

#[test]
fn templates_get_their_variables() {
    let variables = |more: Value| Value::Object(conversation(more).unwrap().variables);
    assert_eq!(variables(json!({})), json!({}));
    assert_eq!(
        variables(json!({"reasoning_effort": "low"})),
        json!({"reasoning_effort": "low", "enable_thinking": true, "thinking": true})
    );
    assert_eq!(variables(json!({"reasoning_effort": "none"})), json!({"enable_thinking": false, "thinking": false}));
    // What is said for the template itself counts.
    let both = json!({"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": true, "x": [1]}});
    assert_eq!(variables(both), json!({"enable_thinking": true, "thinking": false, "x": [1]}));
    for (more, param) in [
        (json!({"reasoning_effort": "extreme"}), "reasoning_effort"),
        (json!({"reasoning_effort": 1}), "reasoning_effort"),
        (json!({"chat_template_kwargs": []}), "chat_template_kwargs"),
        (json!({"chat_template_kwargs": {"messages": []}}), "chat_template_kwargs"),
        (json!({"reasoning_format": "none"}), "reasoning_format"),
        (json!({"timings_per_token": 1}), "timings_per_token"),
        (json!({"continue_final_message": true}), "continue_final_message"),
        (json!({"add_generation_prompt": false}), "add_generation_prompt"),
        (json!({"add_generation_prompt": 1}), "add_generation_prompt"),
    ] {
        let error = request(more.clone()).expect_err(&more.to_string());
        assert_eq!((error.status, error.param.as_deref()), (400, Some(param)), "{more}");
    }
}

#[test]
fn a_last_message_can_be_gone_on_from() {
    let messages = json!([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hel"}]);
    let last = |more: bool| conversation(json!({"messages": messages, "continue_final_message": more})).unwrap().last;
    assert_eq!((last(true), last(false)), (crate::ask::Last::Continued, crate::ask::Last::Answered));
    let explicit = json!({"messages": messages, "continue_final_message": true, "add_generation_prompt": false});
    assert_eq!(conversation(explicit).unwrap().last, crate::ask::Last::Continued);
    let plain = json!({"messages": messages, "add_generation_prompt": true});
    assert_eq!(conversation(plain).unwrap().last, crate::ask::Last::Answered);
    let both = json!({"messages": messages, "continue_final_message": true, "add_generation_prompt": true});
    let error = request(both).unwrap_err();
    assert_eq!((error.status, error.param.as_deref()), (400, Some("add_generation_prompt")));
}
