//! Why a model could not be loaded.

use std::path::PathBuf;

use thiserror::Error;

/// Why a model could not be loaded.
///
/// The texts are for people: they name the file and what to do about it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// There is no such file.
    #[error("no model file at {path}; check the path, or fetch a model with `nala-host model pull NAME`")]
    NotFound {
        /// The path that was asked for.
        path: PathBuf,
    },
    /// The path names something that is not a regular file.
    #[error("{path} is not a regular file; name the .gguf file itself")]
    NotAFile {
        /// The path that was asked for.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The path that was asked for.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// llama.cpp takes paths in UTF-8 only.
    #[error("the path {path:?} is not UTF-8 or contains a NUL; rename the file")]
    BadPath {
        /// The path that was asked for.
        path: PathBuf,
    },
    /// The file has no bytes.
    #[error("{path} is empty; download it again")]
    Empty {
        /// The path that was asked for.
        path: PathBuf,
    },
    /// The file does not start with `GGUF`.
    #[error(
        "{path} is not a GGUF file (it starts with {found:?} instead of \"GGUF\"); convert the model to GGUF first"
    )]
    NotGguf {
        /// The path that was asked for.
        path: PathBuf,
        /// Its first bytes, escaped.
        found: String,
    },
    /// The file's version of the format is not read by this llama.cpp.
    #[error("{path} is GGUF version {version}, but versions 2 and 3 are read; convert it again")]
    Version {
        /// The path that was asked for.
        path: PathBuf,
        /// The version in the file.
        version: u32,
    },
    /// The file ends before its tensors do.
    #[error(
        "{path} is cut short: its header describes at least {expected} bytes but it has {actual}; download it again"
    )]
    Truncated {
        /// The path that was asked for.
        path: PathBuf,
        /// Bytes that the header describes.
        expected: u64,
        /// Bytes of the file.
        actual: u64,
    },
    /// The header contradicts itself.
    #[error("the GGUF header of {path} is damaged ({reason}); download it again")]
    Damaged {
        /// The path that was asked for.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The header says something that llama.cpp cannot compute with.
    #[error("{path} cannot be served: {reason}; convert the model again with a current llama.cpp, or use another file")]
    BadValue {
        /// The path that was asked for.
        path: PathBuf,
        /// The key or tensor, and what is wrong with it.
        reason: String,
    },
    /// The tokenizer is of a kind that is not served.
    #[error(
        "{path} has a tokenizer of the kind `{tokenizer}`, but only `llama`, `gpt2` and `gemma4` are served; use another model"
    )]
    UnsupportedTokenizer {
        /// The path that was asked for.
        path: PathBuf,
        /// `tokenizer.ggml.model` in the file.
        tokenizer: String,
    },
    /// The file is one part of a model.
    #[error(
        "{path} is one of {parts} parts of a model; join them with `llama-gguf-split --merge` and use the whole file"
    )]
    Split {
        /// The path that was asked for.
        path: PathBuf,
        /// How many parts there are.
        parts: u16,
    },
    /// The file holds a vocabulary but no tensors.
    #[error("{path} holds a vocabulary only, no weights; use a complete model file")]
    NoWeights {
        /// The path that was asked for.
        path: PathBuf,
    },
    /// llama.cpp does not know the architecture.
    #[error(
        "{path} is of the architecture `{arch}`, which this llama.cpp does not know; use a model of a supported architecture or a newer nala-host"
    )]
    UnsupportedArchitecture {
        /// The path that was asked for.
        path: PathBuf,
        /// The architecture in the file.
        arch: String,
    },
    /// The model cannot turn text into tokens.
    #[error("{path} has no usable vocabulary; use a model file that includes its tokenizer")]
    NoVocabulary {
        /// The path that was asked for.
        path: PathBuf,
    },
    /// The model does not continue text, or only with an encoder.
    #[error("{path} ({arch}) is not a plain decoder, so it cannot continue text; use a chat model")]
    NotADecoder {
        /// The path that was asked for.
        path: PathBuf,
        /// The architecture in the file.
        arch: String,
    },
    /// Not enough memory.
    #[error(
        "not enough memory to load {path} ({reason}); use a smaller model or quantisation, or raise the memory limit"
    )]
    OutOfMemory {
        /// The path that was asked for.
        path: PathBuf,
        /// What llama.cpp said.
        reason: String,
    },
    /// The file is no LoRA adapter for this model.
    #[error("{path} is no LoRA adapter for this model: {reason}; use one that was trained for this very model")]
    BadAdapter {
        /// The path that was asked for.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// An option is out of its range.
    #[error("{0}")]
    Options(String),
    /// llama.cpp refused the file for another reason.
    #[error("llama.cpp cannot load {path}: {reason}")]
    Refused {
        /// The path that was asked for.
        path: PathBuf,
        /// llama.cpp's error lines.
        reason: String,
    },
}
