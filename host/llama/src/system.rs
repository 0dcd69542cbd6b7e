//! What this build of llama.cpp is and what it found in the machine.

use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_sys_2 as sys;

/// The versions of what computes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// llama.cpp's version.
    pub llama: String,
    /// ggml's version.
    pub ggml: String,
    /// The commit that ggml was built from, where the build knew it.
    pub ggml_commit: String,
}

/// Initialises llama.cpp, once for the life of the process.
///
/// None only where other code of the process has initialised it through
/// `llama-cpp-2` and holds it.
pub(crate) fn backend() -> Option<&'static LlamaBackend> {
    static BACKEND: OnceLock<Option<LlamaBackend>> = OnceLock::new();
    BACKEND
        .get_or_init(|| {
            crate::log::install();
            crate::abort::install();
            LlamaBackend::init().ok()
        })
        .as_ref()
}

/// The CPU features and kernels that llama.cpp was built with and found, as it
/// prints them: `CPU : SSE3 = 1 | AVX2 = 1 | … | REPACK = 1 |`.
#[must_use]
pub fn system_info() -> String {
    backend();
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // SAFETY: returns a pointer into a static string that each call builds
    // anew; the lock keeps it as it is until it is copied.
    text(unsafe { sys::llama_print_system_info() })
}

/// The versions of what computes.
#[must_use]
pub fn version() -> Version {
    // SAFETY: all three return pointers to string literals.
    unsafe {
        Version {
            llama: text(sys::llama_version()),
            ggml: text(sys::ggml_version()),
            ggml_commit: text(sys::ggml_commit()),
        }
    }
}

/// Copies a C string; a null pointer gives the empty one.
fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: callers pass NUL-terminated strings that live through the call.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_names_its_features() {
        assert!(system_info().contains("CPU"), "{}", system_info());
        assert!(!version().llama.is_empty());
        assert!(!version().ggml.is_empty());
    }
}
