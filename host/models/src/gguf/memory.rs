//! What a model needs of memory beside its weights, by what its header says.

use super::header::Header;
use super::value::Value;

/// Bytes of an element of the KV cache: f16, llama.cpp's default
/// (`llama_context_default_params`).
const ELEMENT: u64 = 2;

impl Header {
    /// Bytes of a KV cell: keys and values of one token in all layers. None where
    /// the header does not say enough.
    ///
    /// The sizes are llama.cpp's (`llama_hparams::n_embd_k_gqa`, `n_embd_v_gqa`).
    /// Where layers differ from each other, or have a window or a running state
    /// instead, it is more than what is needed.
    #[must_use]
    pub fn kv_cell_bytes(&self) -> Option<u64> {
        let layers = self.of_architecture("block_count")?;
        let width = self.of_architecture("embedding_length")?;
        let elements = match self.of_architecture("attention.head_count") {
            Some(0) => 0,
            Some(heads) => {
                let kv_heads = self.of_architecture("attention.head_count_kv").unwrap_or(heads);
                let length = |key: &str| self.of_architecture(key).unwrap_or(width / heads);
                let (key, value) = (length("attention.key_length"), length("attention.value_length"));
                kv_heads.checked_mul(key.checked_add(value)?)?
            }
            // A list, one for each layer: at the most each is as wide as the model.
            None => width.checked_mul(2)?,
        };
        layers.checked_mul(elements)?.checked_mul(ELEMENT)
    }

    /// Entries of the vocabulary.
    #[must_use]
    pub fn vocabulary(&self) -> Option<u64> {
        match self.metadata.get("tokenizer.ggml.tokens")? {
            Value::Array { len, .. } => Some(*len),
            _ => None,
        }
    }

    /// A hyperparameter, which stands under the architecture's name.
    pub(super) fn of_architecture(&self, key: &str) -> Option<u64> {
        let architecture = self.text("general.architecture")?;
        self.number(&format!("{architecture}.{key}"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::gguf::ValueKind;

    fn header(keys: &[(&str, u64)]) -> Header {
        let mut metadata: BTreeMap<String, Value> =
            keys.iter().map(|(key, value)| (format!("llama.{key}"), Value::Unsigned(*value))).collect();
        metadata.insert("general.architecture".to_owned(), Value::Text("llama".to_owned()));
        Header { version: 3, metadata, tensors: Vec::new(), data_start: 0, file_size: 0 }
    }

    /// SmolLM2 135M: llama.cpp reports 360 MiB for 16,384 cells.
    #[test]
    fn grouped_heads_count_once() {
        let smollm2 = [
            ("block_count", 30),
            ("embedding_length", 576),
            ("attention.head_count", 9),
            ("attention.head_count_kv", 3),
        ];
        assert_eq!(header(&smollm2).kv_cell_bytes().map(|cell| cell * 16_384), Some(360 << 20));
    }

    #[test]
    fn lengths_of_their_own_and_missing_keys() {
        let wide = [
            ("block_count", 2),
            ("embedding_length", 640),
            ("attention.head_count", 4),
            ("attention.head_count_kv", 1),
            ("attention.key_length", 256),
            ("attention.value_length", 256),
        ];
        assert_eq!(header(&wide).kv_cell_bytes(), Some(2 * 512 * 2));
        let mut listed = header(&[("block_count", 2), ("embedding_length", 640)]);
        let list = Value::Array { kind: ValueKind::U32, len: 2 };
        listed.metadata.insert("llama.attention.head_count".to_owned(), list);
        assert_eq!(listed.kv_cell_bytes(), Some(2 * 1280 * 2));
        let none = [("block_count", 2), ("embedding_length", 640), ("attention.head_count", 0)];
        assert_eq!(header(&none).kv_cell_bytes(), Some(0));
        assert_eq!(header(&[("block_count", 2)]).kv_cell_bytes(), None);
        let absurd = [("block_count", u64::MAX), ("embedding_length", 640), ("attention.head_count", 1)];
        assert_eq!(header(&absurd).kv_cell_bytes(), None);
    }
}
