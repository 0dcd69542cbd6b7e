//! Calls in JSON, and in Python.

use crate::Format;

use crate::tests::answers::{reads, reads_cut};

#[test]
fn hermes() {
    let format = Format::Hermes;
    reads(
        format,
        "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Köln\", \"days\": 3}}\n</tool_call>",
        &["call weather {\"city\": \"Köln\", \"days\": 3}"],
    );
    reads(
        format,
        "I look.\n\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n{\"arguments\": \
         {\"a\": [1, {}]}, \"name\": \"other\"}\n</tool_call>\nDone.",
        &["say: I look.", "call now {}", "call other {\"a\": [1, {}]}", "say: Done."],
    );
    // Braces and end tags in strings, and what only looks like a marker.
    reads(
        format,
        "a < b <tool> <tool_call>{\"name\":\"any\",\"arguments\":{\"x\":\"}</tool_call>{\\\"\"}}</tool_call>",
        &["say: a < b <tool>", "call any {\"x\":\"}</tool_call>{\\\"\"}"],
    );
}

#[test]
fn arguments_in_other_forms() {
    let format = Format::Hermes;
    let call = |call: &str| format!("<tool_call>{call}</tool_call>");
    reads(
        format,
        &call(r#"{"name":"weather","arguments":"{\"city\": \"Rome\\n\"}"}"#),
        &[r#"call weather {"city": "Rome\n"}"#],
    );
    reads(format, &call(r#"{"arguments":"{\"city\":\"R\"}","name":"weather"}"#), &[r#"call weather {"city":"R"}"#]);
    reads(format, &call(r#"{"name":"now","arguments":null}"#), &["call now {}"]);
    reads(format, &call(r#"{"name":"now","arguments":""}"#), &["call now {}"]);
    reads(format, &call(r#"{"name":"now"}"#), &["call now {}"]);
    reads(format, &call(r#"{"name":"any","parameters":{"a":1},"id":"x"}"#), &[r#"call any {"a":1}"#]);
    reads(format, &call(r#"{"id":"c1","name":"any","arguments":{"a":1}}"#), &[r#"call any#c1 {"a":1}"#]);
    reads(
        format,
        &call(r#"{"type":"function","function":{"name":"any","arguments":{"a":1}}}"#),
        &[r#"call any {"a":1}"#],
    );
    reads(
        format,
        &call("[{\"name\":\"now\",\"arguments\":{}},\n{\"name\":\"any\",\"arguments\":{\"a\":1}}]"),
        &["call now {}", r#"call any {"a":1}"#],
    );
    // Raw line breaks in strings are not JSON, but models write them.
    reads(format, &call("{\"name\":\"any\",\"arguments\":{\"a\":\"1\n2\t3\"}}"), &[r#"call any {"a":"1\n2\t3"}"#]);
    // One bracket too many.
    reads(format, &call(r#"{"name":"any","arguments":{"a":1}}}"#), &[r#"call any {"a":1}"#]);
}

#[test]
fn what_is_wrong_is_said() {
    let format = Format::Hermes;
    reads(
        format,
        "<tool_call>{\"name\" \"weather\"}</tool_call> Sorry.",
        &["bad: <tool_call>{\"name\" \"weather\"}</tool_call> (column 9: expected `:` after a key)", "say: Sorry."],
    );
    reads(
        format,
        "<tool_call>{\"name\": \"any\", \"arguments\": {\"a\": tru}}</tool_call>",
        &["open any {\"a\": tru", "bad: }}</tool_call> (column 39: expected `true`, `false` or `null`)"],
    );
    reads(
        format,
        "<tool_call>{\"arguments\": {}}</tool_call>",
        &[
            "bad: <tool_call>{\"arguments\": {}}</tool_call> (column 17: the call names no function: it has no \"name\")",
        ],
    );
    reads(
        format,
        "<tool_call>{\"name\": \"any\", \"arguments\": [1]}</tool_call>",
        &[
            "bad: <tool_call>{\"name\": \"any\", \"arguments\": [1]}</tool_call> (column 30: expected an object of arguments)",
        ],
    );
    reads(
        format,
        "<tool_call>{\"name\": \"any\", \"arguments\": {\"a\": 1}",
        &["open any {\"a\": 1}", "bad:  (the text ends within the call)"],
    );
    // The next call is read again.
    reads(
        format,
        "<tool_call>{\"nam<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>",
        &["bad: <tool_call>{\"nam<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call> \
           (column 19: expected `:` after a key)"],
    );
}

#[test]
fn what_was_cut_off_stays() {
    let format = Format::Hermes;
    reads_cut(format, "<tool_call>{\"name\": \"any\", \"arguments\": {\"a\": [1, ", &["open any {\"a\": [1, "]);
    reads_cut(
        format,
        "Hm. <tool_call>{\"name\": \"an",
        &["say: Hm.", "bad:  <tool_call>{\"name\": \"an (the text was cut off within the call)"],
    );
    reads_cut(format, "Hm. <tool_ca", &["say: Hm. <tool_ca"]);
    reads_cut(format, "<tool_call>{\"name\": \"now\", \"arguments\": {}}\n</tool", &["call now {}"]);
    reads_cut(Format::Llama3, "{\"name\": \"any\", \"para", &["say: {\"name\": \"any\", \"para"]);
    reads_cut(Format::Llama3, "{\"name\": \"any\", \"parameters\": {", &["open any {"]);
}

#[test]
fn talk_about_the_notation_is_talk() {
    for text in
        ["Use the `<tool_call>` tag.", "It ends with <tool_call>", "<tool_call> is a tag", "<tool_call></tool_call>"]
    {
        reads(Format::Hermes, text, &[&format!("say: {text}")]);
        reads(Format::Generic, text, &[&format!("say: {text}")]);
    }
}

#[test]
fn llama_3() {
    let format = Format::Llama3;
    reads(
        format,
        "{\"name\": \"weather\", \"parameters\": {\"city\": \"Oslo\"}}",
        &["call weather {\"city\": \"Oslo\"}"],
    );
    reads(
        format,
        "<|python_tag|>{\"type\": \"function\", \"name\": \"weather\", \"parameters\": {\"city\": \"Oslo\"}}; \
         {\"name\": \"now\", \"parameters\": {}}",
        &["call weather {\"city\": \"Oslo\"}", "call now {}"],
    );
    reads(
        format,
        "{\"name\": \"now\", \"parameters\": {}}; {\"name\": \"any\", \"parameters\": {\"a\": 1}}\nBye",
        &["call now {}", "call any {\"a\": 1}", "say: Bye"],
    );
    reads(
        format,
        "<|python_tag|>brave_search.call(query=\"x\")",
        &["say: <|python_tag|>brave_search.call(query=\"x\")"],
    );
    // JSON that is no call.
    for text in [
        "{\"name\": \"Bob\", \"age\": 3}",
        "{\"name\": \"Bob\"}",
        "{\"name\": \"Bob\", \"parameters\": [1, 2]}",
        "{\"name\": \"Bob\", \"parameters\": \"none\"}",
        "{\"answer\": {\"name\": \"now\", \"parameters\": {}}}",
        "[{\"name\": \"Bob\"}]",
        "[1, 2, 3]",
        "{not json",
        "{\"a\" 1}",
        "{}",
        "{",
    ] {
        reads(format, text, &[&format!("say: {text}")]);
        reads(Format::Generic, text, &[&format!("say: {text}")]);
        reads(Format::Pythonic, text, &[&format!("say: {text}")]);
    }
    reads(format, "So: {\"name\": \"now\", \"parameters\": {}}", &["say: So: {\"name\": \"now\", \"parameters\": {}}"]);
}

#[test]
fn generic_in_a_fence() {
    let format = Format::Generic;
    reads(format, "{\"name\": \"now\", \"arguments\": {}}", &["call now {}"]);
    reads(format, "```json\n{\"name\": \"any\", \"arguments\": {\"a\": 1}}\n```", &["call any {\"a\": 1}"]);
    reads(format, "```tool_code\nweather(city=\"Rome\")\n```\n", &["call weather {\"city\":\"Rome\"}"]);
    for text in ["```json\n{\"a\": 1}\n```", "```rust\nfn main() {}\n```", "```python\nprint(1)\n```", "``", "`x`"] {
        reads(format, text, &[&format!("say: {text}")]);
    }
}

#[test]
fn python() {
    let format = Format::Pythonic;
    reads(
        format,
        "[weather(city='Rio', days=2, metric=True), now()]",
        &["call weather {\"city\":\"Rio\",\"days\":2,\"metric\":true}", "call now {}"],
    );
    reads(
        Format::Lfm2,
        "Let me see.\n<|tool_call_start|>[plan(steps=[\"a\", 'b\"', \"\"\"c\n\"\"\"], where={'x': -1.5e3, \"y\": (1, None)}, \
         note=None)]<|tool_call_end|>Done",
        &[
            "say: Let me see.",
            "call plan {\"steps\":[\"a\",\"b\\\"\",\"c\\n\"],\"where\":{\"x\":-1.5e3,\"y\":[1,null]},\"note\":null}",
            "say: Done",
        ],
    );
    reads(format, "[weather('Rio', 1_000)]", &["call weather {\"city\":\"Rio\",\"days\":1000}"]);
    reads(format, r#"[any(a="\x41\u00e9\q\n")]"#, &[r#"call any {"a":"Aé\\q\n"}"#]);
    reads(
        Format::Lfm2,
        "<|tool_call_start|>[{\"name\": \"now\", \"arguments\": {}}]<|tool_call_end|>",
        &["call now {}"],
    );
    for text in ["[link](http://x)", "[see(this)]", "[", "[a, b]", "[f", "[1]"] {
        reads(format, text, &[&format!("say: {text}")]);
    }
    reads(
        format,
        "[weather(city=Rio)]",
        &["open weather {\"city\":", "bad: Rio)] (column 17: expected a value instead of `Rio`)"],
    );
    reads_cut(format, "[weather(city='Ri", &["open weather {\"city\":\"Ri"]);
}

#[test]
fn mistral() {
    for format in [Format::Mistral, Format::MistralOld] {
        reads(
            format,
            "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}, \"id\": \"123456789\"}, {\"id\": \"abc\", \"name\": \
             \"any\", \"arguments\": {\"a\": 1}}]",
            &["call now {}", "call any#abc {\"a\": 1}"],
        );
        reads(
            format,
            "Hm.[TOOL_CALLS]weather[CALL_ID]abcdefghi[ARGS]{\"city\": \"Nice\"}[TOOL_CALLS]now[ARGS]{}",
            &["say: Hm.", "call weather#abcdefghi {\"city\": \"Nice\"}", "call now {}"],
        );
        reads(format, "[TOOL_CALLS]now{}", &["call now {}"]);
        reads(format, "a [TOOL] [", &["say: a [TOOL] ["]);
    }
}

#[test]
fn others_with_json() {
    let one = r#"[{"name": "any", "arguments": {"a": 1}}]"#;
    let called = &["call any {\"a\": 1}"];
    reads(Format::Granite3, &format!("<|tool_call|>{one}"), called);
    reads(Format::Granite3, "<think>Hm</think><response>So.</response>", &["think: Hm", "say: So."]);
    reads(Format::Functools, &format!(" functools{one}"), called);
    reads(Format::Apriel, &format!("\n<tool_calls>{one}</tool_calls>"), called);
    reads(Format::NemotronNano2, &format!("<TOOLCALL>{one}</TOOLCALL>"), called);
    reads(
        Format::MiniMaxM1,
        "<tool_calls>\n{\"name\": \"now\", \"arguments\": {}}\n{\"name\": \"any\", \"arguments\": {\"a\": 1}}\n</tool_calls>",
        &["call now {}", "call any {\"a\": 1}"],
    );
    reads(
        Format::Apertus,
        "<|tools_prefix|>[{\"weather\": {\"city\": \"Bern\"}}, {\"now\": {}}]<|tools_suffix|>",
        &["call weather {\"city\": \"Bern\"}", "call now {}"],
    );
    reads(
        Format::CommandR7b,
        "<|START_THINKING|>Plan.<|END_THINKING|><|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"any\", \
         \"parameters\": {\"a\": 1}}\n]<|END_ACTION|>",
        &["think: Plan.", "call any#0 {\"a\": 1}"],
    );
    reads(Format::CommandR7b, "<|START_RESPONSE|>Hi<|END_RESPONSE|>", &["say: Hi"]);
    reads(
        Format::CommandRPlus,
        "I will.\nAction:\n```json\n[\n    {\n        \"tool_name\": \"any\",\n        \"parameters\": {\"a\": 1}\n    }\n]```\n",
        &["say: I will.", "call any {\"a\": 1}"],
    );
    reads(Format::CommandRPlus, "Action: none.", &["say: Action: none."]);
    reads(
        Format::GigaChat3,
        "Hi<|message_sep|>\n\nfunction call<|role_sep|>\n{\"name\": \"any\", \"arguments\": {\"a\": 1}}",
        &["say: Hi", "call any {\"a\": 1}"],
    );
    reads(
        Format::GigaChat31,
        "Hi<|function_call|>{\"name\": \"any\", \"arguments\": {\"a\": 1}}",
        &["say: Hi", "call any {\"a\": 1}"],
    );
}
