//! The backend on the real model.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "these are tests")]

mod common;

use common::{entries, france, greedy, loaded, text};
use nala_engine::{BatchEntry, DecodeError, SeqId, StateKind, Token};

#[test]
fn the_capital_of_france_is_paris() {
    // With the threads that users get.
    let options = nala_llama::LoadOptions { threads: None, ..common::options() };
    let model = nala_llama::load(&common::model_path(), &options, |_| {}).unwrap();
    let mut backend = (model.backend)().unwrap();
    let prompt = france(&*model.tokenizer);
    assert_eq!(prompt.len(), 42);
    let ends = model.tokenizer.end_tokens();
    let answer = greedy(&mut *backend, ends, &[prompt], 32).remove(0);
    assert!(ends.contains(answer.last().unwrap()), "{answer:?}");
    assert_eq!(text(&*model.tokenizer, &answer), "The capital of France is Paris.");
}

#[test]
fn the_model_is_described() {
    let info = loaded().info;
    assert_eq!(info.arch, "llama");
    assert_eq!(info.n_vocab, 49_152);
    assert_eq!(info.n_embd, 576);
    assert_eq!(info.ctx_train, 8192);
    assert_eq!(info.state, StateKind::Attention);
    assert!(info.description.contains("Q4_1"), "{}", info.description);
    assert!(info.chat_template.unwrap().contains("<|im_start|>"));
    assert_eq!(info.metadata.get("general.architecture").map(String::as_str), Some("llama"));
    assert!(info.parameters > 130_000_000 && info.parameters < 170_000_000);
    assert!(info.tensor_bytes > 90_000_000 && info.tensor_bytes < 100_000_000);
}

#[test]
fn eight_sequences_get_what_each_gets_alone() {
    let model = loaded();
    let mut backend = (model.backend)().unwrap();
    let ends = model.tokenizer.end_tokens();
    let prompts: Vec<Vec<Token>> = [
        "What is the capital of France? Answer with one word.",
        "What is the capital of Italy?",
        "Name three colours.",
        "Write a haiku about rain.",
        "What is 2 + 2?",
        "Tell me about bees.",
        "Who wrote Hamlet?",
        "List the days of the week.",
    ]
    .iter()
    .map(|question| model.tokenizer.encode(&common::chat(question), true).unwrap())
    .collect();
    let alone: Vec<Vec<Token>> =
        prompts.iter().map(|prompt| greedy(&mut *backend, ends, std::slice::from_ref(prompt), 48).remove(0)).collect();
    assert!(alone.iter().any(|tokens| tokens.len() == 48));
    let together = greedy(&mut *backend, ends, &prompts, 48);
    for (alone, together) in alone.iter().zip(&together) {
        assert_eq!(text(&*model.tokenizer, alone), text(&*model.tokenizer, together));
    }
}

#[test]
fn the_same_batch_gives_the_same_logits_bit_by_bit() {
    let model = loaded();
    let mut backend = (model.backend)().unwrap();
    let prompt = france(&*model.tokenizer);
    let mut rows = Vec::new();
    for _ in 0..2 {
        backend.decode(&entries(0, 0, &prompt)).unwrap();
        rows.push(backend.logits(prompt.len() - 1).unwrap().to_vec());
        assert!(backend.truncate(SeqId(0), 0));
    }
    assert_eq!(rows[0].len(), 49_152);
    assert!(rows[0] == rows[1]);
}

#[test]
fn logits_are_there_for_those_that_asked() {
    let model = loaded();
    let mut backend = (model.backend)().unwrap();
    let prompt = france(&*model.tokenizer);
    assert!(backend.logits(0).is_none());
    let mut batch = entries(0, 0, &prompt);
    batch[3].logits = true;
    backend.decode(&batch).unwrap();
    let asked: Vec<usize> = (0..=batch.len()).filter(|&index| backend.logits(index).is_some()).collect();
    assert_eq!(asked, [3, 41]);
    // The row belongs to entry 3: the same as a batch that ends there.
    let row = backend.logits(3).unwrap().to_vec();
    backend.decode(&entries(1, 0, &prompt[..4])).unwrap();
    let best = common::argmax(&row);
    assert_eq!(best, common::argmax(backend.logits(3).unwrap()));
}

#[test]
fn a_cut_sequence_goes_on_as_if_nothing_had_been() {
    let model = loaded();
    let mut backend = (model.backend)().unwrap();
    let prompt = france(&*model.tokenizer);
    backend.decode(&entries(0, 0, &prompt[..30])).unwrap();
    backend.decode(&entries(0, 30, &prompt[30..])).unwrap();
    let expected = backend.logits(prompt.len() - 31).unwrap().to_vec();
    backend.decode(&entries(0, 42, &[7, 8, 9])).unwrap();
    assert!(backend.truncate(SeqId(0), 30));
    assert!(backend.truncate(SeqId(0), 99), "nothing to cut");
    backend.decode(&entries(0, 30, &prompt[30..])).unwrap();
    assert!(backend.logits(prompt.len() - 31).unwrap() == expected);
}

