//! The notations there are.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::families::notation;
use crate::template;

/// A notation for tool calls and thoughts.
///
/// | format | models | calls | thoughts | when forced |
/// |---|---|---|---|---|
/// | `Generic` | whose template knows no tools | as `Hermes`; JSON without marker or in a fence | `<think>` | as `Hermes` |
/// | `Hermes` | Hermes 2 and 3, Qwen2.5, Qwen3, QwQ, Granite 4, MiMo-VL, Reka Edge, Bielik | `<tool_call>{"name":..,"arguments":{..}}</tool_call>` | `<think>` | several calls |
/// | `Llama3` | Llama 3.1 to 3.3 | `{"name":..,"parameters":{..}}`, also after `<\|python_tag\|>` | `<think>` | one call |
/// | `Pythonic` | Llama 4 | `[f(a="x")]` | | one call, as JSON |
/// | `Lfm2` | LFM2, LFM2.5 | `<\|tool_call_start\|>[f(a="x")]<\|tool_call_end\|>` | `<think>` | several calls, as JSON |
/// | `MistralOld` | Mistral Nemo, Mistral Small up to 3.1 | `[TOOL_CALLS][{..}]` | `[THINK]` | several calls |
/// | `Mistral` | Mistral Small 3.2, Devstral, Ministral 3, Magistral | `[TOOL_CALLS]f[CALL_ID]id[ARGS]{..}` | `[THINK]` | one call |
/// | `Granite3` | Granite 3.x | `<\|tool_call\|>[{..}]` | `<think>`, then `<response>` | several calls |
/// | `Functools` | Firefunction 2, Phi-4-mini | `functools[{..}]` | | several calls |
/// | `Apertus` | Apertus | `<\|tools_prefix\|>[{"f":{..}}]<\|tools_suffix\|>` | `<\|inner_prefix\|>` | several calls |
/// | `Apriel` | Apriel 1.5 and 1.6 | `<tool_calls>[{..}]</tool_calls>` | up to `[BEGIN FINAL RESPONSE]` | several calls |
/// | `NemotronNano2` | Nemotron Nano v2 | `<TOOLCALL>[{..}]</TOOLCALL>` | `<think>` | several calls |
/// | `MiniMaxM1` | MiniMax-M1 | `<tool_calls>`, a JSON object a line | `<think>` | several calls |
/// | `CommandRPlus` | Command R+ | `Action:` and fenced `[{"tool_name":..,"parameters":{..}}]` | | several calls |
/// | `CommandR7b` | Command R7B, Command A | `<\|START_ACTION\|>[{..}]<\|END_ACTION\|>` | `<\|START_THINKING\|>` | several calls |
/// | `GigaChat3` | GigaChat 3 | `function call<\|role_sep\|>` and JSON | | one call |
/// | `GigaChat31` | GigaChat 3.1 | `<\|function_call\|>` and JSON | | one call |
/// | `QwenCoder` | Qwen3-Coder, Qwen3.5, Nemotron 3, Step 3.5 | `<tool_call><function=f><parameter=a>..` | `<think>` | several calls, as `Hermes` |
/// | `SeedOss` | Seed-OSS | the same in `<seed:tool_call>` | `<seed:think>` | one call, as JSON |
/// | `Glm` | GLM-4.5 to 4.7, Ling 3, Spark 2.5, Laguna | `<tool_call>f<arg_key>a</arg_key><arg_value>..` | `<think>` | one call, as JSON |
/// | `Hunyuan3` | Hy3 | the same, each tag with `:opensource` | `<think:opensource>` | one call, as JSON |
/// | `MiniMaxM2` | MiniMax-M2 | `<minimax:tool_call><invoke name="f"><parameter name="a">..` | `<think>` | several calls, as JSON |
/// | `MiniMaxM3` | MiniMax-M3 | the same with elements named for the arguments, marked by `]<]minimax[>[` | `<mm:think>` | several calls, as JSON |
/// | `DeepSeekV32` | DeepSeek V3.2 | `<｜DSML｜function_calls><｜DSML｜invoke name="f">..` | `<think>` | several calls, as JSON |
/// | `DeepSeekV4` | DeepSeek V4 | `<｜DSML｜tool_calls>..` | `<think>` | several calls, as JSON |
/// | `MiniCpm5` | MiniCPM5 | `<function name="f"><param name="a">..` | `<think>` | several calls, as `Hermes` |
/// | `KimiK3` | Kimi K3 | `<\|open\|>call tool="f"..<\|sep\|>..` | `<\|open\|>think<\|sep\|>` | one call |
/// | `Functionary31` | Functionary 3.1 | `<function=f>{..}</function>` | | one call |
/// | `Functionary32` | Functionary 3.2 | `>>>f` and JSON on the next line | | one call |
/// | `DeepSeekR1` | DeepSeek R1 and V3 | `<｜tool▁call▁begin｜>function<｜tool▁sep｜>f` and fenced JSON | `<think>` | one call |
/// | `DeepSeekV31` | DeepSeek V3.1 | `<｜tool▁call▁begin｜>f<｜tool▁sep｜>{..}` | `<think>` | one call |
/// | `KimiK2` | Kimi K2 | `<\|tool_call_begin\|>functions.f:0<\|tool_call_argument_begin\|>{..}` | `<think>` | one call |
/// | `SolarOpen` | Solar Open | `<\|tool_call:begin\|>id<\|tool_call:name\|>f<\|tool_call:args\|>{..}` | `<\|think\|>` | one call |
/// | `Harmony` | gpt-oss | `<\|channel\|>commentary to=functions.f <\|constrain\|>json<\|message\|>{..}` | the channel `analysis` | one call |
/// | `MuseGlimmer` | Muse Glimmer | `<atem:function_calls><atem:invoke name="f">..` | messages to `self` | one call, as JSON |
/// | `Gemma4` | Gemma 4 | `<\|tool_call>call:f{a:<\|"\|>x<\|"\|>}<tool_call\|>` | `<\|channel>thought` | one call, with JSON arguments |
///
/// "As JSON": plain text between tags, or in Python's notation, cannot be held to
/// a schema by a grammar, so a forced call is written in JSON within the family's
/// own marker. [`Parser`](crate::Parser) reads that as well.
///
/// `<think>` counts only where nothing was said yet, so that a model can write
/// about it; markers that are control tokens count everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// For models whose template knows no tools: the notation of Hermes, of which
    /// the model is told in words.
    Generic,
    /// Hermes 2 and 3, Qwen2.5, Qwen3, QwQ, Granite 4, MiMo-VL, Reka Edge, Bielik.
    Hermes,
    /// Llama 3.1 to 3.3.
    Llama3,
    /// Llama 4.
    Pythonic,
    /// LFM2, LFM2.5.
    Lfm2,
    /// Mistral Nemo, Mistral Small up to 3.1.
    MistralOld,
    /// Mistral Small 3.2, Devstral, Ministral 3, Magistral.
    Mistral,
    /// Granite 3.x.
    Granite3,
    /// Firefunction 2, Phi-4-mini.
    Functools,
    /// Apertus.
    Apertus,
    /// Apriel 1.5 and 1.6.
    Apriel,
    /// Nemotron Nano v2.
    NemotronNano2,
    /// MiniMax-M1.
    MiniMaxM1,
    /// Command R+.
    CommandRPlus,
    /// Command R7B, Command A.
    CommandR7b,
    /// GigaChat 3.
    GigaChat3,
    /// GigaChat 3.1.
    GigaChat31,
    /// Qwen3-Coder, Qwen3.5, Nemotron 3, Step 3.5.
    QwenCoder,
    /// Seed-OSS.
    SeedOss,
    /// GLM-4.5 to 4.7, Ling 3, Spark 2.5, Laguna.
    Glm,
    /// Hy3.
    Hunyuan3,
    /// MiniMax-M2.
    MiniMaxM2,
    /// MiniMax-M3.
    MiniMaxM3,
    /// DeepSeek V3.2.
    DeepSeekV32,
    /// DeepSeek V4.
    DeepSeekV4,
    /// MiniCPM5.
    MiniCpm5,
    /// Kimi K3.
    KimiK3,
    /// Functionary 3.1.
    Functionary31,
    /// Functionary 3.2.
    Functionary32,
    /// DeepSeek R1 and V3.
    DeepSeekR1,
    /// DeepSeek V3.1.
    DeepSeekV31,
    /// Kimi K2.
    KimiK2,
    /// Solar Open.
    SolarOpen,
    /// Gpt-oss.
    Harmony,
    /// Muse Glimmer.
    MuseGlimmer,
    /// Gemma 4.
    Gemma4,
}

