//! How the model is run.

use std::num::NonZeroUsize;

use clap::Args;
use nala_llama::LoadOptions;

use super::parsers::within;

/// More KV cells, sequences and tokens of a batch than these are refused by
/// the backend, which is asked when minutes of loading may be over.
const MAX_KV_CELLS: u32 = 1 << 24;
const MAX_SEQUENCES: u32 = 256;
const MAX_BATCH_TOKENS: u32 = 1 << 20;

/// How the model is run.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Engine")]
pub(crate) struct EngineArgs {
    /// Threads that compute [default: the CPUs granted to this process]
    #[arg(long, value_name = "N", env = "NALA_THREADS", value_parser = threads, allow_negative_numbers = true)]
    pub(crate) threads: Option<NonZeroUsize>,

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
}

fn threads(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "must be a whole number of at least 1".to_owned())
}
