//! Checks of what a [`Backend`] says it can do with sequences.

use super::backend::{A, B, alone, assert_close, entries};
use super::begun;
use crate::backend::{Backend, LoadedModel, Rewind, SeqId, Token};

const FIRST: SeqId = SeqId(2);
const LAST: SeqId = SeqId(3);

pub(super) fn run(load: &dyn Fn() -> LoadedModel) {
    let model = load();
    let tokens = begun(&*model.tokenizer, "The quick brown fox jumps over the lazy dog.");
    let mut backend = (model.backend)().unwrap();
    let backend = &mut *backend;
    let can = backend.abilities();
    rewinds_as_said(backend, &tokens, model.info.rewind(), model.info.window);
    shares_a_beginning(backend, &tokens, can.copy);
    leaves_and_comes_back(backend, &tokens, can.snapshot);
    loses_its_middle(backend, &tokens, can.shift);
}

/// Cuts a sequence that is longer than the window, after others have used cells
/// that no window reaches any more: what cannot be answered right is refused.
fn rewinds_as_said(backend: &mut dyn Backend, text: &[Token], rewind: Rewind, window: Option<u32>) {
    let limits = backend.limits();
    let before = limits.batch_tokens as usize;
    let most = limits.sequence_tokens.min(limits.kv_cells - 2 * limits.batch_tokens) as usize;
    let len = window.map_or(most / 2, |window| (window as usize + 40).min(most));
    let long: Vec<Token> = text[..1].iter().chain(text[1..].iter().cycle()).copied().take(len).collect();
    let tail = [text[3], text[1], text[2]];
    for cut in [8, len / 2, len - 1] {
        let (base, at) = (&long[..cut], u32::try_from(cut).unwrap());
        fill(backend, A, base);
        backend.decode(&entries(A, cut, &tail)).unwrap();
        let want = backend.logits(tail.len() - 1).unwrap().to_vec();
        assert!(backend.truncate(A, 0));
        // Cells in front of the sequence are given back and taken by one that
        // needs a few more.
        fill(backend, FIRST, &long[..before]);
        fill(backend, A, &long);
        assert!(backend.truncate(FIRST, 0));
        fill(backend, LAST, &long[..before + 24]);

        let copied = backend.copy(A, B, at);
        let done = backend.truncate(A, at);
        match rewind {
            Rewind::Anywhere => assert!(done, "cutting at {cut} of {len}"),
            Rewind::InsideWindow => assert!(done || len >= window.unwrap() as usize, "cutting inside of the window"),
            Rewind::Nowhere => assert!(!done, "cutting at {cut} of {len}, which was said to be impossible"),
        }
        assert_eq!(copied, done && backend.abilities().copy, "a beginning is shared where it can be cut");
        for (seq, _) in [(A, done), (B, copied)].into_iter().filter(|&(_, there)| there) {
            backend.decode(&entries(seq, cut, &tail)).unwrap();
            let got = backend.logits(tail.len() - 1).unwrap();
            assert_close(&want, got, &format!("{len} tokens cut to {cut}"));
        }
        for seq in [A, B, LAST] {
            assert!(backend.truncate(seq, 0));
        }
    }
}

/// Puts tokens into an empty sequence.
fn fill(backend: &mut dyn Backend, seq: SeqId, tokens: &[Token]) {
    let part = backend.limits().batch_tokens as usize;
    for (index, tokens) in tokens.chunks(part).enumerate() {
        backend.decode(&entries(seq, index * part, tokens)).unwrap();
    }
}

fn shares_a_beginning(backend: &mut dyn Backend, tokens: &[Token], can: bool) {
    let want = alone(backend, tokens);
    let other: Vec<Token> = tokens[..5].iter().rev().copied().collect();
    let want_other = alone(backend, &[&tokens[..4], &other[..]].concat());
    backend.decode(&entries(A, 0, &tokens[..6])).unwrap();
    assert_eq!(backend.copy(A, B, 4), can, "copying is as said");
    if can {
        assert!(!backend.copy(A, B, 4), "the target is not empty");
        // Each goes on by itself, both in one batch.
        let (mine, theirs) = (entries(A, 6, &tokens[6..]), entries(B, 4, &other));
        backend.decode(&[&mine[..], &theirs[..]].concat()).unwrap();
        assert_close(&want, backend.logits(mine.len() - 1).unwrap(), "whose beginning is shared");
        assert_close(&want_other, backend.logits(mine.len() + theirs.len() - 1).unwrap(), "who shares it");
        // What one drops the other keeps.
        assert!(backend.truncate(A, 0));
        assert!(backend.truncate(B, 4));
        backend.decode(&entries(B, 4, &tokens[4..])).unwrap();
        assert_close(&want, backend.logits(tokens.len() - 5).unwrap(), "the last holder");
    }
    assert!(backend.truncate(A, 0) && backend.truncate(B, 0));
}

fn leaves_and_comes_back(backend: &mut dyn Backend, tokens: &[Token], can: bool) {
    let want = alone(backend, tokens);
    backend.decode(&entries(A, 0, &tokens[..6])).unwrap();
    let state = backend.save(A);
    assert_eq!(state.is_some(), can, "saving is as said");
    assert!(backend.truncate(A, 0));
    let Some(state) = state else { return };
    assert!(!backend.load(B, &state[..state.len() / 2], 6), "half a state is none");
    assert!(!backend.load(B, b"no state", 6), "nonsense is none");
    // It comes back to another place.
    backend.decode(&entries(A, 0, &tokens[2..5])).unwrap();
    assert!(backend.load(B, &state, 6));
    assert!(!backend.load(B, &state, 6), "the target is not empty");
    backend.decode(&entries(B, 6, &tokens[6..])).unwrap();
    assert_close(&want, backend.logits(tokens.len() - 7).unwrap(), "a state that came back");
    assert!(backend.truncate(A, 0) && backend.truncate(B, 0));
}

fn loses_its_middle(backend: &mut dyn Backend, tokens: &[Token], can: bool) {
    backend.decode(&entries(A, 0, tokens)).unwrap();
    assert_eq!(backend.cut_out(A, 2, 3), can, "shifting is as said");
    if can {
        let len = tokens.len() - 3;
        assert!(!backend.cut_out(A, 2, u32::try_from(len).unwrap()), "more than there is");
        // Saved at once, the state is the one that has moved.
        let state = backend.abilities().snapshot.then(|| backend.save(A).expect("a state right after a shift"));
        backend.decode(&entries(A, len, &tokens[..1])).unwrap();
        let want = backend.logits(0).unwrap().to_vec();
        assert!(want.iter().all(|l| l.is_finite()));
        if let Some(state) = state {
            assert!(backend.load(B, &state, u32::try_from(len).unwrap()));
            backend.decode(&entries(B, len, &tokens[..1])).unwrap();
            assert_close(&want, backend.logits(0).unwrap(), "a state saved right after a shift");
        }
    }
    assert!(backend.truncate(A, 0) && backend.truncate(B, 0));
}
