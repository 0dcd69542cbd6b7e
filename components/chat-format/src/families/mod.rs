//! The notations of the families.

mod channels;
mod json;
mod tags;

use crate::Format;
use crate::notation::Notation;

/// What a format's notation consists of.
pub(crate) fn notation(format: Format) -> &'static Notation {
    match format {
        Format::Generic => &json::GENERIC,
        Format::Hermes => &json::HERMES,
        Format::Llama3 => &json::LLAMA_3,
        Format::Pythonic => &json::PYTHONIC,
        Format::Lfm2 => &json::LFM_2,
        Format::MistralOld => &json::MISTRAL_OLD,
        Format::Mistral => &json::MISTRAL,
        Format::Granite3 => &json::GRANITE_3,
        Format::Functools => &json::FUNCTOOLS,
        Format::Apertus => &json::APERTUS,
        Format::Apriel => &json::APRIEL,
        Format::NemotronNano2 => &json::NEMOTRON_NANO_2,
        Format::MiniMaxM1 => &json::MINIMAX_M1,
        Format::CommandRPlus => &json::COMMAND_R_PLUS,
        Format::CommandR7b => &json::COMMAND_R_7B,
        Format::GigaChat3 => &json::GIGACHAT_3,
        Format::GigaChat31 => &json::GIGACHAT_3_1,
        Format::QwenCoder => &tags::QWEN_CODER,
        Format::SeedOss => &tags::SEED_OSS,
        Format::Glm => &tags::GLM,
        Format::Hunyuan3 => &tags::HUNYUAN_3,
        Format::MiniMaxM2 => &tags::MINIMAX_M2,
        Format::MiniMaxM3 => &tags::MINIMAX_M3,
        Format::DeepSeekV32 => &tags::DEEPSEEK_V3_2,
        Format::DeepSeekV4 => &tags::DEEPSEEK_V4,
        Format::MiniCpm5 => &tags::MINICPM_5,
        Format::KimiK3 => &tags::KIMI_K3,
        Format::Functionary31 => &channels::FUNCTIONARY_3_1,
        Format::Functionary32 => &channels::FUNCTIONARY_3_2,
        Format::DeepSeekR1 => &channels::DEEPSEEK_R1,
        Format::DeepSeekV31 => &channels::DEEPSEEK_V3_1,
        Format::KimiK2 => &channels::KIMI_K2,
        Format::SolarOpen => &channels::SOLAR_OPEN,
        Format::Harmony => &channels::HARMONY,
        Format::MuseGlimmer => &channels::MUSE_GLIMMER,
        Format::Gemma4 => &channels::GEMMA_4,
    }
}
