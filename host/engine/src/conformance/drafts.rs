//! Checks of what guessing ahead needs: the logits at several places of one
//! sequence in one batch, and going on from any of them.

use super::backend::{A, assert_close, entries};
use super::begun;
use crate::backend::{Backend, LoadedModel, Rewind, Token};

/// Tokens that are known before a guess.
const KNOWN: usize = 4;

pub(super) fn run(load: &dyn Fn() -> LoadedModel) {
    let model = load();
    let rewind = model.info.rewind();
    let tokens = begun(&*model.tokenizer, "The quick brown fox jumps over the lazy dog.");
    let mut backend = (model.backend)().unwrap();
    let backend = &mut *backend;
    let want = one_by_one(backend, &tokens);
    let got = at_once(backend, &tokens);
    for (at, (want, got)) in want.iter().zip(&got).enumerate() {
        assert_close(want, got, &format!("place {at} of a guess"));
    }
    for accepted in 0..tokens.len() - KNOWN {
        a_part_is_accepted(backend, &tokens, accepted, rewind, &want);
    }
    assert!(backend.truncate(A, 0));
}

/// The logits after each token from the last known one on.
fn one_by_one(backend: &mut dyn Backend, tokens: &[Token]) -> Vec<Vec<f32>> {
    assert!(backend.truncate(A, 0));
    backend.decode(&entries(A, 0, &tokens[..KNOWN - 1])).unwrap();
    let mut rows = Vec::new();
    for at in KNOWN - 1..tokens.len() {
        backend.decode(&entries(A, at, &tokens[at..=at])).unwrap();
        rows.push(backend.logits(0).unwrap().to_vec());
    }
    rows
}

/// The same in one batch.
fn at_once(backend: &mut dyn Backend, tokens: &[Token]) -> Vec<Vec<f32>> {
    assert!(backend.truncate(A, 0));
    backend.decode(&entries(A, 0, &tokens[..KNOWN - 1])).unwrap();
    let mut guess = entries(A, KNOWN - 1, &tokens[KNOWN - 1..]);
    guess.iter_mut().for_each(|entry| entry.logits = true);
    backend.decode(&guess).unwrap();
    (0..guess.len()).map(|at| backend.logits(at).unwrap().to_vec()).collect()
}

/// A guess whose first tokens were right and whose others were not: the others
/// are taken back, and the right ones decoded in their place.
fn a_part_is_accepted(backend: &mut dyn Backend, tokens: &[Token], accepted: usize, rewind: Rewind, want: &[Vec<f32>]) {
    let right = KNOWN + accepted;
    let wrong: Vec<Token> = tokens[right..].iter().rev().copied().collect();
    at_once(backend, &[&tokens[..right], &wrong[..]].concat());
    let cut = backend.truncate(A, u32::try_from(right).unwrap());
    assert_eq!(cut, rewind != Rewind::Nowhere, "cutting a short sequence is as said");
    if !cut {
        // What such a model pays: everything is computed again.
        assert!(backend.truncate(A, 0));
        backend.decode(&entries(A, 0, &tokens[..right])).unwrap();
    }
    backend.decode(&entries(A, right, &tokens[right..=right])).unwrap();
    assert_close(&want[right + 1 - KNOWN], backend.logits(0).unwrap(), "behind a guess that was right in part");
}
