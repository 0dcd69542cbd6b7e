//! Headers that are whole and say what llama.cpp cannot compute with: each is
//! refused with a text that names the key or tensor, before llama.cpp, which
//! would end the process, sees it.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "these are tests")]

mod common;

use common::gguf::{Model, array, boolean, f32_value, text_value, texts, u32_value};
use common::options;
use nala_llama::{LoadError, load};

/// Changes the real model's header and returns why it is refused.
fn refused(change: impl FnOnce(&mut Model)) -> LoadError {
    let mut model = Model::real();
    change(&mut model);
    let file = model.written();
    match load(file.path(), &options(), |_| {}) {
        Ok(_) => panic!("it was loaded"),
        Err(error) => error,
    }
}

/// The same, for a value that is named.
fn bad_value(change: impl FnOnce(&mut Model)) -> String {
    let error = refused(change);
    assert!(matches!(error, LoadError::BadValue { .. }), "{error}");
    error.to_string()
}

fn bad_key(key: &str, value: Vec<u8>) {
    let error = bad_value(|model| model.set(key, value));
    assert!(error.contains(key), "{key}: {error}");
}

#[test]
fn the_unchanged_model_loads() {
    let file = Model::real().written();
    let model = load(file.path(), &options(), |_| {}).unwrap();
    let mut backend = (model.backend)().unwrap();
    backend.decode(&common::entries(0, 0, &[5, 6, 7])).unwrap();
}

#[test]
fn tensors_of_types_without_a_kernel_are_refused() {
    // F16, Q8_0, I8, I32, F64, BF16, MXFP4.
    for kind in [1, 8, 24, 26, 28, 30, 39] {
        for tensor in ["blk.0.attn_norm.weight", "output_norm.weight"] {
            let error = bad_value(|model| model.retype(tensor, kind));
            assert!(error.contains(tensor) && error.contains("F32"), "{kind}: {error}");
        }
    }
    // Q8_1, Q8_K, I8, I16, I32, I64, F64.
    for kind in [9, 24, 25, 26, 27, 28] {
        for tensor in ["token_embd.weight", "blk.29.ffn_down.weight"] {
            let error = bad_value(|model| model.retype(tensor, kind));
            assert!(error.contains(tensor), "{kind}: {error}");
        }
    }
    // A vector cannot hide in two dimensions.
    let error = bad_value(|model| {
        model.tensor("blk.3.ffn_norm.weight").dims = vec![576, 1];
        model.retype("blk.3.ffn_norm.weight", 1);
    });
    assert!(error.contains("blk.3.ffn_norm.weight"), "{error}");
}

#[test]
fn tensors_of_other_usual_types_are_decoded() {
    // F32, F16, Q8_0, BF16, IQ4_NL, MXFP4.
    for kind in [0, 1, 8, 30, 20, 39] {
        let mut model = Model::real();
        model.retype("token_embd.weight", kind);
        model.retype("blk.0.attn_q.weight", kind);
        let file = model.written();
        let model = load(file.path(), &options(), |_| {}).unwrap();
        let mut backend = (model.backend)().unwrap();
        backend.decode(&common::entries(0, 0, &[5, 6, 7])).unwrap();
    }
}

#[test]
fn numbers_of_experts_that_contradict_each_other_are_refused() {
    let error = bad_value(|model| model.set("llama.expert_count", u32_value(4)));
    assert!(error.contains("llama.expert_used_count is 0"), "{error}");
    bad_key("llama.expert_used_count", u32_value(4));
    bad_key("llama.expert_used_count", array(4, [4; 30].map(u32::to_le_bytes)));
    bad_key("llama.expert_group_count", u32_value(1));
    bad_key("llama.expert_count", u32_value(1025));
    let grouped = |groups: u32, used: u32| {
        bad_value(|model| {
            model.set("llama.expert_count", u32_value(8));
            model.set("llama.expert_used_count", u32_value(2));
            model.set("llama.expert_group_count", u32_value(groups));
            model.set("llama.expert_group_used_count", u32_value(used));
        })
    };
    assert!(grouped(8, 1).contains("expert_group_count"));
    assert!(grouped(3, 1).contains("does not divide"));
    assert!(grouped(4, 0).contains("expert_group_used_count"));
    assert!(grouped(4, 4).contains("expert_group_used_count"));
}

