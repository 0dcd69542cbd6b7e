//! What architectures of this llama.cpp have in common, read off its sources:
//! the assertions and the shapes in `src/models`.

/// Those that read numbers of heads a layer.
const HEADS_BY_LAYER: [&str; 17] = [
    "deci",
    "dots3note",
    "gemma4",
    "granite",
    "granitemoe",
    "granitehybrid",
    "granite_swa",
    "graniteswitch",
    "laguna",
    "mimo2",
    "nemotron_h",
    "nemotron_h_moe",
    "openelm",
    "plamo2",
    "plamo3",
    "spark2_5",
    "step35",
];

/// Those that read numbers of key and value heads a layer, beside the above;
/// mostly 0 for layers that have no attention.
const SHARED_HEADS_BY_LAYER: [&str; 7] =
    ["bailingmoe3", "glm5-next", "jamba", "kimi-k3", "kimi-linear", "lfm2", "lfm2moe"];

/// Those that read a width of the feed-forward part a layer.
const WIDTHS_BY_LAYER: [&str; 8] =
    ["deci", "gemma4", "hunyuan-moe", "nemotron_h", "nemotron_h_moe", "openelm", "plamo3", "qwen3next"];

/// Those that end the process where keys and values have other lengths.
const ONE_WIDTH: [&str; 78] = [
    "afmoe",
    "apertus",
    "arcee",
    "arctic",
    "baichuan",
    "bailingmoe2",
    "bitnet",
    "bloom",
    "chameleon",
    "chatglm",
    "codeshell",
    "cogvlm",
    "cohere2",
    "cohere2moe",
    "command-r",
    "dbrx",
    "deci",
    "deepseek",
    "dots1",
    "dream",
    "ernie4_5",
    "ernie4_5-moe",
    "exaone",
    "exaone4",
    "exaone-moe",
    "falcon",
    "glm4",
    "glm4moe",
    "gpt2",
    "gptneox",
    "granite",
    "granitemoe",
    "granitehybrid",
    "granite_swa",
    "graniteswitch",
    "grok",
    "grovemoe",
    "hunyuan-moe",
    "hunyuan-dense",
    "hunyuan_vl",
    "hy_v3",
    "internlm2",
    "jais",
    "jais2",
    "lfm2",
    "lfm2moe",
    "llada",
    "llada-moe",
    "llama",
    "llama4",
    "maincoder",
    "maple",
    "minimax-m2",
    "mistral3",
    "mpt",
    "nemotron",
    "olmo",
    "olmo2",
    "olmoe",
    "openelm",
    "orion",
    "paddleocr",
    "pangu-embedded",
    "phi2",
    "phi3",
    "phimoe",
    "plamo",
    "qwen",
    "qwen2",
    "qwen2moe",
    "qwen2vl",
    "qwen3",
    "qwen3moe",
    "qwen3vl",
    "qwen3vlmoe",
    "refact",
    "smollm3",
    "xverse",
];

/// The same for others of them, whose names go on.
const ONE_WIDTH_MORE: [&str; 15] = [
    "qwen3next",
    "qwen35",
    "qwen35moe",
    "rnd1",
    "seed_oss",
    "smallthinker",
    "stablelm",
    "starcoder",
    "starcoder2",
    "talkie",
    "mellum",
    "nanbeige",
    "nemotron_h",
    "nemotron_h_moe",
    "minimax-01",
];

/// Those that end the process where not the whole head is rotated.
const WHOLE_ROTATION: [&str; 57] = [
    "apertus",
    "arcee",
    "arctic",
    "baichuan",
    "chameleon",
    "codeshell",
    "cogvlm",
    "cohere2moe",
    "dbrx",
    "deci",
    "deepseek",
    "dots1",
    "dream",
    "ernie4_5",
    "ernie4_5-moe",
    "exaone",
    "exaone4",
    "exaone-moe",
    "falcon",
    "granite",
    "granitemoe",
    "granite_swa",
    "graniteswitch",
    "grok",
    "grovemoe",
    "hunyuan-moe",
    "hunyuan-dense",
    "hunyuan_vl",
    "hy_v3",
    "internlm2",
    "jais2",
    "llada",
    "llada-moe",
    "llama",
    "llama4",
    "maincoder",
    "mellum",
    "mistral3",
    "nemotron",
    "olmo",
    "olmo2",
    "olmoe",
    "orion",
    "paddleocr",
    "pangu-embedded",
    "plamo",
    "qwen2",
    "qwen2moe",
    "qwen2vl",
    "qwen3",
    "qwen3moe",
    "rnd1",
    "seed_oss",
    "smallthinker",
    "smollm3",
    "starcoder2",
    "xverse",
];

/// Those that are no language model on their own: parts of pictures and sound,
/// and drafts that need the model they draft for. Loading or running them ends
/// the process.
const NOT_ALONE: [&str; 9] =
    ["clip", "clef", "dflash", "eagle3", "gemma4-assistant", "hrm_text", "pockettts", "qwen3tts", "wavtokenizer-dec"];

/// Those whose tokens look at the ones behind them as well, whatever the file says
/// (`causal_attn = false` in their `load_arch_hparams`): they fill in or encode a text
/// and do not continue one, and a text that is decoded in parts gives something else.
const SEES_ALL: [&str; 5] = ["dream", "gemma-embedding", "llada", "llada-moe", "rnd1"];

/// Those that end the process where they have no experts.
const EXPERTS: [&str; 7] =
    ["bailingmoe2", "glm4moe", "grovemoe", "llada-moe", "smallthinker", "lfm2moe", "ernie4_5-moe"];

/// Whether a number may differ between the layers of an architecture. Where it
/// does and the architecture reads the first only, the shapes of the tensors
/// pass, and those of the cache contradict them.
pub(super) fn may_differ(arch: &str, name: &str) -> bool {
    match name {
        "attention.head_count" => HEADS_BY_LAYER.contains(&arch),
        "attention.head_count_kv" => HEADS_BY_LAYER.contains(&arch) || SHARED_HEADS_BY_LAYER.contains(&arch),
        "feed_forward_length" => WIDTHS_BY_LAYER.contains(&arch),
        _ => true,
    }
}

/// Whether keys and values must have one length.
pub(super) fn has_heads_of_one_width(arch: &str) -> bool {
    ONE_WIDTH.contains(&arch) || ONE_WIDTH_MORE.contains(&arch)
}

/// Whether `rope.dimension_count` must be the length of a key.
pub(super) fn rotates_whole_heads(arch: &str) -> bool {
    WHOLE_ROTATION.contains(&arch)
}

/// Whether the architecture needs experts.
pub(super) fn needs_experts(arch: &str) -> bool {
    EXPERTS.contains(&arch)
}

/// Whether a model of the architecture can continue text on its own.
pub(super) fn stands_alone(arch: &str) -> bool {
    !NOT_ALONE.contains(&arch) && !SEES_ALL.contains(&arch)
}
