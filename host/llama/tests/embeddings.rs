//! Embeddings and scores beyond what the conformance suite asks of every model.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "these are tests")]

mod common;

use common::made::Made;
use nala_engine::{DecodeError, Embedding, Pooling, RankingInfo};
use nala_llama::{LoadOptions, load};

#[test]
fn texts_of_one_subject_are_nearer_to_each_other() {
    let model = common::loaded();
    let mut backend = (model.backend)().unwrap();
    let texts = [
        "The cat sleeps on the sofa all day.",
        "A kitten is napping on the couch.",
        "The central bank raised its interest rates by half a percent.",
        "Interest rates went up after the decision of the central bank.",
    ];
    let inputs: Vec<_> = texts.iter().map(|text| model.tokenizer.encode(text, false).unwrap()).collect();
    let vectors = backend.embed(&inputs, Pooling::Mean).unwrap();
    let near = |a: usize, b: usize| vectors[a].iter().zip(&vectors[b]).map(|(x, y)| x * y).sum::<f32>();
    assert_eq!(vectors[0].len(), 576);
    assert!(near(0, 1) > near(0, 2) && near(0, 1) > near(0, 3), "cats: {} {} {}", near(0, 1), near(0, 2), near(0, 3));
    assert!(near(2, 3) > near(1, 2) && near(2, 3) > near(1, 3), "rates: {} {} {}", near(2, 3), near(1, 2), near(1, 3));
}

#[test]
fn a_long_text_is_computed_in_parts_and_its_end_counts() {
    let options = LoadOptions { kv_cells: 1024, embedding_tokens: 8192, ..common::options() };
    let model = load(&common::model_path(), &options, |_| {}).unwrap();
    assert_eq!(model.info.embeddings.unwrap().max_tokens, 1024, "as many as KV cells");
    let mut backend = (model.backend)().unwrap();
    let encode = |text: &str| model.tokenizer.encode(text, false).unwrap();
    let filler = encode("The cat sleeps on the sofa all day and the kitten naps on the couch beside it. ");
    let long = |end: &str| [filler.repeat(45)[..900].to_vec(), encode(end)].concat();
    let inputs = [long("So do I."), long("The central bank raised its interest rates."), filler.clone()];
    // A short one first: the context grows for the others.
    let short = backend.embed(&inputs[2..], Pooling::Mean).unwrap();
    for pooling in [Pooling::Mean, Pooling::Last] {
        let vectors = backend.embed(&inputs, pooling).unwrap();
        let near = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
        assert!(vectors[0] != vectors[1], "{pooling:?}: the end counts");
        if pooling == Pooling::Mean {
            assert!(near(&vectors[2], &short[0]) > 0.999, "a longer context changes nothing");
        }
        // In parts of a step, and with somebody else's given up between.
        assert!(matches!(backend.embed_part(&inputs[0], pooling, 0, 100), Ok(Embedding::Part(128))));
        let (mut computed, mut parts) = (0, 0);
        let vector = loop {
            parts += 1;
            match backend.embed_part(&inputs[1], pooling, computed, 100).unwrap() {
                Embedding::Part(reached) => computed = reached,
                Embedding::Whole(vector) => break vector,
            }
        };
        assert_eq!(parts, inputs[1].len().div_ceil(128));
        assert_eq!(vector, vectors[1], "{pooling:?}: to the last digit");
    }
}

#[test]
fn what_is_too_long_is_told_with_the_limit() {
    let options = LoadOptions { embedding_tokens: 40, ..common::options() };
    let model = load(&common::model_path(), &options, |_| {}).unwrap();
    assert_eq!(model.info.embeddings.unwrap().max_tokens, 40);
    let mut backend = (model.backend)().unwrap();
    let error = backend.embed(&[vec![5; 40], vec![5; 41]], Pooling::Last).unwrap_err();
    assert!(error.to_string().contains("an input has 41 tokens, but 40 is the most"), "{error}");
    let error = backend.embed(&[vec![5; 3]], Pooling::Rank).unwrap_err();
    assert!(matches!(&error, DecodeError::Unsupported(text) if text.contains("use a reranker")), "{error}");
}

#[test]
fn a_model_with_a_head_gives_scores() {
    let file = Made::reranker().written();
    let model = load(file.path(), &LoadOptions { kv_cells: 256, ..common::options() }, |_| {}).unwrap();
    let info = model.info.embeddings.unwrap();
    let ranking = Some(RankingInfo { scores: 2, max_tokens: 256 });
    assert_eq!((info.pooling, info.ranking, info.width, info.max_tokens), (Pooling::Rank, ranking, 64, 256));
    let mut backend = (model.backend)().unwrap();
    let inputs = [vec![5, 6, 7, 8], vec![900, 12, 44], (20..256).collect()];
    let scores = backend.embed(&inputs, Pooling::Rank).unwrap();
    for (input, scores) in inputs.iter().zip(&scores) {
        // The head of this family gives probabilities.
        assert!(scores.len() == 2 && (scores[0] + scores[1] - 1.0).abs() < 1e-4, "{scores:?}");
        let alone = backend.embed(std::slice::from_ref(input), Pooling::Rank).unwrap().remove(0);
        assert!((alone[0] - scores[0]).abs() < 1e-4, "{alone:?} and {scores:?}");
    }
    assert!((scores[0][0] - scores[1][0]).abs() > 1e-4, "{scores:?}");
    // One kind after the other.
    assert_eq!(backend.embed(&inputs[..1], Pooling::Mean).unwrap()[0].len(), 64);
    assert!((backend.embed(&inputs[..1], Pooling::Rank).unwrap()[0][0] - scores[0][0]).abs() < 1e-4);
}