impl Format {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::Generic,
        Self::Hermes,
        Self::Llama3,
        Self::Pythonic,
        Self::Lfm2,
        Self::MistralOld,
        Self::Mistral,
        Self::Granite3,
        Self::Functools,
        Self::Apertus,
        Self::Apriel,
        Self::NemotronNano2,
        Self::MiniMaxM1,
        Self::CommandRPlus,
        Self::CommandR7b,
        Self::GigaChat3,
        Self::GigaChat31,
        Self::QwenCoder,
        Self::SeedOss,
        Self::Glm,
        Self::Hunyuan3,
        Self::MiniMaxM2,
        Self::MiniMaxM3,
        Self::DeepSeekV32,
        Self::DeepSeekV4,
        Self::MiniCpm5,
        Self::KimiK3,
        Self::Functionary31,
        Self::Functionary32,
        Self::DeepSeekR1,
        Self::DeepSeekV31,
        Self::KimiK2,
        Self::SolarOpen,
        Self::Harmony,
        Self::MuseGlimmer,
        Self::Gemma4,
    ];

    /// The notation of the model that a chat template belongs to.
    #[must_use]
    pub fn of_template(source: &str) -> Self {
        template::format(source)
    }

    /// The texts that tell the notation's parts apart. Where such a text is a
    /// control token of the model, [`Parser`](crate::Parser) has to see it.
    #[must_use]
    pub fn markers(self) -> &'static [&'static str] {
        static MARKERS: LazyLock<HashMap<Format, Vec<&'static str>>> =
            LazyLock::new(|| Format::ALL.iter().map(|&format| (format, collect(format))).collect());
        MARKERS.get(&self).map_or(&[], Vec::as_slice)
    }

    /// What ends the thought that a prompt has begun by its end, if it has begun
    /// one. To be appended before [`Forced::prefix`](crate::Forced::prefix).
    #[must_use]
    pub fn end_of_thought(self, prompt_tail: &str) -> Option<&'static str> {
        let tail = prompt_tail.trim_end();
        let thoughts = notation(self).thoughts;
        thoughts.iter().find(|thought| tail.ends_with(thought.open.trim_end())).map(|thought| thought.close)
    }
}

fn collect(format: Format) -> Vec<&'static str> {
    let notation = notation(format);
    let thoughts = notation.thoughts.iter().flat_map(|thought| [thought.open.trim_end(), thought.close]);
    let blocks = notation.blocks.iter().flat_map(|block| [block.open.trim_end(), block.close]);
    let mut markers: Vec<&'static str> = Vec::new();
    for marker in thoughts.chain(blocks).chain(notation.silent.iter().copied()).chain(notation.inner.iter().copied()) {
        if !marker.is_empty() && !markers.contains(&marker) {
            markers.push(marker);
        }
    }
    markers
}
