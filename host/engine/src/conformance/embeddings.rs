//! Checks of embeddings.

use super::backend::{A, alone, assert_close, entries};
use crate::backend::{Backend, DecodeError, Embedding, EmbeddingInfo, LoadedModel, Pooling, Token};

/// How far the numbers of one input may be apart, alone and beside others.
const TOLERANCE: f32 = 1e-3;

pub(super) fn run(load: &dyn Fn() -> LoadedModel) {
    let model = load();
    let encode = |text: &str| model.tokenizer.encode(text, false).unwrap();
    let inputs = [
        encode("The quick brown fox jumps over the lazy dog."),
        encode("A fast brown fox leaps over a sleepy dog."),
        encode("Interest rates were raised by a quarter of a percent."),
    ];
    let mut backend = (model.backend)().unwrap();
    let backend = &mut *backend;
    let Some(info) = model.info.embeddings else {
        let refused = backend.embed(&inputs, Pooling::Mean);
        assert!(matches!(refused, Err(DecodeError::Unsupported(_))), "embeddings are as said: {refused:?}");
        return;
    };
    for pooling in [Pooling::Mean, Pooling::First, Pooling::Last] {
        vectors_are_of_their_inputs(backend, info, &inputs, pooling);
        parts_make_the_same(backend, info, &inputs, pooling);
    }
    scores_are_as_said(backend, info, &inputs);
    bad_inputs_are_refused(backend, info, inputs[0][0]);
    sequences_do_not_notice(backend, &inputs);
}

fn distance(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max)
}

fn vectors_are_of_their_inputs(
    backend: &mut dyn Backend,
    info: EmbeddingInfo,
    inputs: &[Vec<Token>],
    pooling: Pooling,
) {
    let together = backend.embed(inputs, pooling).unwrap();
    assert_eq!(together.len(), inputs.len());
    for (input, vector) in inputs.iter().zip(&together) {
        assert_eq!(vector.len(), info.width as usize);
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        assert!((length - 1.0).abs() < 1e-3, "{pooling:?}: a vector of length {length}");
        let alone = backend.embed(std::slice::from_ref(input), pooling).unwrap().remove(0);
        assert!(distance(vector, &alone) < TOLERANCE, "{pooling:?}: alone and beside others");
    }
    // An input once more, whatever came between.
    let repeated = [inputs[0].clone(), inputs[2].clone(), inputs[0].clone()];
    let repeated = backend.embed(&repeated, pooling).unwrap();
    assert!(distance(&repeated[0], &repeated[2]) < TOLERANCE, "{pooling:?}: equal inputs");
    assert!(distance(&together[1], &together[2]) > TOLERANCE, "{pooling:?}: different inputs");
    assert_eq!(backend.embed(&[], pooling).unwrap(), Vec::<Vec<f32>>::new());
}

/// One input in small parts, begun anew where it was left.
fn parts_make_the_same(backend: &mut dyn Backend, info: EmbeddingInfo, inputs: &[Vec<Token>], pooling: Pooling) {
    let input: Vec<Token> = inputs.concat().into_iter().cycle().take(info.max_tokens.min(100) as usize).collect();
    let whole = backend.embed(std::slice::from_ref(&input), pooling).unwrap().remove(0);
    let mut parts = 0;
    for _ in 0..2 {
        let first = backend.embed_part(&input, pooling, 0, 3).unwrap();
        assert!(matches!(first, Embedding::Part(reached) if (1..input.len() as u32).contains(&reached)), "{first:?}");
        parts += 1;
    }
    let mut computed = 0;
    let vector = loop {
        match backend.embed_part(&input, pooling, computed, 3).unwrap() {
            Embedding::Whole(vector) => break vector,
            Embedding::Part(reached) => {
                assert!(reached > computed && (reached as usize) < input.len(), "{reached} after {computed}");
                computed = reached;
            }
        }
        parts += 1;
    };
    assert!(parts > 2);
    assert!(distance(&whole, &vector) < TOLERANCE, "{pooling:?}: in parts and at once");
    // Nothing is under way now.
    let refused = backend.embed_part(&input, pooling, computed, 3);
    assert!(matches!(refused, Err(DecodeError::InvalidBatch(_))), "of an input that was not begun: {refused:?}");
}

fn scores_are_as_said(backend: &mut dyn Backend, info: EmbeddingInfo, inputs: &[Vec<Token>]) {
    let scores = backend.embed(inputs, Pooling::Rank);
    match info.ranking {
        None => assert!(matches!(scores, Err(DecodeError::Unsupported(_))), "no head for scores: {scores:?}"),
        Some(ranking) => {
            let scores = scores.unwrap();
            assert!(scores.iter().all(|scores| scores.len() == ranking.scores as usize));
            let long = vec![inputs[0][0]; ranking.max_tokens as usize + 1];
            let refused = backend.embed(&[long], Pooling::Rank);
            assert!(matches!(refused, Err(DecodeError::InvalidBatch(_))), "too long for the head: {refused:?}");
            let alone = backend.embed(&inputs[1..2], Pooling::Rank).unwrap().remove(0);
            assert!(distance(&scores[1], &alone) < TOLERANCE, "a score alone and beside others");
        }
    }
}

fn bad_inputs_are_refused(backend: &mut dyn Backend, info: EmbeddingInfo, token: Token) {
    let vocab = backend.limits().vocab;
    let full = vec![token; info.max_tokens as usize];
    let bad = [
        ("empty", vec![vec![token], Vec::new()]),
        ("too long", vec![[&full[..], &[token]].concat()]),
        ("outside of the vocabulary", vec![vec![vocab]]),
        ("the largest token", vec![vec![token, u32::MAX]]),
    ];
    for (what, inputs) in bad {
        let refused = backend.embed(&inputs, Pooling::Mean);
        assert!(matches!(refused, Err(DecodeError::InvalidBatch(_))), "{what}: {refused:?}");
    }
    assert_eq!(backend.embed(&[full], Pooling::Mean).unwrap().len(), 1, "as long as said");
}

fn sequences_do_not_notice(backend: &mut dyn Backend, inputs: &[Vec<Token>]) {
    let tokens = &inputs[0];
    let want = alone(backend, tokens);
    let (head, tail) = tokens.split_at(4);
    backend.decode(&entries(A, 0, head)).unwrap();
    backend.embed(&inputs[1..], Pooling::Mean).unwrap();
    backend.decode(&entries(A, 4, tail)).unwrap();
    assert_close(&want, backend.logits(tail.len() - 1).unwrap(), "a sequence around embeddings");
    assert!(backend.truncate(A, 0));
}
