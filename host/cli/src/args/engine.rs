//! How the model is run.

use std::num::NonZeroUsize;

use clap::{Args, ValueEnum};
use nala_engine::EngineConfig;
use nala_llama::{FlashAttention, KvType, LoadOptions, Pinning};

use super::parsers::within;

/// More KV cells, sequences and tokens of a batch than these are refused by
/// the backend, which is asked when minutes of loading may be over.
const MAX_KV_CELLS: u32 = 1 << 24;
const MAX_SEQUENCES: u32 = 256;
const MAX_BATCH_TOKENS: u32 = 1 << 20;
const MAX_EMBEDDING_TOKENS: u32 = 1 << 20;
/// More guesses than this never come true.
const MAX_DRAFT: u32 = 64;

/// How the model is run.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Engine")]
pub(crate) struct EngineArgs {
    /// Threads that compute [default: the CPUs granted to this process]
    #[arg(long, value_name = "N", env = "NALA_THREADS", value_parser = threads, allow_negative_numbers = true)]
    pub(crate) threads: Option<NonZeroUsize>,

    /// Whether each of them keeps to a CPU of its own. auto: where there are as many as CPUs;
    /// without, two can meet on one beside other work, and a token takes seconds. off: where
    /// others keep to the same CPUs. Beside another engine give each its part by --threads
    #[arg(long, value_name = "WHEN", default_value = "auto", env = "NALA_PIN_THREADS")]
    pub(crate) pin_threads: PinThreads,

    /// KV cells, one a token of context, shared by all sessions
    #[arg(
        long,
        value_name = "N",
        default_value_t = LoadOptions::default().kv_cells,
        env = "NALA_KV_CELLS",
        value_parser = within(1..=MAX_KV_CELLS),
        allow_negative_numbers = true
    )]
    pub(crate) kv_cells: u32,

    /// Sequences that are computed together
    #[arg(
        long,
        value_name = "N",
        default_value_t = LoadOptions::default().max_sequences,
        env = "NALA_MAX_SEQUENCES",
        value_parser = within(1..=MAX_SEQUENCES),
        allow_negative_numbers = true
    )]
    pub(crate) max_sequences: u32,

    /// Tokens of one batch at most; not fewer than sequences
    #[arg(
        long,
        value_name = "N",
        default_value_t = LoadOptions::default().batch_tokens,
        env = "NALA_BATCH_TOKENS",
        value_parser = within(1..=MAX_BATCH_TOKENS),
        allow_negative_numbers = true
    )]
    pub(crate) batch_tokens: u32,

    /// Tokens of the longest text that is embedded, and no more than KV cells; the
    /// first long one takes as many cells beside those
    #[arg(
        long,
        value_name = "N",
        default_value_t = LoadOptions::default().embedding_tokens,
        env = "NALA_EMBEDDING_TOKENS",
        value_parser = within(1..=MAX_EMBEDDING_TOKENS),
        allow_negative_numbers = true
    )]
    pub(crate) embedding_tokens: u32,

    /// Fused attention kernel; auto takes it where llama.cpp supports it
    #[arg(long, value_name = "WHEN", default_value = "auto", env = "NALA_FLASH_ATTENTION")]
    pub(crate) flash_attention: Attention,

    /// How KV cells keep keys: fewer bits hold more context in the same memory
    #[arg(long, value_name = "TYPE", default_value = "f16", env = "NALA_CACHE_TYPE_K")]
    pub(crate) cache_type_k: CacheType,

    /// How KV cells keep values; q8_0 and q4_0 need flash attention
    #[arg(long, value_name = "TYPE", default_value = "f16", env = "NALA_CACHE_TYPE_V")]
    pub(crate) cache_type_v: CacheType,

    /// Tokens guessed ahead for a stream at most, where that is measured to be
    /// faster; 0 turns guessing off
    #[arg(
        long,
        value_name = "N",
        default_value_t = EngineConfig::default().max_draft,
        env = "NALA_MAX_DRAFT",
        value_parser = within(0..=MAX_DRAFT),
        allow_negative_numbers = true
    )]
    pub(crate) max_draft: u32,
}

/// When threads that compute are pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PinThreads {
    Auto,
    Off,
}

impl From<PinThreads> for Pinning {
    fn from(pin: PinThreads) -> Self {
        match pin {
            PinThreads::Auto => Self::Auto,
            PinThreads::Off => Self::Off,
        }
    }
}

/// When attention is computed by the fused kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Attention {
    Auto,
    On,
    Off,
}

impl From<Attention> for FlashAttention {
    fn from(attention: Attention) -> Self {
        match attention {
            Attention::Auto => Self::Auto,
            Attention::On => Self::On,
            Attention::Off => Self::Off,
        }
    }
}

/// How numbers are kept in KV cells, by the names of llama.cpp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CacheType {
    /// 16 bits a number
    F16,
    /// 8.5 bits a number
    #[value(name = "q8_0")]
    Q8_0,
    /// 4.5 bits a number; answers change visibly
    #[value(name = "q4_0")]
    Q4_0,
}

impl From<CacheType> for KvType {
    fn from(cache: CacheType) -> Self {
        match cache {
            CacheType::F16 => Self::F16,
            CacheType::Q8_0 => Self::Q8_0,
            CacheType::Q4_0 => Self::Q4_0,
        }
    }
}

fn threads(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "must be a whole number of at least 1".to_owned())
}
