//! The few facts of a header that a person wants to see.

use std::collections::BTreeMap;

use serde::Serialize;

use super::header::Header;
use super::kind::TensorKind;
use super::value::Value;

/// What `nala-host model inspect` shows. What a file does not say is none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Architecture, such as `llama` (`general.architecture`).
    pub architecture: Option<String>,
    /// The model's own name (`general.name`).
    pub name: Option<String>,
    /// Licence of the weights (`general.license`).
    pub licence: Option<String>,
    /// Number of weights.
    pub parameters: u64,
    /// Which formats the weights are in, most bytes first.
    pub kinds: Vec<KindShare>,
    /// Context length it was trained for, in tokens.
    pub context_length: Option<u64>,
    /// Number of layers.
    pub layers: Option<u64>,
    /// Width of the hidden state.
    pub embedding_length: Option<u64>,
    /// Kind of tokenizer, such as `gpt2` (`tokenizer.ggml.model`).
    pub tokenizer: Option<String>,
    /// How text is split before tokenising (`tokenizer.ggml.pre`).
    pub pre_tokenizer: Option<String>,
    /// Number of tokens in the vocabulary.
    pub vocabulary: Option<u64>,
    /// Length of the chat template, in bytes; none when there is no template.
    pub chat_template_bytes: Option<u64>,
    /// Size of the file, in bytes.
    pub file_size: u64,
}

/// How much of a model is in one format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KindShare {
    /// The format.
    pub kind: TensorKind,
    /// Number of tensors.
    pub tensors: u64,
    /// Number of weights.
    pub parameters: u64,
    /// Bytes; zero for a format this version does not know.
    pub bytes: u64,
}

impl Header {
    /// The text under `key`.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.metadata.get(key)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number under `key`, if it is a whole one that is not negative.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<u64> {
        match self.metadata.get(key)? {
            Value::Unsigned(number) => Some(*number),
            Value::Signed(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// The chat template (Jinja), if the file carries one.
    #[must_use]
    pub fn chat_template(&self) -> Option<&str> {
        self.text("tokenizer.chat_template")
    }

    /// What a person wants to know.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let text = |key: &str| self.text(key).map(str::to_owned);
        let architecture = text("general.architecture");
        let mut by_kind = BTreeMap::<TensorKind, KindShare>::new();
        for tensor in &self.tensors {
            let share = by_kind.entry(tensor.kind).or_insert(KindShare {
                kind: tensor.kind,
                tensors: 0,
                parameters: 0,
                bytes: 0,
            });
            share.tensors += 1;
            share.parameters = share.parameters.saturating_add(tensor.elements);
            share.bytes = share.bytes.saturating_add(tensor.bytes.unwrap_or(0));
        }
        let mut kinds: Vec<KindShare> = by_kind.into_values().collect();
        kinds.sort_by_key(|share| std::cmp::Reverse(share.bytes));
        Summary {
            name: text("general.name"),
            licence: text("general.license"),
            parameters: kinds.iter().fold(0, |sum, share| share.parameters.saturating_add(sum)),
            kinds,
            context_length: self.of_architecture("context_length"),
            layers: self.of_architecture("block_count"),
            embedding_length: self.of_architecture("embedding_length"),
            tokenizer: text("tokenizer.ggml.model"),
            pre_tokenizer: text("tokenizer.ggml.pre"),
            vocabulary: self.vocabulary(),
            chat_template_bytes: self.chat_template().map(|text| text.len() as u64),
            file_size: self.file_size,
            architecture,
        }
    }
}
