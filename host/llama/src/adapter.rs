//! LoRA adapters: small changes to a model's weights, computed beside them.

use std::ffi::CString;
use std::path::Path;
use std::ptr::NonNull;

use llama_cpp_2::model::LlamaModel;
use llama_cpp_sys_2 as sys;

use crate::error::LoadError;
use crate::options::AdapterFile;
use crate::{header, log, model};

/// An adapter of a model, which frees it when it is freed itself.
pub(crate) struct Adapter {
    raw: NonNull<sys::llama_adapter_lora>,
}

// SAFETY: the pointer is to tensors that nobody writes to after they are loaded;
// only the thread that owns the model's context uses it.
unsafe impl Send for Adapter {}

impl Adapter {
    /// The pointer, valid while the model lives.
    pub(crate) fn raw(&self) -> *mut sys::llama_adapter_lora {
        self.raw.as_ptr()
    }

    /// Loads an adapter for a model of the architecture `arch`.
    ///
    /// To be called before the model is shared with other threads: llama.cpp
    /// notes the adapter in the model.
    pub(crate) fn load(model: &LlamaModel, arch: &str, file: &AdapterFile) -> Result<Self, LoadError> {
        header::check_adapter(&file.path, arch)?;
        let bad_path = || LoadError::BadPath { path: file.path.clone() };
        let path = file.path.to_str().and_then(|path| CString::new(path).ok()).ok_or_else(bad_path)?;
        // SAFETY: the model is alive and not shared yet; the path is
        // NUL-terminated; what llama.cpp would abort on has been checked above.
        let (raw, errors) =
            log::capture(|| unsafe { sys::llama_adapter_lora_init(model::raw(model).as_ptr(), path.as_ptr()) });
        NonNull::new(raw).map(|raw| Self { raw }).ok_or_else(|| refusal(&file.path, errors))
    }
}

fn refusal(path: &Path, errors: String) -> LoadError {
    let reason = errors.strip_prefix("failed to apply lora adapter: ").map(str::to_owned).unwrap_or(errors);
    LoadError::BadAdapter { path: path.to_path_buf(), reason }
}
