//! Files that cannot be served: each is refused with a text that names the fix,
//! and the process lives on.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "these are tests")]

mod common;

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use common::{model_path, options};
use nala_llama::{FlashAttention, KvType, LoadError, LoadOptions, load};

fn refused(path: &Path) -> LoadError {
    match load(path, &options(), |_| {}) {
        Ok(_) => panic!("{} was loaded", path.display()),
        Err(error) => error,
    }
}

fn written(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

/// A GGUF file of an architecture, with tokens, and with one small tensor.
fn small(arch: &str, tokens: bool, tensor: bool) -> Vec<u8> {
    let mut out = b"GGUF\x03\0\0\0".to_vec();
    out.extend(u64::from(tensor).to_le_bytes());
    out.extend((1 + u64::from(tokens)).to_le_bytes());
    text(&mut out, "general.architecture");
    out.extend(8_u32.to_le_bytes());
    text(&mut out, arch);
    if tokens {
        text(&mut out, "tokenizer.ggml.tokens");
        out.extend([9_u32.to_le_bytes(), 8_u32.to_le_bytes()].concat());
        out.extend(1_u64.to_le_bytes());
        text(&mut out, "a");
    }
    if tensor {
        text(&mut out, "token_embd.weight");
        out.extend(1_u32.to_le_bytes());
        out.extend(8_u64.to_le_bytes());
        out.extend(0_u32.to_le_bytes());
        out.extend(0_u64.to_le_bytes());
        out.resize(out.len().next_multiple_of(32) + 32, 0);
    }
    out
}

#[test]
fn what_is_not_a_model_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let error = refused(&folder.path().join("none.gguf"));
    assert!(matches!(error, LoadError::NotFound { .. }), "{error}");
    assert!(error.to_string().contains("nala-host model pull"), "{error}");

    let error = refused(folder.path());
    assert!(matches!(error, LoadError::NotAFile { .. }), "{error}");

    let error = refused(written(b"").path());
    assert!(matches!(error, LoadError::Empty { .. }), "{error}");

    let error = refused(written(b"PK\x03\x04 a zip file").path());
    assert!(matches!(error, LoadError::NotGguf { .. }), "{error}");
    assert!(error.to_string().contains("convert"), "{error}");

    let error = refused(written(b"GGUF\x01\0\0\0................").path());
    assert!(matches!(error, LoadError::Version { version: 1, .. }), "{error}");

    let error = refused(written(b"GG").path());
    assert!(matches!(error, LoadError::Truncated { .. }), "{error}");
}

#[test]
fn incomplete_models_are_told_apart() {
    let error = refused(written(&small("llama", true, false)).path());
    assert!(matches!(error, LoadError::NoWeights { .. }), "{error}");

    let error = refused(written(&small("llama", false, true)).path());
    assert!(matches!(error, LoadError::NoVocabulary { .. }), "{error}");

    let error = refused(written(&small("no-such-arch", true, true)).path());
    assert!(matches!(&error, LoadError::UnsupportedArchitecture { arch, .. } if arch == "no-such-arch"), "{error}");

    // llama.cpp's own words are in the text.
    let error = refused(written(&small("llama", true, true)).path());
    assert!(matches!(error, LoadError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("key not found in model"), "{error}");
}

#[test]
fn options_out_of_range_are_refused() {
    let bad = LoadOptions { max_sequences: 1000, ..options() };
    let error = load(&model_path(), &bad, |_| {}).err().unwrap();
    assert!(matches!(error, LoadError::Options(_)), "{error}");
}

#[test]
fn values_of_fewer_bits_need_flash_attention() {
    let options = LoadOptions { kv_values: KvType::Q4_0, flash_attention: FlashAttention::Off, ..options() };
    let error = load(&model_path(), &options, |_| {}).err().unwrap();
    assert!(matches!(error, LoadError::Options(_)), "{error}");
    assert!(error.to_string().contains("turn flash_attention on"), "{error}");
    // Every other combination makes a context that decodes.
    for (kv_keys, kv_values, flash_attention) in [
        (KvType::Q8_0, KvType::F16, FlashAttention::Off),
        (KvType::F16, KvType::Q4_0, FlashAttention::Auto),
        (KvType::Q4_0, KvType::Q8_0, FlashAttention::On),
    ] {
        let options = LoadOptions { kv_keys, kv_values, flash_attention, ..options.clone() };
        let model = load(&model_path(), &options, |_| {}).unwrap();
        let mut backend = (model.backend)().unwrap();
        backend.decode(&common::entries(0, 0, &[5, 6, 7])).unwrap();
        assert!(backend.logits(2).unwrap().iter().all(|logit| logit.is_finite()), "{options:?}");
    }
}

#[test]
fn heads_whose_width_does_not_go_with_the_cells_are_told() {
    let mut model = common::gguf::Model::real();
    // Heads of 72 numbers in place of 64: 8 of them are as wide as the model.
    model.set("llama.attention.head_count", common::gguf::u32_value(8));
    model.set("llama.attention.head_count_kv", common::gguf::u32_value(8));
    model.set("llama.rope.dimension_count", common::gguf::u32_value(72));
    for layer in 0..30 {
        for name in ["attn_k", "attn_v"] {
            model.tensor(&format!("blk.{layer}.{name}.weight")).dims = vec![576, 576];
        }
    }
    let file = model.written();
    let options = LoadOptions { kv_keys: KvType::Q8_0, ..options() };
    let error = load(file.path(), &options, |_| {}).err().unwrap();
    assert!(matches!(error, LoadError::Options(_)), "{error}");
    assert!(error.to_string().contains("this model's is 72; set kv_keys to F16"), "{error}");
}

#[test]
fn more_cells_than_memory_is_an_error() {
    let greedy = LoadOptions { kv_cells: 1 << 24, ..options() };
    let model = load(&model_path(), &greedy, |_| {}).unwrap();
    let error = (model.backend)().err().unwrap();
    assert!(error.contains("KV cells"), "{error}");
}

#[test]
fn a_truncated_model_is_told_wherever_it_ends() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let size = fs::copy(model_path(), file.path()).unwrap();
    let mut ends: Vec<u64> = (1..60).map(|part| size * part / 60).collect();
    ends.extend([1, 4, 8, 23, 24, 100, 5000, 1 << 20, size - 1]);
    ends.sort_unstable();
    for end in ends.into_iter().rev() {
        File::options().write(true).open(file.path()).unwrap().set_len(end).unwrap();
        let error = refused(file.path());
        assert!(matches!(&error, LoadError::Truncated { actual, .. } if *actual == end), "{end}: {error}");
        assert!(error.to_string().contains("download it again"), "{error}");
    }
}

