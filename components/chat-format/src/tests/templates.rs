//! Which format a template is taken for. The excerpts are what the templates of
//! these models have of their notation.

use crate::Format;

const EXCERPTS: &[(Format, &str, &str)] = &[
    (
        Format::Hermes,
        "Qwen2.5, Qwen3, MiMo-VL",
        "within <tool_call></tool_call> XML tags:\n<tool_call>\n{\\\"name\\\": <function-name>",
    ),
    (Format::Hermes, "Granite 4", "{{- '<|start_of_role|>' }} <tool_call>\n{\"name\": <function-name>, \"arguments\":"),
    (Format::Hermes, "Bielik 3", "użyj formatu <tool_call>{\"name\": \"nazwa_narzędzia\""),
    (
        Format::QwenCoder,
        "Qwen3-Coder, Nemotron 3",
        "{{- '\\n<tool_call>\\n<function=' + tool_call.name + '>\\n' }}{{- '<parameter=' + args_name",
    ),
    (
        Format::SeedOss,
        "Seed-OSS",
        "{%- set toolcall_begin_token = '<seed:tool_call>' -%}<function=example><parameter=a>",
    ),
    (
        Format::Glm,
        "GLM-4.6",
        "{{ '\\n<tool_call>' + tc.name }}\n<arg_key>{{ k }}</arg_key>\n<arg_value>{{ v }}</arg_value>",
    ),
    (
        Format::Hunyuan3,
        "Hy3",
        "{%- set HYTK = ':opensource' %}{%- set toolcalls_begin_token = '<tool_calls{}>'.format(HYTK) %}",
    ),
    (Format::MiniMaxM1, "MiniMax-M1", "<beginning_of_sentence>ai name=assistant\n<tool_calls>\n"),
    (Format::MiniMaxM2, "MiniMax-M2", "{%- set toolcall_begin_token = '<minimax:tool_call>' -%}<invoke name=\"a\">"),
    (
        Format::MiniMaxM3,
        "MiniMax-M3",
        "{%- set ns_token = ']<]minimax[>[' -%}{%- set begin = ns_token ~ '<tool_call>' -%}",
    ),
    (
        Format::DeepSeekR1,
        "R1",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' + tool['type'] + '<｜tool▁sep｜>' + name + '\\n' + '```json'",
    ),
    (Format::DeepSeekV31, "V3.1", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>'+ name + '<｜tool▁sep｜>' + arguments"),
    (
        Format::DeepSeekV32,
        "V3.2",
        "{%- set dsml_token = '｜DSML｜' -%}{{- '\\n\\n<' + dsml_token + 'function_calls>\\n' -}}",
    ),
    (Format::DeepSeekV4, "V4", "{%- set dsml_token = '｜DSML｜' -%}{{- '\\n\\n<' + dsml_token + 'tool_calls>\\n' -}}"),
    (Format::KimiK2, "Kimi K2", "<|tool_calls_section_begin|><|tool_call_begin|>{{ id }}<|tool_call_argument_begin|>"),
    (Format::KimiK3, "Kimi K3", "{{- '<|open|>' + tag -}}{{- '<|sep|>' -}}{{- '<|close|>' + tag + '<|sep|>' -}}"),
    (Format::Mistral, "Small 3.2", "{{- '[TOOL_CALLS]' + name }}{{- '[CALL_ID]' + id }}{{- '[ARGS]' + arguments }}"),
    (Format::Mistral, "Devstral", "{{- \"[TOOL_CALLS]\" + tool['function']['name'] + \"[ARGS]\" + arguments }}"),
    (Format::MistralOld, "Nemo", "{{- \"[TOOL_CALLS][\" }}"),
    (Format::Llama3, "3.1, 3.3", "{{- \"<|python_tag|>\" + tool_call.name + \".call(\" }}{{- '\"parameters\": ' }}"),
    (Format::Llama3, "3.2", "{{- \"Environment: ipython\\n\" }}{{- '\"parameters\": ' }}"),
    (
        Format::Pythonic,
        "Llama 4",
        "in the format of [func_name1(params_name1=params_value1, params_name2=params_value2...)",
    ),
    (Format::Lfm2, "LFM2", "List of tools: <|tool_list_start|>["),
    (Format::Lfm2, "LFM2.5", "\"List of tools: [\" -%}"),
    (Format::Functionary31, "3.1", "{{ '<|python_tag|>' }}{{ '<function=' + name + '>' + arguments + '</function>' }}"),
    (Format::Functionary32, "3.2", "{{ '>>>all\\n' + message['content'] }}"),
    (Format::Harmony, "gpt-oss", "{{- \"<|start|>assistant<|channel|>analysis<|message|>\" }}"),
    (Format::MuseGlimmer, "Muse Glimmer", "{{- '<|start|>assistant to=self<|message|>' }}<atem:function_calls>"),
    (Format::SolarOpen, "Solar Open", "{{- \"<|tool_call:begin|>\" + id + \"<|tool_call:name|>\" }}"),
    (Format::Gemma4, "Gemma 4", "{{- '<|tool_call>call:' + function['name'] + '{' -}}"),
    (Format::CommandR7b, "Command R7B", "<|START_ACTION|>[\n{\"tool_call_id\": \"0\", \"tool_name\":"),
    (Format::CommandRPlus, "Command R+", "{{- '\\nAction:\\n```json\\n[\\n' }}{{- '\"tool_name\": \"' }}"),
    (Format::Apertus, "Apertus", "{%- set tool_calls_token = '<|tools_prefix|>' -%}"),
    (Format::Functools, "Firefunction 2", "prefix function calls with functools marker"),
    (Format::Functools, "Phi-4-mini", "{{ '<|tool|>' + message['tools'] + '<|/tool|>' }}"),
    (Format::Apriel, "Apriel", "<available_tools></available_tools> ... <tool_calls>[{\"name\": <function-name-1>"),
    (Format::NemotronNano2, "Nemotron Nano v2", "{{- '<TOOLCALL>[' -}}"),
    (
        Format::GigaChat3,
        "GigaChat 3",
        "{%- set t = namespace(role_sep=\"<|role_sep|>\\n\") -%}'role': 'function call',",
    ),
    (
        Format::GigaChat31,
        "GigaChat 3.1",
        "role_sep=\"<|role_sep|>\\n\", function_call=\"<|function_call|>\" function call",
    ),
    (Format::Granite3, "Granite 3.3", "respond only with <|tool_call|> followed by a JSON list of tools used"),
    (
        Format::MiniCpm5,
        "MiniCPM5",
        "<function name=\"function-name\"><param name=\"param-name\">param-value</param></function>",
    ),
    (
        Format::Generic,
        "Gemma 2 and 3",
        "{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}",
    ),
    (
        Format::Generic,
        "ChatML",
        "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}<think>",
    ),
    (Format::Generic, "none", ""),
];

#[test]
fn a_template_tells_the_format() {
    for (format, model, excerpt) in EXCERPTS {
        assert_eq!(Format::of_template(excerpt), *format, "{model}");
    }
    for format in Format::ALL {
        assert!(EXCERPTS.iter().any(|(of, _, _)| of == format), "{format:?}");
    }
}

#[test]
fn markers_are_those_of_the_notation() {
    assert_eq!(Format::Hermes.markers(), ["<think>", "</think>", "<tool_call>", "</tool_call>"]);
    assert!(Format::Mistral.markers().contains(&"[ARGS]"));
    for marker in ["<|channel|>", "<|message|>", "<|constrain|>", "<|call|>", "<|start|>", "<|end|>"] {
        assert!(Format::Harmony.markers().contains(&marker), "{marker}");
    }
}
