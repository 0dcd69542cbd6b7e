//! llama.cpp's log, routed into `tracing`.
//!
//! All of it goes out at the debug level under the target `llama.cpp`: what it
//! calls a warning or even an error is, for the operator, told better by the
//! typed error that follows. While a [`capture`] runs, the error lines of its
//! thread are kept for that error's text.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use llama_cpp_sys_2 as sys;

/// The longest captured text; the rest is dropped.
const CAPTURE_BYTES: usize = 4096;

thread_local! {
    /// What was said of copied weights since [`watch_copies`] began.
    static COPIES: Cell<Option<bool>> = const { Cell::new(None) };
    static CAPTURED: RefCell<Option<String>> = const { RefCell::new(None) };
    /// The line being put together out of pieces without a newline.
    static LINE: RefCell<(sys::ggml_log_level, String)> =
        const { RefCell::new((sys::GGML_LOG_LEVEL_NONE, String::new())) };
}

/// Routes llama.cpp's and ggml's log into `tracing`, once.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: `receive` has the type the callback must have, does not
        // unwind, and needs no user data. It also sets ggml's logger.
        unsafe { sys::llama_log_set(Some(receive), std::ptr::null_mut()) };
    });
}

/// Runs `work` and returns, beside its result, the error lines that llama.cpp
/// logged on this thread meanwhile, joined by "; ".
pub(crate) fn capture<T>(work: impl FnOnce() -> T) -> (T, String) {
    let outer = CAPTURED.with_borrow_mut(|captured| captured.replace(String::new()));
    let result = work();
    let lines = CAPTURED.with_borrow_mut(|captured| std::mem::replace(captured, outer));
    (result, lines.unwrap_or_default())
}

/// Runs `work` and returns, beside its result, whether llama.cpp said on this
/// thread that it copied weights of a model out of its mapped file. It says so
/// nowhere else.
pub(crate) fn watch_copies<T>(work: impl FnOnce() -> T) -> (T, bool) {
    let outer = COPIES.replace(Some(false));
    let result = work();
    (result, COPIES.replace(outer).unwrap_or(false))
}

/// Whether a line tells of memory for weights that are not used in the mapped
/// file itself: `load_tensors:   CPU_REPACK model buffer size =    56.95 MiB`.
fn tells_of_copies(line: &str) -> bool {
    let name = line.split_once(" model buffer size =").and_then(|(before, _)| before.split_whitespace().next_back());
    name.is_some_and(|name| !name.ends_with("_Mapped"))
}

unsafe extern "C" fn receive(level: sys::ggml_log_level, text: *const c_char, _: *mut c_void) {
    if text.is_null() {
        return;
    }
    // SAFETY: ggml passes a NUL-terminated string that lives through the call.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    // A subscriber that panics must not unwind into C.
    let _ = catch_unwind(AssertUnwindSafe(|| take(level, &text)));
}

/// Puts lines together; `GGML_LOG_LEVEL_CONT` continues the one before.
fn take(level: sys::ggml_log_level, text: &str) {
    let mut rest = text;
    while let Some((head, tail)) = rest.split_once('\n') {
        append(level, head);
        let (level, line) = LINE.take();
        emit(level, line.trim_end());
        rest = tail;
    }
    if !rest.is_empty() {
        append(level, rest);
    }
}

fn append(level: sys::ggml_log_level, text: &str) {
    LINE.with_borrow_mut(|(line_level, line)| {
        if level != sys::GGML_LOG_LEVEL_CONT {
            *line_level = level;
        }
        // A progress bar of dots has no newline for long.
        if line.len() < CAPTURE_BYTES {
            line.push_str(text);
        }
    });
}

fn emit(level: sys::ggml_log_level, line: &str) {
    if line.is_empty() {
        return;
    }
    if tells_of_copies(line) && COPIES.get().is_some() {
        COPIES.set(Some(true));
    }
    if level == sys::GGML_LOG_LEVEL_ERROR {
        CAPTURED.with_borrow_mut(|captured| {
            if let Some(lines) = captured
                && lines.len() < CAPTURE_BYTES
            {
                if !lines.is_empty() {
                    lines.push_str("; ");
                }
                lines.push_str(without_function(line));
            }
        });
    }
    tracing::debug!(target: "llama.cpp", level = level_name(level), "{line}");
}

fn level_name(level: sys::ggml_log_level) -> &'static str {
    match level {
        sys::GGML_LOG_LEVEL_DEBUG => "debug",
        sys::GGML_LOG_LEVEL_INFO => "info",
        sys::GGML_LOG_LEVEL_WARN => "warn",
        sys::GGML_LOG_LEVEL_ERROR => "error",
        _ => "none",
    }
}

/// Drops the name of the C function that most lines start with.
fn without_function(line: &str) -> &str {
    match line.split_once(": ") {
        Some((name, rest)) if name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b':') => {
            rest.trim_start()
        }
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_lines_are_captured_and_others_are_not() {
        let ((), lines) = capture(|| {
            take(sys::GGML_LOG_LEVEL_INFO, "llama_model_load: fine\n");
            take(sys::GGML_LOG_LEVEL_ERROR, "llama_model_load: first ");
            take(sys::GGML_LOG_LEVEL_CONT, "part\n");
            take(sys::GGML_LOG_LEVEL_ERROR, "second: one\n");
        });
        assert_eq!(lines, "first part; one");
        take(sys::GGML_LOG_LEVEL_ERROR, "outside of a capture\n");
        assert_eq!(capture(|| ()).1, "");
    }

    #[test]
    fn copies_of_weights_are_noticed() {
        let said = |line: &str| watch_copies(|| take(sys::GGML_LOG_LEVEL_INFO, line)).1;
        assert!(said("load_tensors:   CPU_REPACK model buffer size =    56.95 MiB\n"));
        assert!(!said("load_tensors:   CPU_Mapped model buffer size =    93.80 MiB\n"));
        assert!(!said("llama_kv_cache: CPU KV buffer size = 1 MiB\n"));
        assert!(!watch_copies(|| ()).1);
    }

    #[test]
    fn captures_nest() {
        let (inner, outer) = capture(|| {
            let ((), inner) = capture(|| take(sys::GGML_LOG_LEVEL_ERROR, "in\n"));
            take(sys::GGML_LOG_LEVEL_ERROR, "out\n");
            inner
        });
        assert_eq!((inner.as_str(), outer.as_str()), ("in", "out"));
    }
}