#[test]
fn layers_that_are_not_there_are_refused() {
    bad_key("llama.nextn_predict_layers", u32_value(99));
    bad_key("llama.nextn_predict_layers", u32_value(30));
    bad_key("llama.block_count", u32_value(513));
}

#[test]
fn numbers_a_layer_that_contradict_the_shapes_are_refused() {
    for (key, most, last) in [
        ("llama.attention.head_count_kv", 3, 0),
        ("llama.attention.head_count", 9, 3),
        ("llama.feed_forward_length", 1536, 0),
    ] {
        let mut numbers = [most; 30];
        numbers[29] = last;
        bad_key(key, array(4, numbers.map(u32::to_le_bytes)));
    }
    // The same number for all is fine.
    let mut model = Model::real();
    model.set("llama.attention.head_count_kv", array(4, [3_u32; 30].map(u32::to_le_bytes)));
    assert!(load(model.written().path(), &options(), |_| {}).is_ok());
}

#[test]
fn heads_that_do_not_go_together_are_refused() {
    bad_key("llama.attention.head_count_kv", u32_value(2));
    bad_key("llama.attention.value_length", u32_value(32));
    bad_key("llama.rope.dimension_count", u32_value(63));
    bad_key("llama.rope.dimension_count", u32_value(32));
    // Shapes that all pass, with heads of three elements that cannot be rotated.
    let error = bad_value(|model| {
        model.set("llama.attention.head_count", u32_value(192));
        model.set("llama.attention.head_count_kv", u32_value(64));
        model.set("llama.rope.dimension_count", u32_value(3));
    });
    assert!(error.contains("rope.dimension_count is 3"), "{error}");
}

#[test]
fn alignments_that_ggml_does_not_take_are_refused() {
    for alignment in [0, 1, 16, 48] {
        bad_key("general.alignment", u32_value(alignment));
    }
    bad_key("general.alignment", text_value("32"));
}

#[test]
fn numbers_that_make_no_numbers_are_refused() {
    for number in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e-30] {
        bad_key("llama.rope.freq_base", f32_value(number));
    }
    for key in ["factor", "attn_factor", "yarn_ext_factor", "yarn_attn_factor", "yarn_beta_fast", "yarn_log_multiplier"]
    {
        bad_key(&format!("llama.rope.scaling.{key}"), f32_value(f32::NAN));
    }
    bad_key("llama.rope.scaling.factor", f32_value(1e-40));
    bad_key("llama.attention.layer_norm_rms_epsilon", f32_value(-1.0));
    bad_key("llama.rope.scaling.type", text_value("su"));
}

#[test]
fn tokenizers_that_are_not_served_are_told() {
    for kind in ["t5", "bert", "rwkv", "none", "no_vocab", "plamo2", "test", "gpt2\0", "llama-9"] {
        let error = refused(|model| model.set("tokenizer.ggml.model", text_value(kind)));
        assert!(matches!(error, LoadError::UnsupportedTokenizer { .. }), "{kind}: {error}");
    }
}

