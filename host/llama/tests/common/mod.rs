//! What the tests of this crate share: the real model and plain decode loops.

#![allow(
    dead_code,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "each test binary uses a part of it, and these are tests"
)]

pub(crate) mod gguf;
pub(crate) mod made;

use std::num::NonZero;
use std::path::{Path, PathBuf};

use nala_engine::{Backend, BatchEntry, LoadedModel, SeqId, Token, Tokenizer};
use nala_llama::{LoadOptions, load};

/// The model file that tests run on.
pub(crate) fn model_path() -> PathBuf {
    installed("NALA_TEST_MODEL", "SmolLM2-135M-Instruct.Q4_1.gguf")
}

/// A second one, with layers that have a sliding window of 512 tokens.
pub(crate) fn gemma_path() -> PathBuf {
    installed("NALA_TEST_GEMMA", "tests/gemma-3-270m-q4_k_m.gguf")
}

fn installed(variable: &str, file: &str) -> PathBuf {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let path = std::env::var_os(variable).map_or_else(|| models.join(file), PathBuf::from);
    assert!(path.is_file(), "no model at {}: run `cargo xtask setup --tests`", path.display());
    path
}

/// Options with few cells, so that tests are quick, and one thread, since tests
/// run beside each other and ggml's threads wait for each other by spinning.
pub(crate) fn options() -> LoadOptions {
    LoadOptions {
        threads: NonZero::new(1),
        kv_cells: 2048,
        batch_tokens: 256,
        max_sequences: 16,
        embedding_tokens: 256,
        ..LoadOptions::default()
    }
}

pub(crate) fn loaded() -> LoadedModel {
    load(&model_path(), &options(), |_| {}).expect("the test model loads")
}

/// The model's chat format around one question. The default system message is
/// the one its template adds.
pub(crate) fn chat(question: &str) -> String {
    format!(
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
    )
}

pub(crate) fn france(tokenizer: &dyn Tokenizer) -> Vec<Token> {
    tokenizer.encode(&chat("What is the capital of France? Answer with one word."), true).expect("encodes")
}

pub(crate) fn text(tokenizer: &dyn Tokenizer, tokens: &[Token]) -> String {
    let mut bytes = Vec::new();
    for &token in tokens {
        tokenizer.piece(token, false, &mut bytes).expect("in the vocabulary");
    }
    String::from_utf8(bytes).expect("whole characters")
}

pub(crate) fn entries(seq: u32, from: u32, tokens: &[Token]) -> Vec<BatchEntry> {
    (from..)
        .zip(tokens)
        .enumerate()
        .map(|(index, (position, &token))| BatchEntry {
            token,
            position,
            seq: SeqId(seq),
            logits: index + 1 == tokens.len(),
        })
        .collect()
}

pub(crate) fn argmax(logits: &[f32]) -> Token {
    let mut best = 0;
    for (index, &value) in logits.iter().enumerate() {
        if value > logits[best] {
            best = index;
        }
    }
    Token::try_from(best).expect("in the vocabulary")
}

/// Greedy decoding of several prompts, each in a sequence of its own, all
/// single tokens in one batch. An end token ends a sequence and is kept.
pub(crate) fn greedy(
    backend: &mut dyn Backend,
    ends: &[Token],
    prompts: &[Vec<Token>],
    n_new: usize,
) -> Vec<Vec<Token>> {
    let mut out: Vec<Vec<Token>> = Vec::new();
    for (seq, prompt) in (0..).zip(prompts) {
        backend.decode(&entries(seq, 0, prompt)).expect("prefill");
        out.push(vec![argmax(backend.logits(prompt.len() - 1).expect("logits"))]);
    }
    loop {
        let mut running = Vec::new();
        let mut batch = Vec::new();
        for (seq, tokens) in out.iter().enumerate() {
            let last = *tokens.last().expect("one at least");
            if tokens.len() < n_new && !ends.contains(&last) {
                running.push(seq);
                batch.push(BatchEntry {
                    token: last,
                    position: (prompts[seq].len() + tokens.len() - 1) as u32,
                    seq: SeqId(seq as u32),
                    logits: true,
                });
            }
        }
        if batch.is_empty() {
            break;
        }
        backend.decode(&batch).expect("decode");
        for (row, seq) in running.into_iter().enumerate() {
            out[seq].push(argmax(backend.logits(row).expect("logits")));
        }
    }
    for seq in 0..prompts.len() {
        assert!(backend.truncate(SeqId(seq as u32), 0));
    }
    out
}
