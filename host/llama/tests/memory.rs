//! How much of a model is in RAM. One test in a process of its own: others would
//! be measured, too.

#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "these are tests")]
#![allow(unsafe_code, reason = "llama.cpp's own conversion makes the file that is tested with")]

mod common;

use std::ffi::CString;
use std::path::Path;

use llama_cpp_sys_2 as sys;

/// The test model with weights of Q4_0, which llama.cpp rearranges for the
/// kernels of most CPUs.
fn requantised(to: &Path) {
    let from = CString::new(common::model_path().to_str().unwrap()).unwrap();
    let to = CString::new(to.to_str().unwrap()).unwrap();
    // SAFETY: plain numbers; the paths are NUL-terminated and live through the
    // calls, and so do the parameters.
    let code = unsafe {
        let mut params = sys::llama_model_quantize_default_params();
        params.ftype = sys::LLAMA_FTYPE_MOSTLY_Q4_0;
        params.allow_requantize = true;
        params.nthread = 2;
        sys::llama_model_quantize(from.as_ptr(), to.as_ptr(), &raw const params)
    };
    assert_eq!(code, 0, "requantising failed");
}

/// Bytes of a line such as `Rss:   12 kB`.
fn kibibytes(line: &str) -> u64 {
    1024 * line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
}

/// Anonymous bytes of the process, and those of the file's mappings, in RAM.
fn resident(path: &Path) -> (u64, u64) {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let anonymous = rollup.lines().find(|line| line.starts_with("Anonymous:")).map(kibibytes).unwrap();
    let path = path.canonicalize().unwrap();
    let (mut of_file, mut inside) = (0, false);
    for line in std::fs::read_to_string("/proc/self/smaps").unwrap().lines() {
        match line.split_whitespace().next() {
            Some("Rss:") if inside => of_file += kibibytes(line),
            Some(first) if !first.ends_with(':') => inside = line.ends_with(path.to_str().unwrap()),
            _ => {}
        }
    }
    (anonymous, of_file)
}

#[test]
fn rearranged_weights_are_in_ram_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("q4_0.gguf");
    requantised(&path);
    let options = nala_llama::LoadOptions { kv_cells: 256, batch_tokens: 32, max_sequences: 4, ..common::options() };
    let (before, _) = resident(&path);
    let model = nala_llama::load(&path, &options, |_| {}).unwrap();
    let (loaded, _) = resident(&path);
    let weights = model.info.tensor_bytes;
    let mut backend = (model.backend)().unwrap();
    let prompt = common::france(&*model.tokenizer);
    let answer = common::greedy(&mut *backend, model.tokenizer.end_tokens(), &[prompt[..32].to_vec()], 4);
    assert_eq!(answer[0].len(), 4);
    let (_, of_file) = resident(&path);
    // What was made while loading is the copy and the vocabulary.
    let made = loaded - before;
    if made < weights / 3 {
        // This CPU has no kernels that weights are rearranged for: nothing to
        // let go of, and all is in the file's pages.
        assert!(of_file > weights / 2, "{of_file} of {weights} bytes of weights are in RAM");
        return;
    }
    let vocabulary = 24 << 20;
    assert!(
        made + of_file < weights + vocabulary,
        "weights of {weights} bytes take {made} bytes of memory and {of_file} bytes of the file's pages"
    );
}