#[test]
fn vocabularies_of_no_use_are_refused() {
    let count = Model::real().token_count();
    let list = |text: &dyn Fn(usize) -> String| texts((0..count).map(text));
    let key = "tokenizer.ggml.tokens";
    let twice = bad_value(|model| model.set(key, list(&|place| format!("t{}", place / 2))));
    assert!(twice.contains("`t0` twice"), "{twice}");
    // llama.cpp reads them up to the first NUL.
    let hidden = bad_value(|model| model.set(key, list(&|place| format!("t\0{place}"))));
    assert!(hidden.contains("`t` twice"), "{hidden}");
    // And it has a name for empty ones.
    let named = bad_value(|model| {
        model.set(
            key,
            list(&|place| if place == 7 { String::new() } else { format!("[EMPTY_{}]", (place + 6) % count) }),
        );
    });
    assert!(named.contains("`[EMPTY_7]` twice"), "{named}");
    let empty = bad_value(|model| model.set(key, list(&|_| String::new())));
    assert!(empty.contains("empty"), "{empty}");
    let error = refused(|model| model.set(key, texts(std::iter::empty())));
    assert!(matches!(error, LoadError::NoVocabulary { .. }), "{error}");
    bad_key(key, array(4, [[0; 4]]));
}

#[test]
fn a_chat_template_is_a_text_and_an_empty_one_is_none() {
    let key = "tokenizer.chat_template";
    bad_key(key, u32_value(1));
    bad_key(key, texts(["a".to_owned()].into_iter()));
    for (template, kept) in [("", None), (" \n", None), ("{{ x }}", Some("{{ x }}"))] {
        let mut model = Model::real();
        model.set(key, text_value(template));
        let loaded = load(model.written().path(), &options(), |_| {}).unwrap();
        assert_eq!(loaded.info.chat_template.as_deref(), kept);
    }
}

#[test]
fn names_out_of_files_are_shown_in_part() {
    let error = refused(|model| model.set("general.architecture", text_value(&"x".repeat(900))));
    assert!(matches!(error, LoadError::UnsupportedArchitecture { .. }), "{error}");
    assert!(error.to_string().len() < 600, "{error}");
    let error = refused(|model| model.set("general.architecture", text_value(&"x".repeat(60_000))));
    assert!(error.to_string().len() < 600, "{error}");
    let error = refused(|model| model.tensor("blk.0.attn_q.weight").name = "y".repeat(60_000));
    assert!(error.to_string().len() < 1200, "{error}");
    let error = refused(|model| model.set(&"z\0".repeat(300), u32_value(1)));
    assert!(error.to_string().len() < 1200, "{error}");
}

#[test]
fn what_cannot_continue_text_is_told() {
    let error = refused(|model| model.set("llama.attention.causal", boolean(false)));
    assert!(matches!(error, LoadError::NotADecoder { .. }), "{error}");
    for arch in ["clip", "eagle3", "dflash", "wavtokenizer-dec", "dream", "gemma-embedding", "llada-moe"] {
        let error = refused(|model| model.set("general.architecture", text_value(arch)));
        assert!(matches!(error, LoadError::NotADecoder { .. }), "{arch}: {error}");
    }
}

#[test]
fn a_part_of_a_model_is_told() {
    let mut value = 2_u32.to_le_bytes().to_vec();
    value.extend(3_u16.to_le_bytes());
    let error = refused(|model| model.set("split.count", value));
    assert!(matches!(error, LoadError::Split { parts: 3, .. }), "{error}");
}

#[test]
fn names_that_stand_for_another_are_refused() {
    let error = refused(|model| model.set("llama.expert_count\0", u32_value(4)));
    assert!(matches!(error, LoadError::Damaged { .. }), "{error}");
    let error = refused(|model| model.tensor("blk.0.attn_q.weight").name = "blk.0.attn_q.weight\0".into());
    assert!(matches!(error, LoadError::Damaged { .. }), "{error}");
    let error = refused(|model| model.set("general.architecture", text_value("llama\0")));
    assert!(matches!(error, LoadError::Damaged { .. }), "{error}");
    let error = refused(|model| model.tensor("blk.0.attn_q.weight").dims = vec![576, 0]);
    assert!(matches!(error, LoadError::Damaged { .. }), "{error}");
}

#[test]
fn a_pipe_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.gguf");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [pipe.as_path(), std::path::Path::new("/dev/null"), folder.path()] {
        let error = load(path, &options(), |_| {}).err().unwrap();
        assert!(matches!(error, LoadError::NotAFile { .. }), "{error}");
    }
}