#[test]
fn progress_is_told_and_may_panic() {
    use std::sync::{Arc, Mutex};
    let told = Arc::new(Mutex::new(Vec::new()));
    let teller = Arc::clone(&told);
    load(&model_path(), &options(), move |part| teller.lock().unwrap().push(part)).unwrap();
    let told = told.lock().unwrap();
    assert_eq!(told.last(), Some(&1.0));
    assert!(told.is_sorted(), "{told:?}");
    assert!(load(&model_path(), &options(), |_| panic!("on purpose")).is_err());
}

/// Set for the process that is to load a damaged file.
const DAMAGED: &str = "NALA_TEST_DAMAGED";

#[test]
fn a_damaged_header_never_ends_the_process() {
    let source = fs::read(model_path()).unwrap();
    let keys = header_keys(&source);
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), &source).unwrap();
    // The head, every number and type of the keys, then places all over.
    let mut places: Vec<usize> = (4..24).collect();
    places.extend(keys.iter().flat_map(|&key| key..key + 8));
    let mut loaded = 0;
    let mut output = File::options().write(true).open(file.path()).unwrap();
    let mut crashed = Vec::new();
    for place in places {
        for flip in flips() {
            let mut put = |byte: u8| {
                output.seek(SeekFrom::Start(place as u64)).unwrap();
                output.write_all(&[byte]).unwrap();
            };
            put(source[place] ^ flip);
            let status = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "load_the_damaged_file", "--nocapture"])
                .env(DAMAGED, file.path())
                .output()
                .unwrap();
            put(source[place]);
            loaded += u32::from(status.status.success());
            if !status.status.success() {
                crashed.push(format!(
                    "byte {place} ^ {flip:#x}: {}",
                    String::from_utf8_lossy(&status.stderr).lines().next().unwrap_or_default()
                ));
            }
        }
    }
    assert!(crashed.is_empty(), "{loaded} survived, but:\n{}", crashed.join("\n"));
}

/// Bits flipped a place: all of them where `NALA_TEST_THOROUGH` is set.
fn flips() -> &'static [u8] {
    if std::env::var_os("NALA_TEST_THOROUGH").is_some() {
        &[0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff]
    } else {
        &[0xff]
    }
}

/// Where the values of the numeric keys stand, their type first.
fn header_keys(bytes: &[u8]) -> Vec<usize> {
    [
        "llama.block_count",
        "llama.context_length",
        "llama.embedding_length",
        "llama.feed_forward_length",
        "llama.attention.head_count",
        "llama.attention.head_count_kv",
        "llama.rope.freq_base",
        "llama.attention.layer_norm_rms_epsilon",
        "general.file_type",
        "llama.vocab_size",
        "llama.rope.dimension_count",
        "tokenizer.ggml.bos_token_id",
        "tokenizer.ggml.eos_token_id",
    ]
    .iter()
    .filter_map(|key| {
        let at = bytes[..1 << 21]
            .windows(key.len() + 8)
            .position(|window| window[..8] == (key.len() as u64).to_le_bytes() && &window[8..] == key.as_bytes())?;
        Some(at + 8 + key.len())
    })
    .collect()
}

/// The other half of the test above; on its own it has nothing to do.
#[test]
fn load_the_damaged_file() {
    let Some(path) = std::env::var_os(DAMAGED) else { return };
    let small = LoadOptions { kv_cells: 64, max_sequences: 1, ..options() };
    if let Ok(model) = load(Path::new(&path), &small, |_| {}) {
        let _ = model.tokenizer.encode("some text", true);
        if let Ok(mut backend) = (model.backend)() {
            let _ = backend.decode(&common::entries(0, 0, &[5, 6, 7]));
        }
    }
}
