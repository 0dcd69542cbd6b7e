//! How the process ends where llama.cpp gives up.
//!
//! ggml forks a debugger for a backtrace then, which can wait for ever and keep
//! the sockets of the process open. A server shall end at once, with the reason.

use std::ffi::{CStr, c_char};
use std::io::Write;
use std::sync::Once;

use llama_cpp_sys_2 as sys;

/// Has the process say why and end at once, from now on.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: `say` has the type the callback must have and does not unwind.
        unsafe { sys::ggml_set_abort_callback(Some(say)) };
        uncaught::install();
    });
}

/// Called by ggml, which aborts as soon as this returns.
unsafe extern "C" fn say(message: *const c_char) {
    let message = if message.is_null() {
        c"no reason given"
    } else {
        // SAFETY: ggml passes a NUL-terminated string that lives through the call.
        unsafe { CStr::from_ptr(message) }
    };
    // Not through the log, which may be buffered, or held by this very thread.
    // Where nobody listens any more there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "llama.cpp ended the process: {}", message.to_string_lossy());
}

/// C++ exceptions that nobody catches go the same way.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod uncaught {
    type Handler = Option<unsafe extern "C" fn()>;

    unsafe extern "C" {
        /// `std::set_terminate`.
        #[link_name = "_ZSt13set_terminatePFvvE"]
        fn set_terminate(handler: Handler) -> Handler;
        /// libstdc++'s own handler: it prints the exception and aborts.
        #[link_name = "_ZN9__gnu_cxx27__verbose_terminate_handlerEv"]
        fn verbose_terminate_handler();
    }

    pub(super) fn install() {
        // SAFETY: both are functions of the C++ library that llama.cpp is
        // linked with, of these types in its stable ABI; the handler does not
        // return, as it must not.
        unsafe { set_terminate(Some(verbose_terminate_handler)) };
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod uncaught {
    pub(super) fn install() {}
}

#[cfg(test)]
mod tests {
    /// Set for the process that is to be ended.
    const ENDED: &str = "NALA_TEST_ABORT";

    #[test]
    fn an_abort_says_why_and_starts_no_debugger() {
        // A debugger that would never end, first on the path.
        let folder = tempfile::tempdir().unwrap();
        let debugger = folder.path().join("gdb");
        std::fs::write(&debugger, "#!/bin/sh\necho debugger >&2\nsleep 600\n").unwrap();
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&debugger, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
        let before = std::time::Instant::now();
        let ended = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "abort::tests::end_the_process", "--nocapture"])
            .env(ENDED, "1")
            .env("PATH", path)
            .env_remove("GGML_NO_BACKTRACE")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(!ended.status.success());
        assert!(said.contains("llama.cpp ended the process") && said.contains("on purpose"), "{said}");
        assert!(!said.contains("debugger"), "{said}");
        assert!(before.elapsed() < std::time::Duration::from_secs(60));
    }

    /// The other half of the test above; on its own it has nothing to do.
    #[test]
    fn end_the_process() {
        if std::env::var_os(ENDED).is_none() {
            return;
        }
        crate::system::backend();
        // SAFETY: all strings are NUL-terminated and the format has no arguments.
        unsafe { llama_cpp_sys_2::ggml_abort(c"test".as_ptr(), 1, c"on purpose".as_ptr()) };
    }
}
