//! What `--version` says.

use std::sync::LazyLock;

static LONG: LazyLock<String> = LazyLock::new(|| {
    let parts = nala_llama::version();
    let commit = if matches!(parts.ggml_commit.as_str(), "" | "unknown") {
        String::new()
    } else {
        format!(" ({})", parts.ggml_commit)
    };
    format!(
        "{}\nllama.cpp {}\nggml {}{commit}\ntarget {} {}",
        env!("CARGO_PKG_VERSION"),
        parts.llama,
        parts.ggml,
        std::env::consts::ARCH,
        std::env::consts::OS,
    )
});

/// The version with those of what computes, over several lines.
pub(crate) fn long() -> &'static str {
    &LONG
}