#[test]
fn invalid_batches_are_refused_and_change_nothing() {
    let model = loaded();
    let mut backend = (model.backend)().unwrap();
    let limits = backend.limits();
    let prompt = france(&*model.tokenizer);
    backend.decode(&entries(0, 0, &prompt)).unwrap();
    let entry = |token, position, seq| BatchEntry { token, position, seq: SeqId(seq), logits: true };
    let next = 42;
    let bad: Vec<(&str, Vec<BatchEntry>)> = vec![
        ("empty", vec![]),
        ("too long", entries(1, 0, &vec![5; limits.batch_tokens as usize + 1])),
        ("token", vec![entry(limits.vocab, next, 0)]),
        ("largest token", vec![entry(u32::MAX, next, 0)]),
        ("sequence", vec![entry(5, 0, limits.sequences)]),
        ("largest sequence", vec![entry(5, 0, u32::MAX)]),
        ("gap", vec![entry(5, next + 1, 0)]),
        ("again", vec![entry(5, next - 1, 0)]),
        ("largest position", vec![entry(5, u32::MAX, 0)]),
        ("not from 0", vec![entry(5, 1, 1)]),
        ("out of order", vec![entry(5, next + 1, 0), entry(5, next, 0)]),
        ("twice", vec![entry(5, next, 0), entry(5, next, 0)]),
        ("second entry", vec![entry(5, 0, 1), entry(limits.vocab, 1, 1)]),
    ];
    for (name, batch) in bad {
        let error = backend.decode(&batch).unwrap_err();
        assert!(matches!(error, DecodeError::InvalidBatch(_)), "{name}: {error}");
    }
    // Nothing has changed: both sequences go on where they were.
    backend.decode(&[entry(5, next, 0), entry(5, 0, 1)]).unwrap();
    assert!(backend.truncate(SeqId(u32::MAX), 0), "nothing there to drop");
    assert!(!backend.truncate(SeqId(u32::MAX), 1));
}

#[test]
fn full_cells_are_told_and_can_be_freed() {
    let path = common::model_path();
    let options = nala_llama::LoadOptions { kv_cells: 300, ..common::options() };
    let model = nala_llama::load(&path, &options, |_| {}).unwrap();
    let mut backend = (model.backend)().unwrap();
    assert_eq!(backend.limits().kv_cells, 300);
    assert_eq!(backend.limits().sequence_tokens, 300);
    backend.decode(&entries(0, 0, &[5; 200])).unwrap();
    backend.decode(&entries(1, 0, &[5; 100])).unwrap();
    assert_eq!(backend.decode(&entries(2, 0, &[5])), Err(DecodeError::NoCells));
    assert_eq!(backend.decode(&entries(0, 200, &[5])), Err(DecodeError::NoCells));
    assert!(backend.truncate(SeqId(1), 0));
    backend.decode(&entries(0, 200, &[5; 100])).unwrap();
    let error = backend.decode(&entries(0, 300, &[5])).unwrap_err();
    assert!(matches!(error, DecodeError::InvalidBatch(_)), "{error}");
}

#[test]
fn odd_options_work() {
    let path = common::model_path();
    for (kv_cells, batch_tokens, micro, max_sequences, threads) in
        [(1, 1, 1, 1, 1), (64, 8, 3, 8, 2), (16, 256, 1, 256, 1), (100, 4096, 4096, 2, 1)]
    {
        let options = nala_llama::LoadOptions {
            threads: std::num::NonZero::new(threads),
            batch_threads: std::num::NonZero::new(2),
            kv_cells,
            batch_tokens,
            micro_batch_tokens: micro,
            max_sequences,
            ..nala_llama::LoadOptions::default()
        };
        let model = nala_llama::load(&path, &options, |_| {}).unwrap();
        let mut backend = (model.backend)().unwrap();
        let limits = backend.limits();
        let most = limits.batch_tokens.min(limits.sequence_tokens) as usize;
        backend.decode(&entries(limits.sequences - 1, 0, &vec![5; most])).unwrap();
        assert!(backend.logits(most - 1).is_some(), "{options:?}");
    }
}

#[test]
fn two_models_can_be_made_at_once() {
    let threads: Vec<_> = (0..3)
        .map(|_| {
            std::thread::spawn(|| {
                let model = loaded();
                let mut backend = (model.backend)().unwrap();
                let prompt = france(&*model.tokenizer);
                greedy(&mut *backend, model.tokenizer.end_tokens(), &[prompt], 8)
            })
        })
        .collect();
    let answers: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert!(answers.iter().all(|answer| *answer == answers[0]));
}

#[test]
fn the_bare_loop_says_the_same() {
    let model = loaded();
    let prompt = france(&*model.tokenizer);
    let run = nala_llama::bare::decode_loop(&common::model_path(), &common::options(), 2, &prompt, 7).unwrap();
    assert_eq!(text(&*model.tokenizer, &run.first_stream), "The capital of France is Paris.");
    assert_eq!((run.prompt_tokens, run.new_tokens), (84, 14));
    assert!(run.decode_rate() > 0.0 && run.prompt_rate() > 0.0);
    let error = nala_llama::bare::decode_loop(&common::model_path(), &common::options(), 2, &prompt, 4000).unwrap_err();
    assert!(error.to_string().contains("KV cells"), "{error}");
}
