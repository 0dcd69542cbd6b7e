//! The checks that every backend passes, on real models.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "these are tests")]

mod common;

use std::path::PathBuf;

use nala_engine::{Rewind, StateKind};
use nala_llama::{FlashAttention, KvType, LoadOptions, load};

fn small() -> LoadOptions {
    LoadOptions { kv_cells: 1024, batch_tokens: 64, max_sequences: 8, embedding_tokens: 96, ..common::options() }
}

fn conforms(path: PathBuf, options: LoadOptions) {
    nala_engine::conformance::run(&move || load(&path, &options, |_| {}).expect("the test model loads"));
}

#[test]
fn the_real_backend_conforms() {
    conforms(common::model_path(), small());
}

#[test]
fn it_conforms_with_cells_of_8_bits() {
    let options =
        LoadOptions { flash_attention: FlashAttention::On, kv_keys: KvType::Q8_0, kv_values: KvType::Q8_0, ..small() };
    conforms(common::model_path(), options);
}

#[test]
fn it_conforms_on_a_model_with_a_sliding_window() {
    let path = common::gemma_path();
    let info = load(&path, &small(), |_| {}).unwrap().info;
    assert_eq!((info.arch.as_str(), info.state, info.window), ("gemma3", StateKind::Attention, Some(512)));
    assert_eq!(info.rewind(), Rewind::InsideWindow);
    conforms(path, small());
}
