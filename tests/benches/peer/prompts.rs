//! Prompts that neither side has seen before, of the same length each time.

use serde_json::{Value, json};

/// Makes prompts new: the same on both sides of a comparison, and different in
/// the next.
#[derive(Clone, Copy)]
pub(crate) struct Seed(pub(crate) u32);

impl Seed {
    /// Five digits, each a token of its own in the default model's vocabulary.
    /// Those that differ come first, so that no beginning is shared.
    fn digits(self) -> String {
        format!("{:05}", self.0).chars().rev().collect()
    }
}

/// A conversation of one message, about 60 tokens, for stream `n`.
pub(crate) fn story(seed: Seed, n: u32) -> Value {
    let animals = ["fox", "cat", "dog", "bee", "owl", "cow", "pig", "hen"];
    let animal = animals[n as usize % animals.len()];
    let number = Seed(seed.0 * 100 + n).digits();
    json!([
        {"role": "system", "content": format!("{number} is the number of this story. You tell stories for children.")},
        {"role": "user", "content": format!("Write a long story about a {animal} that goes to a distant town.")},
    ])
}

/// What a shop sells: about `items` times nine tokens.
pub(crate) fn price_list(seed: Seed, items: u32) -> String {
    let list: String = (1..=items).map(|n| format!("Item {n} costs {} coins. ", n * 7 % 50)).collect();
    format!("{} is the number of this list. You keep a shop. {list}", seed.digits())
}

/// A conversation with a long beginning and a short question.
pub(crate) fn about(list: &str, question: &str) -> Value {
    json!([{"role": "system", "content": list}, {"role": "user", "content": question}])
}
