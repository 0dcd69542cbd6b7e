//! A bare loop around `llama_decode`: the floor that the engine is measured
//! against.
//!
//! The same model, context parameters and threads as the backend, the most
//! likely token of each stream by a plain search, and nothing else: no
//! scheduler, no checks, no text.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use llama_cpp_2::model::LlamaModel;
use llama_cpp_sys_2 as sys;
use nala_engine::{BatchEntry, SeqId, Token};
use thiserror::Error;

use crate::batch::Batch;
use crate::context::Context;
use crate::error::LoadError;
use crate::load;
use crate::options::LoadOptions;
use crate::threads::Cpus;

/// What a bare loop took.
#[derive(Debug, Clone, PartialEq)]
pub struct BareRun {
    /// Tokens of the prompts of all streams.
    pub prompt_tokens: u64,
    /// How long they took.
    pub prompt_time: Duration,
    /// Tokens decoded in the loop, of all streams.
    pub new_tokens: u64,
    /// How long they took, from the first `llama_decode` of single tokens on.
    pub decode_time: Duration,
    /// The tokens of the first stream.
    pub first_stream: Vec<Token>,
}

impl BareRun {
    /// Tokens decoded a second, all streams together.
    #[must_use]
    pub fn decode_rate(&self) -> f64 {
        self.new_tokens as f64 / self.decode_time.as_secs_f64()
    }

    /// Prompt tokens a second, all streams together.
    #[must_use]
    pub fn prompt_rate(&self) -> f64 {
        self.prompt_tokens as f64 / self.prompt_time.as_secs_f64()
    }
}

/// Why a bare loop did not run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BareError {
    /// The model was not loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// There is no context, or the work does not fit into it.
    #[error("{0}")]
    Context(String),
    /// `llama_decode` failed.
    #[error("llama_decode returned {0}")]
    Decode(i32),
}

/// Prefills `prompt` into each of `streams` sequences and then decodes `n_new`
/// tokens of each, all streams in one batch, always the most likely token, past
/// every end token.
///
/// It runs on a thread of its own: the one that computes may be left with a single CPU,
/// on which whatever its caller does next would run as well.
///
/// # Errors
/// See [`BareError`].
pub fn decode_loop(
    path: &Path,
    options: &LoadOptions,
    streams: u32,
    prompt: &[Token],
    n_new: u32,
) -> Result<BareRun, BareError> {
    options.check().map_err(LoadError::Options)?;
    let (model, _) = load::read(path, |_| {})?;
    let vocab = usize::try_from(model.vocab().n_tokens()).unwrap_or(0);
    fits(options, streams, prompt, n_new, vocab).map_err(BareError::Context)?;
    let work = Work { model, options: options.settled(), cpus: Cpus::of_this_thread(options), vocab };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("bare loop".to_owned());
        let thread = thread.spawn_scoped(scope, || compute(&work, streams, prompt, n_new));
        let thread = thread.map_err(|error| BareError::Context(format!("no thread can be started: {error}")))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// What is settled before the thread that computes begins.
struct Work {
    model: Arc<LlamaModel>,
    options: LoadOptions,
    cpus: Cpus,
    vocab: usize,
}

fn compute(work: &Work, streams: u32, prompt: &[Token], n_new: u32) -> Result<BareRun, BareError> {
    let Work { model, options, cpus, vocab } = work;
    let vocab = *vocab;
    let mut context = Context::new(Arc::clone(model), options, cpus).map_err(BareError::Context)?;
    let mut batch = Batch::new(options.batch_tokens)
        .ok_or_else(|| BareError::Context("not enough memory for a batch".to_owned()))?;

    let begin = Instant::now();
    let mut last = Vec::new();
    for seq in 0..streams {
        let mut position = 0;
        let mut row = 0;
        for part in prompt.chunks(options.batch_tokens as usize) {
            let entries: Vec<BatchEntry> = (position..)
                .zip(part)
                .enumerate()
                .map(|(index, (position, &token))| BatchEntry {
                    token,
                    position,
                    seq: SeqId(seq),
                    logits: index + 1 == part.len(),
                })
                .collect();
            run(&mut context, &mut batch, &entries)?;
            position += u32::try_from(part.len()).unwrap_or(0);
            row = part.len() - 1;
        }
        last.push(most_likely(&context, row, vocab));
    }
    let prompt_time = begin.elapsed();

    let mut first_stream: Vec<Token> = last.first().copied().into_iter().collect();
    let mut entries: Vec<BatchEntry> = Vec::with_capacity(last.len());
    let begin = Instant::now();
    for step in 0..n_new {
        let position = u32::try_from(prompt.len()).unwrap_or(0) + step;
        entries.clear();
        entries.extend((0..).zip(&last).map(|(seq, &token)| BatchEntry {
            token,
            position,
            seq: SeqId(seq),
            logits: true,
        }));
        run(&mut context, &mut batch, &entries)?;
        for (row, last) in last.iter_mut().enumerate() {
            *last = most_likely(&context, row, vocab);
        }
        first_stream.extend(last.first());
    }
    Ok(BareRun {
        prompt_tokens: u64::from(streams) * prompt.len() as u64,
        prompt_time,
        new_tokens: u64::from(streams) * u64::from(n_new),
        decode_time: begin.elapsed(),
        first_stream,
    })
}

/// Says what does not fit, if anything: llama.cpp would abort the process.
fn fits(options: &LoadOptions, streams: u32, prompt: &[Token], n_new: u32, vocab: usize) -> Result<(), String> {
    let cells = (prompt.len() as u64 + u64::from(n_new)) * u64::from(streams);
    if prompt.is_empty() || streams == 0 {
        return Err("a bare loop needs a prompt and at least one stream".to_owned());
    }
    if prompt.iter().any(|&token| token as usize >= vocab) {
        return Err("the prompt has tokens outside of the vocabulary".to_owned());
    }
    if streams > options.max_sequences.min(options.batch_tokens) {
        return Err(format!("{streams} streams are more than the options allow"));
    }
    if cells > u64::from(options.kv_cells) {
        return Err(format!("{cells} tokens do not fit into {} KV cells", options.kv_cells));
    }
    if options.batch_tokens > options.kv_cells {
        return Err("batch_tokens is larger than kv_cells".to_owned());
    }
    Ok(())
}

fn run(context: &mut Context, batch: &mut Batch, entries: &[BatchEntry]) -> Result<(), BareError> {
    batch.fill(entries);
    // SAFETY: the context is alive and used by this thread alone; `fits` has
    // checked what llama.cpp would abort on.
    match unsafe { sys::llama_decode(context.raw().as_ptr(), batch.raw()) } {
        0 => Ok(()),
        code => Err(BareError::Decode(code)),
    }
}

/// The most likely token after entry `row` of the last batch.
fn most_likely(context: &Context, row: usize, vocab: usize) -> Token {
    const LANES: usize = 16;
    let logits = i32::try_from(row).ok().and_then(|row| context.logits(row, vocab)).unwrap_or_default();
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let chunks = logits.chunks_exact(LANES);
    let rest = chunks.remainder().iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane = if value > *lane { value } else { *lane };
        }
    }
    let most = lanes.into_iter().fold(rest, f32::max);
    let index = logits.iter().position(|&value| value == most).unwrap_or(0);
    Token::try_from(index).unwrap_or(0)
}
