//! LoRA adapters on the real model.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "these are tests")]

mod common;

use std::path::Path;

use common::gguf::{f32_value, text_value, u32_value};
use common::made::Made;
use nala_llama::{AdapterFile, LoadError, LoadOptions, load};

fn with(paths: &[&Path]) -> LoadOptions {
    let adapters = paths.iter().enumerate();
    let adapters =
        adapters.map(|(number, path)| AdapterFile { name: format!("adapter-{number}"), path: path.to_path_buf() });
    LoadOptions {
        kv_cells: 512,
        batch_tokens: 64,
        max_sequences: 8,
        embedding_tokens: 64,
        adapters: adapters.collect(),
        ..common::options()
    }
}

#[test]
fn the_backend_conforms_with_adapters() {
    let files = [Made::lora(1).written(), Made::lora(2).written()];
    let options = with(&[files[0].path(), files[1].path()]);
    let info = load(&common::model_path(), &options, |_| {}).unwrap().info;
    assert_eq!(info.adapters, ["adapter-0", "adapter-1"]);
    nala_engine::conformance::run(&move || load(&common::model_path(), &options, |_| {}).expect("loads"));
}

#[test]
fn files_that_are_no_adapter_of_this_model_are_refused() {
    let refused = |bytes: &[u8]| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        match load(&common::model_path(), &with(&[file.path()]), |_| {}) {
            Ok(_) => panic!("it was loaded"),
            Err(error) => error,
        }
    };
    let lora = || Made::lora(1);
    let mut nameless = lora();
    nameless.tensors[0].0 = "blk.0.attn_q.weight".into();
    let mut unknown = lora();
    unknown.tensors.iter_mut().for_each(|(name, _)| *name = name.replace("attn_q", "attn_z"));
    let mut half = lora();
    half.tensors.truncate(1);
    let mut wide = lora();
    wide.tensors
        .iter_mut()
        .for_each(|(_, dims)| *dims = dims.iter().map(|&n| if n == 576 { 640 } else { n }).collect());
    let mut uneven = lora();
    uneven.tensors[0].1 = vec![576, 8];
    let bad = [
        ("a model", lora().set("general.type", text_value("model")), "general.type is `model`"),
        ("of another type", lora().set("general.type", u32_value(7)), "general.type is not a short text"),
        ("a control vector", lora().set("adapter.type", text_value("cvec")), "adapter.type is `cvec`"),
        ("without a type", lora().without("adapter.type"), "no adapter.type"),
        ("of another architecture", lora().set("general.architecture", text_value("qwen2")), "`qwen2`"),
        ("without alpha", lora().without("adapter.lora.alpha"), "no adapter.lora.alpha"),
        ("alpha of another type", lora().set("adapter.lora.alpha", u32_value(4)), "adapter.lora.alpha"),
        ("alpha no number", lora().set("adapter.lora.alpha", f32_value(f32::NAN)), "adapter.lora.alpha"),
        ("a weight", nameless, "no part of a LoRA"),
        ("for tensors that are not there", unknown, "does not exist in base model"),
        ("half of a pair", half, "missing one component"),
        ("of another width", wide, "incorrect shape"),
        ("of two ranks", uneven, "not transposed"),
    ];
    for (what, lora, says) in bad {
        let error = refused(&lora.bytes());
        assert!(matches!(error, LoadError::BadAdapter { .. }), "{what}: {error}");
        assert!(error.to_string().contains(says), "{what}: {error}");
    }
    let whole = lora().bytes();
    let error = refused(&whole[..whole.len() - 100]);
    assert!(matches!(error, LoadError::Truncated { .. }), "{error}");
    let error = refused(b"PK\x03\x04");
    assert!(matches!(error, LoadError::NotGguf { .. }), "{error}");
    let error = load(&common::model_path(), &with(&[Path::new("/no/such.gguf")]), |_| {}).err().unwrap();
    assert!(matches!(error, LoadError::NotFound { .. }), "{error}");
}
