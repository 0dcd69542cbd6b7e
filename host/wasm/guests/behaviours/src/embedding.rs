//! What the handler does with vectors and scores.

use crate::model::bindings::nala::llm::embedding::{self, Pooling};
use crate::model::bindings::nala::llm::model::{self, Model};

fn open() -> Model {
    Model::open(&model::available()[0]).unwrap()
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// What the model offers, what some inputs come to, and what that counts.
pub(crate) fn embeddings() -> String {
    let model = open();
    let offer = embedding::offers(&model).unwrap();
    let inputs = [vec![1, 2, 3], vec![4; 10], vec![1, 2, 3]];
    let before = crate::model::used();
    let vectors = embedding::embed(&model, &inputs, None).unwrap();
    let lengths: Vec<_> = vectors.iter().map(|vector| (cosine(vector, vector) - 1.0).abs() < 1e-3).collect();
    let alone = embedding::embed(&model, &inputs[2..], Some(offer.pooling)).unwrap();
    let last = embedding::embed(&model, &inputs[..1], Some(Pooling::Last)).unwrap();
    let scores = embedding::rank(&model, &inputs).unwrap();
    let counted = crate::model::used() - before;
    format!(
        "{} {} {:?} {lengths:?} {} {} {} {:?} {counted} {:?}",
        offer.width,
        offer.max_tokens,
        offer.ranking,
        vectors[0] == vectors[2] && vectors[0] == alone[0],
        vectors[0] != vectors[1],
        last[0] != vectors[0],
        scores.iter().map(Vec::len).collect::<Vec<_>>(),
        embedding::embed(&model, &[], None),
    )
}

/// Inputs that cannot be, and what a model does not offer.
pub(crate) fn refused() -> String {
    let model = open();
    let Some(offer) = embedding::offers(&model) else {
        let embedded = embedding::embed(&model, &[vec![1]], None).err();
        return format!("{embedded:?}\n{:?}", embedding::rank(&model, &[vec![1]]).err());
    };
    let long = vec![1; offer.max_tokens as usize + 1];
    let most = embedding::max_inputs() as usize;
    let told = [
        embedding::embed(&model, &[vec![1], long], None).err(),
        embedding::embed(&model, &[vec![]], None).err(),
        embedding::embed(&model, &[vec![u32::MAX]], Some(Pooling::First)).err(),
        embedding::embed(&model, &vec![vec![1]; most + 1], None).err(),
        embedding::rank(&model, &[vec![1; 61]]).err(),
    ];
    told.map(|error| format!("{error:?}")).join("\n")
}

/// So many inputs at once.
pub(crate) fn many(count: usize) -> String {
    match embedding::embed(&open(), &vec![vec![1, 2, 3, 4]; count], None) {
        Ok(vectors) => format!("{} vectors", vectors.len()),
        Err(error) => format!("{error:?}"),
    }
}

/// Whether texts of one subject are nearer to each other than to those of another
/// one, and whether a text's vector is the same beside others and alone.
pub(crate) fn texts() -> String {
    let model = open();
    let texts = [
        "The cat sleeps on the sofa all day.",
        "A kitten is napping on the couch.",
        "The central bank raised its interest rates by half a percent.",
        "Interest rates went up after the decision of the central bank.",
    ];
    let inputs = texts.map(|text| model.encode(text, false).unwrap());
    let near = |pooling| {
        let vectors = embedding::embed(&model, &inputs, Some(pooling)).unwrap();
        let alone = embedding::embed(&model, &inputs[1..2], Some(pooling)).unwrap();
        let within = cosine(&vectors[0], &vectors[1]).min(cosine(&vectors[2], &vectors[3]));
        let across = cosine(&vectors[0], &vectors[2]).max(cosine(&vectors[1], &vectors[3]));
        (within > across, vectors[1] == alone[0])
    };
    let offer = embedding::offers(&model).unwrap();
    let ranked = embedding::rank(&model, &inputs).map(|all| all.iter().map(Vec::len).collect::<Vec<_>>());
    format!("{:?} {:?} {}\n{ranked:?}", near(Pooling::Mean), near(Pooling::Last), offer.width)
}
