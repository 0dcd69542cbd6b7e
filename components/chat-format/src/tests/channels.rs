//! Calls with a name before the JSON, and messages with headers.

use crate::Format;

use crate::tests::answers::{reads, reads_after, reads_cut};

#[test]
fn functionary() {
    reads(
        Format::Functionary31,
        "Ok. <function=weather>{\"city\": \"Ulm\"}</function><function=now>{}</function>",
        &["say: Ok.", "call weather {\"city\": \"Ulm\"}", "call now {}"],
    );
    reads(Format::Functionary31, "A <function=x> b", &["say: A <function=x> b"]);
    let format = Format::Functionary32;
    reads_after(
        format,
        "assistant<|end_header_id|>\n\n>>>",
        "all\nHello >>> you\n>>>weather\n{\"city\": \"Ulm\"}>>>now\n{}",
        &["say: Hello >>> you", "call weather {\"city\": \"Ulm\"}", "call now {}"],
    );
    reads_after(format, "\n\n>>>", "weather\n{\"city\": \"Ulm\"}", &["call weather {\"city\": \"Ulm\"}"]);
    reads_after(format, "\n\n>>>", "What?", &["say: What?"]);
    reads(format, "In Python:\n>>> print(1)\n1", &["say: In Python:\n>>> print(1)\n1"]);
}

#[test]
fn deepseek() {
    reads(
        Format::DeepSeekR1,
        "<think>\nHm\n</think>\n\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n\
         {\"city\": \"Ulm\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```\
         <｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        &["think: Hm", "call weather {\"city\": \"Ulm\"}", "call now {}"],
    );
    reads(
        Format::DeepSeekV31,
        "</think>Ok<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{\"city\": \"Ulm\"}<｜tool▁call▁end｜>\
         <｜tool▁calls▁end｜>",
        &["say: Ok", "call weather {\"city\": \"Ulm\"}"],
    );
    // A call within a thought that was not ended.
    reads_after(
        Format::DeepSeekV31,
        "<｜Assistant｜><think>",
        "Hm <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        &["think: Hm", "call now {}"],
    );
}

#[test]
fn kimi_k2() {
    reads(
        Format::KimiK2,
        "Ok <|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>{\"city\": \"Ulm\"}\
         <|tool_call_end|><|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>{}<|tool_call_end|>\
         <|tool_calls_section_end|>",
        &["say: Ok", "call weather#functions.weather:0 {\"city\": \"Ulm\"}", "call now#functions.now:1 {}"],
    );
}

#[test]
fn solar_open() {
    reads_after(
        Format::SolarOpen,
        "<|begin|>assistant",
        "<|think|>Hm<|end|><|begin|>assistant<|tool_calls|><|tool_call:begin|>a1b2c3d4e5<|tool_call:name|>now<|tool_call:args|>{}\
         <|tool_call:end|><|calls|>",
        &["think: Hm", "call now#a1b2c3d4e5 {}"],
    );
    reads(Format::SolarOpen, "<|content|>Hello<|end|>", &["say: Hello"]);
}

#[test]
fn harmony() {
    let format = Format::Harmony;
    let start = "<|end|><|start|>assistant";
    reads_after(
        format,
        start,
        "<|channel|>analysis<|message|>Hm.\n<|end|><|start|>assistant<|channel|>commentary to=functions.weather \
         <|constrain|>json<|message|>{\"city\": \"Ulm\"}<|call|>",
        &["think: Hm.", "call weather {\"city\": \"Ulm\"}"],
    );
    // The recipient in the role's header.
    reads_after(format, start, " to=functions.now<|channel|>commentary json<|message|>{}<|call|>", &["call now {}"]);
    reads_after(
        format,
        start,
        "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>commentary to=functions.now \
         <|constrain|>json<|message|>{}",
        &["say: I look.", "call now {}"],
    );
    reads_after(
        format,
        start,
        "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>Hello,\n to=you!",
        &["think: Hm", "say: Hello,\n to=you!"],
    );
    reads_after(format, start, "{\"a\": 1}", &["say: {\"a\": 1}"]);
    reads_after(format, start, "Hello", &["say: Hello"]);
    reads_after(format, start, " Hello, you", &["say:  Hello, you"]);
    reads_after(
        format,
        start,
        "<|channel|>commentary to=python <|constrain|>code<|message|>print(1)",
        &["open python ", "bad: print(1) (column 61: expected an object of arguments)"],
    );
    reads_cut(format, "<|channel|>analysis<|message|>Hm", &["think: Hm"]);
    reads_cut(format, "<|channel|>analysis<|message|>Hm <|en", &["think: Hm"]);
    reads_cut(format, "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|chan", &["think: Hm"]);
    reads_cut(format, "<|channel|>commentary to=func", &[]);
    reads_after(format, "<|start|>assistant<|channel|>analysis<|message|>", "Hm<|end|>", &["think: Hm"]);
}

#[test]
fn muse_glimmer() {
    reads_after(
        Format::MuseGlimmer,
        "<|eot|><|start|>assistant",
        " to=self<|message|>Hm<|eom|><|start|>assistant to=weather<|message|><atem:function_calls>\n<atem:invoke \
         name=\"weather\">\n<atem:parameter name=\"city\">Ulm</atem:parameter>\n</atem:invoke>\n</atem:function_calls>",
        &["think: Hm", "call weather {\"city\":\"Ulm\"}"],
    );
    reads_after(Format::MuseGlimmer, "<|start|>assistant", " to=user<|message|>Hello!", &["say: Hello!"]);
}

#[test]
fn gemma_4() {
    let format = Format::Gemma4;
    reads(
        format,
        "<|channel>thought\nHm\n<channel|>Ok<|tool_call>call:weather{city:<|\"|>A \"B\"\n{,}<|\"|>,days:2,metric:true}<tool_call|>\
         <|tool_call>call:now{}<tool_call|>",
        &[
            "think: Hm",
            "say: Ok",
            "call weather {\"city\":\"A \\\"B\\\"\\n{,}\",\"days\":2,\"metric\":true}",
            "call now {}",
        ],
    );
    reads(
        format,
        "<|tool_call>call:any{a:[<|\"|>x<|\"|>,-7,null],b:{c:{d:<|\"|><|\"|>}}}<tool_call|>",
        &["call any {\"a\":[\"x\",-7,null],\"b\":{\"c\":{\"d\":\"\"}}}"],
    );
    reads(format, "<|tool_call>call:any{\"a\": \"x\"}", &["call any {\"a\":\"x\"}"]);
    reads_cut(format, "<|tool_call>call:any{a:<|\"|>x<", &["open any {\"a\":\"x<"]);
}
