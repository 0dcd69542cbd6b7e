//! Checks of adapters.

use super::backend::{A, B, alone, assert_close, entries};
use super::begun;
use crate::backend::{Backend, LoadedModel, SeqId, Token};

pub(super) fn run(load: &dyn Fn() -> LoadedModel) {
    let model = load();
    let tokens = begun(&*model.tokenizer, "The quick brown fox jumps over the lazy dog.");
    let mut backend = (model.backend)().unwrap();
    let backend = &mut *backend;
    let adapters = backend.adapters().to_vec();
    assert_eq!(adapters, model.info.adapters, "the model's description and the backend name the same adapters");
    assert!(!backend.use_adapter(Some(adapters.len())), "an adapter that is not there");
    assert!(backend.use_adapter(None));
    if adapters.is_empty() {
        return;
    }
    let plain = alone(backend, &tokens);
    for adapter in 0..adapters.len() {
        each_on_its_own(backend, &tokens, adapter, &plain);
        sequences_of_both_go_on(backend, &tokens, adapter);
    }
}

/// Logits after the tokens, computed with an adapter from the first of them on.
fn with(backend: &mut dyn Backend, adapter: Option<usize>, tokens: &[Token]) -> Vec<f32> {
    assert!(backend.use_adapter(adapter));
    alone(backend, tokens)
}

/// The largest distance of two rows.
fn distance(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max)
}

fn each_on_its_own(backend: &mut dyn Backend, tokens: &[Token], adapter: usize, plain: &[f32]) {
    let adapted = with(backend, Some(adapter), tokens);
    assert!(distance(&adapted, plain) > 1e-3, "adapter {adapter} changes nothing: load one that does");
    assert_eq!(with(backend, None, tokens), plain, "the model alone, after adapter {adapter}");
    assert_eq!(with(backend, Some(adapter), tokens), adapted, "adapter {adapter} again");
    assert!(!backend.use_adapter(Some(usize::MAX)), "an adapter that is not there");
    assert_eq!(alone(backend, tokens), adapted, "a refused change changes nothing");
    assert!(backend.use_adapter(None));
}

/// Two sequences, one with the adapter and one without, taking turns.
fn sequences_of_both_go_on(backend: &mut dyn Backend, tokens: &[Token], adapter: usize) {
    let (head, tail) = tokens.split_at(4);
    let want = [with(backend, Some(adapter), tokens), with(backend, None, tokens)];
    let turns: [(SeqId, Option<usize>); 2] = [(A, Some(adapter)), (B, None)];
    for (seq, adapter) in turns {
        assert!(backend.use_adapter(adapter));
        backend.decode(&entries(seq, 0, head)).unwrap();
    }
    for ((seq, adapter), want) in turns.into_iter().zip(&want) {
        assert!(backend.use_adapter(adapter));
        backend.decode(&entries(seq, head.len(), tail)).unwrap();
        assert_close(want, backend.logits(tail.len() - 1).unwrap(), "beside a sequence of another adapter");
    }
    assert!(backend.use_adapter(None));
    assert!(backend.truncate(A, 0) && backend.truncate(B, 0));
}
