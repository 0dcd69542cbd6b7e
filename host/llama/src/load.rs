//! From a path to a model ready to be served.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use nala_engine::{Backend, LoadedModel};

use crate::adapter::Adapter;
use crate::backend::LlamaCpp;
use crate::error::LoadError;
use crate::header::{self, Header};
use crate::log;
use crate::model;
use crate::options::LoadOptions;
use crate::pages;
use crate::system;
use crate::threads::Cpus;
use crate::tokenizer::Vocabulary;

/// The most characters of llama.cpp's error lines in an error.
const REASON: usize = 600;

/// Loads a model, memory-mapped. Weights that llama.cpp rearranges for its
/// kernels are in RAM once: as rearranged, not in the file's form as well.
///
/// `progress` is told the part that is loaded, from 0.0 to 1.0, on this thread.
/// The context (the KV cells) is made later, by [`LoadedModel::backend`], on a thread that is
/// for nothing else: where threads are pinned ([`LoadOptions::pinning`]), it keeps to one CPU
/// from then on, and so does what it starts.
///
/// # Errors
/// See [`LoadError`].
pub fn load(path: &Path, options: &LoadOptions, progress: impl FnMut(f32) + 'static) -> Result<LoadedModel, LoadError> {
    options.check().map_err(LoadError::Options)?;
    let (model, header) = read(path, progress)?;
    let info = model::info(&model, &header, options);
    let (keys, values) = model::head_widths(&model, &info);
    options.check_widths(keys, values).map_err(LoadError::Options)?;
    let adapters: Result<Vec<Adapter>, LoadError> =
        options.adapters.iter().map(|file| Adapter::load(&model, &header.arch, file)).collect();
    let adapters = adapters?;
    let vocabulary =
        Vocabulary::new(Arc::clone(&model)).ok_or_else(|| LoadError::NoVocabulary { path: path.to_path_buf() })?;
    if let Some((threads, cpus)) = options.crowd() {
        tracing::warn!(
            threads,
            cpus,
            "more threads compute than there are CPUs for them; each step may take many times as long, since they wait \
             for each other: leave out --threads to have one for each CPU"
        );
    }
    let (options, cpus, known) = (options.settled(), Cpus::of_this_thread(options), info.clone());
    Ok(LoadedModel {
        info,
        tokenizer: Arc::new(vocabulary),
        backend: Box::new(move || {
            let backend = LlamaCpp::new(model, &options, cpus, &known, adapters)?;
            Ok(Box::new(backend) as Box<dyn Backend>)
        }),
        draft: None,
    })
}

/// Looks at a file's header and the options, without loading anything: cheap, and
/// most of what is wrong with a file is seen.
///
/// # Errors
/// See [`LoadError`].
pub fn check(path: &Path, options: &LoadOptions) -> Result<(), LoadError> {
    options.check().map_err(LoadError::Options)?;
    look(path).map(drop)
}

/// Checks a header.
fn look(path: &Path) -> Result<Header, LoadError> {
    let header = header::check(path)?;
    if header.tensors == 0 {
        return Err(LoadError::NoWeights { path: path.to_path_buf() });
    }
    if !header.has_tokens {
        return Err(LoadError::NoVocabulary { path: path.to_path_buf() });
    }
    if path.to_str().is_none_or(|path| path.contains('\0')) {
        return Err(LoadError::BadPath { path: path.to_path_buf() });
    }
    Ok(header)
}

/// Checks a file and has llama.cpp map it.
pub(crate) fn read(
    path: &Path,
    mut progress: impl FnMut(f32) + 'static,
) -> Result<(Arc<LlamaModel>, Header), LoadError> {
    let header = look(path)?;
    let backend = system::backend().ok_or_else(|| LoadError::Refused {
        path: path.to_path_buf(),
        reason: "other code of this process holds llama.cpp".to_owned(),
    })?;
    let params = LlamaModelParams::default().with_use_mmap(true).with_progress_callback(
        // A panic must not unwind into C.
        move |part| catch_unwind(AssertUnwindSafe(|| progress(part))).is_ok(),
    );
    let load = || LlamaModel::load_from_file(backend, path, &params);
    let ((model, copied), errors) = log::capture(|| log::watch_copies(load));
    let model = model.map_err(|error| {
        let reason = if errors.is_empty() { error.to_string() } else { errors };
        refusal(path, &header.arch, reason)
    })?;
    if !model::is_plain_decoder(&model) {
        return Err(LoadError::NotADecoder { path: path.to_path_buf(), arch: header.arch });
    }
    if copied {
        pages::let_go(path);
    }
    Ok((Arc::new(model), header))
}

/// Sorts llama.cpp's error lines, which is all it gives.
fn refusal(path: &Path, arch: &str, mut reason: String) -> LoadError {
    let path = path.to_path_buf();
    // It repeats names of the file in full.
    if let Some((end, _)) = reason.char_indices().nth(REASON) {
        reason.truncate(end);
        reason.push('…');
    }
    let says = |words: &[&str]| words.iter().any(|words| reason.contains(words));
    if says(&["unknown model architecture", "unsupported model architecture"]) {
        LoadError::UnsupportedArchitecture { path, arch: arch.to_owned() }
    } else if says(&["bad_alloc", "failed to allocate", "unable to allocate", "mmap failed"]) {
        LoadError::OutOfMemory { path, reason }
    } else {
        LoadError::Refused { path, reason }
    }
}
