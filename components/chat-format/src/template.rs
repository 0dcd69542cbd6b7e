//! Which notation a chat template belongs to.

use crate::Format;

/// A format, and the texts that a template of it has. The first that fits is it.
type Signs = (Format, &'static [&'static str]);

const SIGNS: &[Signs] = &[
    (Format::DeepSeekV4, &["｜DSML｜", "'tool_calls>"]),
    (Format::DeepSeekV32, &["｜DSML｜"]),
    (Format::DeepSeekR1, &["<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "```json"]),
    (Format::DeepSeekV31, &["<｜tool▁call▁begin｜>", "<｜tool▁sep｜>"]),
    (Format::KimiK3, &["<|open|>", "<|close|>", "<|sep|>"]),
    (Format::KimiK2, &["<|tool_calls_section_begin|>"]),
    (Format::MiniMaxM3, &["]<]minimax[>["]),
    (Format::MiniMaxM2, &["<minimax:tool_call>"]),
    (Format::MuseGlimmer, &["<atem:function_calls>"]),
    (Format::SeedOss, &["<seed:tool_call>"]),
    (Format::SolarOpen, &["<|tool_call:begin|>"]),
    (Format::Hunyuan3, &["<tool_calls{}>", ":opensource"]),
    (Format::Hunyuan3, &["<tool_calls:opensource>"]),
    (Format::Glm, &["<arg_key>", "<arg_value>"]),
    (Format::MiniCpm5, &["<function name=\"", "<param name=\""]),
    (Format::QwenCoder, &["<function=", "<parameter="]),
    (Format::Functionary31, &["<function="]),
    (Format::Functionary32, &[">>>all"]),
    (Format::Harmony, &["<|channel|>", "<|message|>", "<|start|>"]),
    (Format::Gemma4, &["<|tool_call>call:"]),
    (Format::Mistral, &["[TOOL_CALLS]", "[ARGS]"]),
    (Format::MistralOld, &["[TOOL_CALLS]"]),
    (Format::CommandR7b, &["<|START_ACTION|>"]),
    (Format::CommandRPlus, &["Action:", "```json", "tool_name"]),
    (Format::Apertus, &["<|tools_prefix|>"]),
    (Format::Functools, &["functools"]),
    // Phi-4-mini.
    (Format::Functools, &["<|tool|>", "<|/tool|>"]),
    (Format::NemotronNano2, &["<TOOLCALL>"]),
    (Format::MiniMaxM1, &["<tool_calls>", "<beginning_of_sentence>"]),
    (Format::Apriel, &["<tool_calls>", "<available_tools>"]),
    (Format::GigaChat31, &["<|function_call|>"]),
    (Format::GigaChat3, &["function call", "<|role_sep|>"]),
    (Format::Lfm2, &["<|tool_call_start|>"]),
    (Format::Lfm2, &["<|tool_list_start|>"]),
    (Format::Lfm2, &["List of tools: ["]),
    (Format::Pythonic, &["<|python_start|>"]),
    (Format::Pythonic, &["[func_name1("]),
    (Format::Llama3, &["<|python_tag|>"]),
    (Format::Llama3, &["ipython", "\"parameters\""]),
    (Format::Granite3, &["<|tool_call|>"]),
    (Format::Hermes, &["<tool_call>"]),
];

/// The format of a template's model.
pub(crate) fn format(source: &str) -> Format {
    let found = SIGNS.iter().find(|(_, texts)| texts.iter().all(|text| source.contains(text)));
    found.map_or(Format::Generic, |(format, _)| *format)
}
