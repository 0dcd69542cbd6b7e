//! The checks that every backend passes, on the real model.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "these are tests")]

mod common;

#[test]
fn the_real_backend_conforms() {
    let path = common::model_path();
    let options = nala_llama::LoadOptions { kv_cells: 1024, batch_tokens: 64, max_sequences: 8, ..common::options() };
    nala_engine::conformance::run(&move || nala_llama::load(&path, &options, |_| {}).expect("the test model loads"));
}
