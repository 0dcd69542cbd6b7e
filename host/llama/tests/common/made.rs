//! Files that are small and without sense, but whole: a LoRA adapter for the real
//! model, and a model with a classification head.

use std::io::Write;

use super::gguf::{Model, entry, f32_value, head, text_value, texts, u32_value};

/// Width of the model, and of what `attn_q` gives.
const WIDTH: u64 = 576;
const RANK: u64 = 4;

/// A GGUF file whose tensors are random numbers.
pub(crate) struct Made {
    pub(crate) keys: Vec<(String, Vec<u8>)>,
    pub(crate) tensors: Vec<(String, Vec<u64>)>,
    /// What the numbers depend on.
    pub(crate) seed: u64,
}

impl Made {
    /// An adapter for the real model.
    pub(crate) fn lora(seed: u64) -> Self {
        let keys = [
            ("general.type", text_value("adapter")),
            ("general.architecture", text_value("llama")),
            ("adapter.type", text_value("lora")),
            ("adapter.lora.alpha", f32_value(RANK as f32)),
        ];
        let keys = keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let mut tensors = Vec::new();
        for layer in 0..8 {
            tensors.push((format!("blk.{layer}.attn_q.weight.lora_a"), vec![WIDTH, RANK]));
            tensors.push((format!("blk.{layer}.attn_q.weight.lora_b"), vec![RANK, WIDTH]));
        }
        Self { keys, tensors, seed }
    }

    /// A reranker of one layer with the real model's vocabulary.
    pub(crate) fn reranker() -> Self {
        let real = Model::real();
        let vocabulary = real.token_count() as u64;
        let mut keys = real.into_keys();
        keys.retain(|(key, _)| !key.starts_with("llama."));
        let mut this = Self { keys, tensors: Vec::new(), seed: 7 };
        this = this.set("general.architecture", text_value("qwen3"));
        for (key, number) in [
            ("context_length", 256),
            ("embedding_length", 64),
            ("block_count", 1),
            ("feed_forward_length", 64),
            ("attention.head_count", 2),
            ("attention.head_count_kv", 1),
            ("attention.key_length", 32),
            ("attention.value_length", 32),
            ("pooling_type", 4),
        ] {
            this = this.set(&format!("qwen3.{key}"), u32_value(number));
        }
        let labels = ["yes", "no"].map(str::to_owned);
        this = this
            .set("qwen3.attention.layer_norm_rms_epsilon", f32_value(1e-6))
            .set("qwen3.rope.freq_base", f32_value(10_000.0))
            .set("qwen3.classifier.output_labels", texts(labels.into_iter()));
        let shapes: [(&str, &[u64]); 14] = [
            ("token_embd", &[64, vocabulary]),
            ("output_norm", &[64]),
            ("cls.output", &[64, 2]),
            ("blk.0.attn_norm", &[64]),
            ("blk.0.attn_q", &[64, 64]),
            ("blk.0.attn_k", &[64, 32]),
            ("blk.0.attn_v", &[64, 32]),
            ("blk.0.attn_output", &[64, 64]),
            ("blk.0.attn_q_norm", &[32]),
            ("blk.0.attn_k_norm", &[32]),
            ("blk.0.ffn_norm", &[64]),
            ("blk.0.ffn_gate", &[64, 64]),
            ("blk.0.ffn_up", &[64, 64]),
            ("blk.0.ffn_down", &[64, 64]),
        ];
        this.tensors = shapes.iter().map(|(name, dims)| (format!("{name}.weight"), dims.to_vec())).collect();
        this
    }

    pub(crate) fn set(mut self, key: &str, value: Vec<u8>) -> Self {
        self.keys.retain(|(known, _)| known != key);
        self.keys.push((key.to_owned(), value));
        self
    }

    pub(crate) fn without(mut self, key: &str) -> Self {
        self.keys.retain(|(known, _)| known != key);
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = head(&self.keys, self.tensors.len());
        let (mut data, mut dice) = (Vec::new(), self.seed.wrapping_mul(2) + 1);
        for (name, dims) in &self.tensors {
            entry(&mut out, name, dims, 0, data.len() as u64);
            for _ in 0..dims.iter().product::<u64>() {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let number = (dice >> 40) as f32 / (1_u32 << 24) as f32 - 0.5;
                data.extend((number * 0.4).to_le_bytes());
            }
            data.resize(data.len().next_multiple_of(32), 0);
        }
        out.resize(out.len().next_multiple_of(32), 0);
        out.extend(data);
        out
    }

    pub(crate) fn written(&self) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&self.bytes()).expect("writes");
        file
    }
}
