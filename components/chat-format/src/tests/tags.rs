//! Calls in tags.

use crate::Format;

use crate::tests::answers::{reads, reads_cut};

#[test]
fn qwen_coder() {
    let format = Format::QwenCoder;
    reads(
        format,
        "I look.\n<tool_call>\n<function=weather>\n<parameter=city>\nNew\nYork \"<b>\"\n</parameter>\n<parameter=days>\n3\n\
         </parameter>\n<parameter=metric>\nTrue\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=now>\n\
         </function>\n</tool_call>",
        &[
            "say: I look.",
            "call weather {\"city\":\"New\\nYork \\\"<b>\\\"\",\"days\":3,\"metric\":true}",
            "call now {}",
        ],
    );
    reads(
        format,
        "<function=plan>\n<parameter=steps>\n[\"a\"]\n</parameter>\n<parameter=note>\nnull\n</parameter>\n</function>\n\
         </tool_call>",
        &["call plan {\"steps\":[\"a\"],\"note\":null}"],
    );
    // What the schema says of the value decides; without a schema, the text.
    reads(
        format,
        "<tool_call><function=any><parameter=a>5</parameter><parameter=b>05</parameter></function></tool_call>",
        &["call any {\"a\":5,\"b\":\"05\"}"],
    );
    reads(
        format,
        "<tool_call><function=weather><parameter=city>5</parameter><parameter=days>many</parameter></function></tool_call>",
        &["call weather {\"city\":\"5\",\"days\":\"many\"}"],
    );
    reads(format, "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>", &["call now {}"]);
    reads(format, "Write <function=name> so.", &["say: Write <function=name> so."]);
    reads(
        format,
        "<tool_call><function=now>\n</function>\n<function=now></function></tool_call>",
        &["call now {}", "call now {}"],
    );
    reads(
        format,
        "<tool_call><function=weather><parameter=city>Rome</parameter>and</function></tool_call>So",
        &[
            "open weather {\"city\":\"Rome\"",
            "bad: and</function></tool_call> (column 51: expected `<parameter=` or `</function>`)",
            "say: So",
        ],
    );
    reads_cut(format, "<tool_call><function=weather><parameter=city>Ro", &["open weather {\"city\":\"Ro"]);
    // The line break may be the one before the end tag.
    reads_cut(format, "<tool_call><function=weather><parameter=city>Ro\n", &["open weather {\"city\":\"Ro"]);
}

#[test]
fn seed_oss() {
    reads(
        Format::SeedOss,
        "<seed:think>Hm <seed:cot_budget_reflect>x</seed:cot_budget_reflect></seed:think><seed:tool_call>\n<function=weather>\n\
         <parameter=city>Ulm</parameter>\n</function>\n</seed:tool_call>",
        &["think: Hm <seed:cot_budget_reflect>x</seed:cot_budget_reflect>", "call weather {\"city\":\"Ulm\"}"],
    );
}

#[test]
fn glm() {
    let format = Format::Glm;
    reads(
        format,
        "\n<think>Hm</think>\n<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Bonn</arg_value>\n\
         <arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>\n<tool_call>now\n</tool_call>",
        &["think: Hm", "call weather {\"city\":\"Bonn\",\"days\":2}", "call now {}"],
    );
    reads(
        format,
        "<tool_call>plan<arg_key>steps</arg_key><arg_value>[\"x\"]</arg_value></tool_call>",
        &["call plan {\"steps\":[\"x\"]}"],
    );
    reads(format, "<tool_call>now</tool_call>", &["call now {}"]);
    reads(format, "A <tool_call> is a call", &["say: A <tool_call> is a call"]);
    reads(
        Format::Hunyuan3,
        "<think:opensource></think:opensource>Ok<tool_calls:opensource>\n<tool_call:opensource>weather<tool_sep:opensource>\n\
         <arg_key:opensource>city</arg_key:opensource>\n<arg_value:opensource>Ulm</arg_value:opensource>\n\
         </tool_call:opensource>\n</tool_calls:opensource>",
        &["say: Ok", "call weather {\"city\":\"Ulm\"}"],
    );
}

#[test]
fn minimax() {
    reads(
        Format::MiniMaxM2,
        "<minimax:tool_call>\n<invoke name=\"weather\">\n<parameter name=\"city\">Ulm</parameter>\n<parameter \
         name=\"days\">2</parameter>\n</invoke>\n<invoke name=\"now\">\n</invoke>\n</minimax:tool_call>",
        &["call weather {\"city\":\"Ulm\",\"days\":2}", "call now {}"],
    );
    let text = "<mm:think>Hm</mm:think>#<tool_call>\n#<invoke name=\"plan\">#<steps>#<item>a#</item>#<item>b#</item>#</steps>\
                #<where>#<x>1.5#</x>#<y>#<item>u#</item>#</y>#</where>#<note>\"n\"#</note>#</invoke>\n#<invoke \
                name=\"weather\">#<city>Ulm#</city>#</invoke>\n#</tool_call>";
    reads(
        Format::MiniMaxM3,
        &text.replace('#', "]<]minimax[>["),
        &[
            "think: Hm",
            "call plan {\"steps\":[\"a\",\"b\"],\"where\":{\"x\":1.5,\"y\":[\"u\"]},\"note\":\"\\\"n\\\"\"}",
            "call weather {\"city\":\"Ulm\"}",
        ],
    );
    reads(Format::MiniMaxM3, "</mm:think>Hi ]<]mini", &["say: Hi ]<]mini"]);
}

#[test]
fn dsml() {
    let text = "Ok\n\n<#function_calls>\n<#invoke name=\"any\">\n<#parameter name=\"a\" string=\"true\">5</#parameter>\n\
                <#parameter name=\"b\" string=\"false\">[5]</#parameter>\n</#invoke>\n<#invoke name=\"now\">\n</#invoke>\n\
                </#function_calls>"
        .replace('#', "｜DSML｜");
    let calls = &["say: Ok", "call any {\"a\":\"5\",\"b\":[5]}", "call now {}"];
    reads(Format::DeepSeekV32, &text, calls);
    reads(Format::DeepSeekV4, &text.replace("function_calls", "tool_calls"), calls);
}

#[test]
fn minicpm_5() {
    reads(
        Format::MiniCpm5,
        "<function name=\"weather\"><param name=\"city\"><![CDATA[<a>\n&]]></param><param name=\"days\">2</param></function>\
         <function name=\"now\"></function>",
        &["call weather {\"city\":\"<a>\\n&\",\"days\":2}", "call now {}"],
    );
}

#[test]
fn kimi_k3() {
    reads(
        Format::KimiK3,
        "<|open|>response<|sep|>On it.<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool=\"any\" index=\"1\"<|sep|>\
         <|open|>argument key=\"a\" type=\"number\"<|sep|>1<|close|>argument<|sep|><|open|>argument key=\"b\" \
         type=\"string\"<|sep|>1<|close|>argument<|sep|><|close|>call<|sep|><|open|>call tool=\"now\" index=\"2\"<|sep|>\
         <|open|>json type=\"object\"<|sep|>{}<|close|>json<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
        &["say: On it.", "call any {\"a\":1,\"b\":\"1\"}", "call now {}"],
    );
}
